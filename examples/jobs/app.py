"""An app links what its users write, takes corrections and new entities, and keeps them.

    python app.py MODEL

MODEL is made where it is not there yet.
"""

import sys
from pathlib import Path

import spacy
from spacy.language import Language

from spacy_arbo_el import find_linker, load_pipeline, save_pipeline

DISHES = [
    {
        "id": "D1",
        "title": "Caesar salad",
        "description": "lettuce with croutons and cheese",
    },
    {
        "id": "D2",
        "title": "salad Niçoise",
        "description": "salad with tuna, eggs and olives",
    },
    {"id": "D3", "title": "pea soup", "aliases": ["erwtensoep"]},
]


def start(path: Path) -> Language:
    """The app's pipeline: it finds the names of the list, and links them."""
    if path.exists():
        return load_pipeline(path)
    nlp = spacy.blank("en")
    nlp.add_pipe("arbo_names")
    nlp.add_pipe("arbo_linker").set_kb(DISHES)
    save_pipeline(nlp, path)
    return nlp


def answer(nlp: Language, text: str) -> list[dict[str, object]]:
    """What the app sends to the browser."""
    return [
        {"text": ent.text, "id": ent.kb_id_, "title": ent._.arbo.title}
        for ent in nlp(text).ents
        if ent.kb_id_ != "NIL"
    ]


def main(model: str) -> None:
    path = Path(model)
    nlp = start(path)
    print(answer(nlp, "Erwtensoep for two, and a Caesar salad."))
    linker = find_linker(nlp)
    # A user adds a dish. It counts from the next text on.
    linker.kb.upsert({"id": "D4", "title": "snert", "description": "thick pea soup"})
    print(answer(nlp, "One snert, please."))
    # Another one says that the list does not have what was meant.
    order = "One snert, but a vegan one."
    linker.feedback.learn(nlp(order).ents[0], "NIL")
    print(answer(nlp, order))
    save_pipeline(nlp, path)


if __name__ == "__main__":
    main(*sys.argv[1:])
