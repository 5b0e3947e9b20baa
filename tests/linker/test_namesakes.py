"""Namesakes with short descriptions, in twelve domains: the context decides. All are made up."""

import pytest
import spacy

pytestmark = pytest.mark.bundled

# The name: (title, description, texts). No text has a content word of its description.
NAMESAKES = {
    "Belvor": [
        ("Ana Belvor", "tennis player", ["Belvor lost the second set after a double fault.",
         "Her backhand down the line gave Belvor the match point."]),
        ("Belvor", "village in the Alps", ["The road to Belvor was closed by an avalanche.",
         "We spent the winter in Belvor and skied every morning."]),
        ("Belvor AG", "insurance company", ["Belvor raised the premiums for flood damage.",
         "After the hailstorm she filed a claim with Belvor."]),
    ],
    "Trennick": [
        ("Trennick", "steam locomotive", ["The boiler of the Trennick was restored in a workshop.",
         "Trennick hauled the coal wagons up the incline."]),
        ("Paul Trennick", "crime novelist", ["The detective in the new book by Trennick is blind.",
         "Trennick signed copies of his thriller at the fair."]),
        ("Trennick syndrome", "disease of the liver", ["Jaundice is an early sign of Trennick.",
         "Biopsy showed the fibrosis that is typical of Trennick."]),
    ],
    "Osmira": [
        ("Osmira", "moth that eats wool", ["Larvae of Osmira left holes in the sweaters.",
         "Cedar wood keeps Osmira out of the wardrobe."]),
        ("Osmira", "moon of Saturn", ["The probe measured a thin atmosphere around Osmira.",
         "Osmira orbits the ringed giant in sixteen days."]),
        ("Osmira", "video game", ["Players of Osmira collect weapons on each level.",
         "The studio released Osmira for three consoles."]),
    ],
    "Kestova": [
        ("Lena Kestova", "minister of finance", ["Kestova presented the budget to parliament.",
         "The opposition asked Kestova about the deficit and new taxes."]),
        ("Kestova", "dish of beans and sausage",
         ["Simmer the Kestova for two hours and add paprika.",
         "We ate a bowl of Kestova with black bread."]),
        ("Kestova", "volcano", ["Ash from Kestova grounded all flights.",
         "Lava flowed down the eastern slope of Kestova."]),
    ],
    "Dorrin": [
        ("DORRIN", "gene of the immune system",
         ["Expression of Dorrin rose in T cells after infection.",
         "Mice without Dorrin made no antibodies."]),
        ("Dorrin", "Irish folk band", ["Dorrin recorded the album with fiddle and tin whistle.",
         "The crowd sang along when Dorrin came on stage."]),
        ("Dorrin", "brand of tyres", ["Fit four new Dorrin before the first frost.",
         "On wet asphalt the Dorrin brakes late and the tread wears fast."]),
    ],
    "Maltese Quay": [
        ("Maltese Quay", "metro station", ["Change at Maltese Quay for the blue line.",
         "Trains do not stop at Maltese Quay during the repair of the tracks."]),
        ("Maltese Quay", "painting in oil",
         ["Maltese Quay hangs in the second room of the gallery.",
         "The brushwork in Maltese Quay shows the hand of a late impressionist."]),
        ("Maltese Quay", "racehorse", ["Maltese Quay won by a length at Ascot.",
         "The jockey of Maltese Quay was thrown at the last fence."]),
    ],
    "Zephrin": [
        ("Zephrin", "antibiotic", ["She took Zephrin for ten days against pneumonia.",
         "Bacteria that resist Zephrin were found in the wound."]),
        ("Zephrin", "airline", ["Zephrin cancelled the flight to Oslo.",
         "The pilots of Zephrin went on strike over pay."]),
        ("Zephrin", "web browser", ["Zephrin blocks pop-ups and deletes cookies.",
         "Open the page in Zephrin and clear its cache."]),
    ],
    "Haldor": [
        ("Haldor", "Viking king", ["Haldor sailed with forty longships to the coast of Kent.",
         "After the death of Haldor his sons divided the realm."]),
        ("Haldor", "oil field in the North Sea",
         ["Drilling at Haldor reached the reservoir in May.",
         "Barrels pumped at Haldor fell by a tenth."]),
        ("Haldor", "sailing yacht", ["The mast of the Haldor broke in the regatta.",
         "Haldor rounded the buoy ahead of the other boats."]),
    ],
    "Pellam": [
        ("Pellam College", "university", ["Pellam admits three hundred undergraduates a year.",
         "He wrote his thesis at Pellam and became a lecturer."]),
        ("Pellam v. Ross", "court case about patents",
         ["In Pellam the judges held the invention obvious.",
         "Counsel cited Pellam to show that the licence was void."]),
        ("Pellam", "breed of sheep", ["The fleece of the Pellam is white and dense.",
         "A flock of Pellam grazed on the hill with their lambs."]),
    ],
    "Corvane": [
        ("Corvane", "programming language", ["The Corvane compiler reports an unused variable.",
         "We ported the library from C to Corvane."]),
        ("Corvane", "perfume", ["Corvane opens with bergamot and dries down to musk.",
         "She sprayed a little Corvane on her wrist."]),
        ("Corvane", "treaty on fishing", ["Under Corvane each state may catch so many tons of cod.",
         "Delegates signed Corvane to protect the herring stocks."]),
    ],
    "Tamsel": [
        ("Tamsel", "glacier", ["The Tamsel has retreated two kilometres since 1950.",
         "Crevasses in the Tamsel are hidden by snow."]),
        ("Nora Tamsel", "opera singer", ["Tamsel sang the aria in a clear soprano.",
         "Critics praised Tamsel as Tosca at the premiere."]),
        ("Tamsel", "electric car", ["The battery of the Tamsel charges in forty minutes.",
         "The Tamsel has a range of 500 km and seats five."]),
    ],
    "Ilvara": [
        ("Ilvara", "particle accelerator",
         ["Protons collide in Ilvara at almost the speed of light.",
         "The magnets of Ilvara are cooled with liquid helium."]),
        ("Ilvara", "goddess of the harvest",
         ["Farmers left sheaves of wheat at the altar of Ilvara.",
         "In the myth, Ilvara is the sister of the sun."]),
        ("Ilvara", "bank", ["Ilvara charges no fee for withdrawals abroad.",
         "She asked Ilvara for a mortgage at a fixed rate."]),
    ],
}  # fmt: skip


def test_contexts_tell_namesakes_apart():
    first, linked, wrong = 0, 0, []
    for name, senses in NAMESAKES.items():
        nlp = spacy.blank("en")
        ruler = nlp.add_pipe("entity_ruler", config={"phrase_matcher_attr": "LOWER"})
        ruler.add_patterns([{"label": "X", "pattern": name}])
        linker = nlp.add_pipe("arbo_linker")
        linker.set_kb(
            {"id": f"{name}-{i}", "title": title, "aliases": [name], "description": description}
            for i, (title, description, _) in enumerate(senses)
        )
        texts = [(text, f"{name}-{i}") for i, sense in enumerate(senses) for text in sense[2]]
        for doc, gold in nlp.pipe(texts, as_tuples=True):
            (mention,) = doc.ents
            first += mention._.arbo.candidates[0].kb_id == gold
            linked += mention.kb_id_ == gold
            if mention.kb_id_ != gold:
                wrong.append(f"{mention._.arbo.candidates[0]}, not {gold}: {doc}")
    total = 2 * sum(map(len, NAMESAKES.values()))
    assert first >= 0.9 * total, "\n".join(wrong)
    assert linked >= 0.8 * total, "\n".join(wrong)
