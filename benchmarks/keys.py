"""Keys of a reviewer who knows the truth: clusters of real mentions, decided in the browser.

    python benchmarks/keys.py DATA       # the folder with bc5cdr and medic_2012; needs Chromium

Diseases of 200 abstracts of BC5CDR; a third of their entities is not in the knowledge base, which
has those of MEDIC that occur and some others. What has to be typed, the text of a search, is not
counted. `arbo serve` may offer more than one cluster at once, and each counts as decided.
"""

import argparse
import json
import random
import shutil
import sys
import tempfile
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import spacy  # noqa: E402
from spacy.tokens import Span  # noqa: E402

from spacy_arbo_el import load_pipeline, save_pipeline  # noqa: E402
from spacy_arbo_el.contrib.review.review import Review  # noqa: E402
from spacy_arbo_el.contrib.review.serve.app import create_app  # noqa: E402
from spacy_arbo_el.corpora.read import read  # noqa: E402
from spacy_arbo_el.kb.entity import Entity  # noqa: E402
from spacy_arbo_el.mentions.record import text_fingerprint  # noqa: E402
from tests.contrib.review.serve.world import serving  # noqa: E402

ABSTRACTS, OTHERS, NAMES = 200, 400, 4
SETTLED = (
    "() => !document.body.classList.contains('busy') "
    "&& !document.querySelector('[data-load]')"
)


def medic(path):
    """The entities of MEDIC: ids, names."""
    for line in path.read_text(encoding="utf8").splitlines():
        kb_id, *parts = line.split("|")
        title, *aliases = parts[parts.index("") + 1 :]
        yield Entity(kb_id, title, aliases=aliases[: NAMES - 1])


def world(data):
    """A pipeline with new entities, and the gold id of each mention."""
    texts = list(read(data / "bc5cdr" / "CDR_TrainingSet.PubTator.txt", "pubtator"))[
        :ABSTRACTS
    ]
    rng, gold, nlp = random.Random(0), {}, spacy.blank("en")
    docs = []
    for text in texts:
        doc = nlp.make_doc(text.text)
        doc.user_data["doc_id"] = text.id
        spans = []
        for one in text.mentions:
            span = doc.char_span(
                one.start, one.end, "Disease", alignment_mode="expand"
            )
            if one.label == "Disease" and len(one.kb_ids) == 1 and span is not None:
                gold[text_fingerprint(text.text), span.start_char, span.end_char] = (
                    one.kb_ids[0]
                )
                spans.append(Span(doc, span.start, span.end, "Disease"))
        doc.ents = spacy.util.filter_spans(spans)
        docs.append(doc)
    occurring = sorted(set(gold.values()))
    rng.shuffle(occurring)
    kept = set(occurring[len(occurring) // 3 :])
    entities = list(medic(data / "medic_2012" / "medic_06Jul2012.txt"))
    others = [one for one in entities if one.id not in occurring]
    chosen = [one for one in entities if one.id in kept] + rng.sample(others, OTHERS)
    linker = nlp.add_pipe("arbo_linker")
    linker.set_kb(chosen)
    linker.new_entities = linker.corpus.discover(docs)
    return nlp, gold, {one.id: one.title for one in entities}


class Reviewer:
    """Decides by keys as the truth says, and counts them."""

    def __init__(self, page, review, gold, titles):
        self.page, self.review, self.gold, self.titles = page, review, gold, titles
        self.keys, self.made, self.ids = 0, Counter(), {}

    def press(self, *keys):
        for key in keys:
            self.page.keyboard.press(key)
            self.keys += 1
        self.page.wait_for_function(SETTLED)
        self.page.wait_for_load_state("networkidle")

    def truth(self, entity):
        """The id that most mentions have, in the knowledge base as it is by now."""
        ids = Counter(self.gold.get(member.key, "") for member in entity.members)
        gold = ids.most_common(1)[0][0]
        return gold, self.ids.get(gold, gold), ids[gold] / len(entity.members)

    def decide(self):
        """Decide on the cluster that is shown. RETURNS: How many clusters are decided by it."""
        name = self.page.evaluate("document.querySelector('[name=id]').value")
        gold, kb_id, _ = self.truth(self.review.new[name])
        before = len(self.review.queue.rows)
        if kb_id not in self.review.linker.kb:
            self.press("a")
            self.ids[gold] = self.review.standing[-1]["kb_id"]
            self.made["accepted"] += 1
        else:
            shown = self.page.query_selector_all(".entities [name=kb_id]")
            offered = [one.get_attribute("value") for one in shown]
            if kb_id in offered:
                self.press(str(offered.index(kb_id) + 1))
                self.made["linked by a digit"] += 1
            else:
                self.search(kb_id)
        self.link_others(kb_id if kb_id in self.review.linker.kb else self.ids[gold])
        return before - len(self.review.queue.rows)

    def search(self, kb_id):
        title = self.review.linker.kb.get(kb_id).title
        self.press("/")
        self.page.keyboard.type(title)
        self.page.wait_for_selector(f"#found ol[data-for={json.dumps(title)}]")
        found = self.page.query_selector_all("#found [name=kb_id]")
        ids = [one.get_attribute("value") for one in found]
        assert kb_id in ids, (title, ids)
        if ids[0] == kb_id:
            self.press("Enter")
        else:
            self.press("Escape", str(4 + ids.index(kb_id)))
        self.made["linked after a search"] += 1

    def link_others(self, kb_id):
        """Link the offered ones at once, where all of it is right."""
        offered = self.page.query_selector_all("#message [name=ids]")
        ids = [one.get_attribute("value").split("@")[0] for one in offered]
        if ids and all(self.truth(self.review.new[one])[1] == kb_id for one in ids):
            self.press("e")
            self.made["linked at once"] += len(ids)


def main() -> None:
    from playwright.sync_api import sync_playwright

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--clusters", type=int, default=60)
    options = parser.parse_args()
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder, "model")
        nlp, gold, titles = world(options.data)
        save_pipeline(nlp, model)
        review = Review(load_pipeline(model), model)
        print(
            f"{len(review.queue.rows)} clusters, {len(review.linker.kb)} entities",
            flush=True,
        )
        with (
            serving(lambda rules: create_app(review, rules)) as rules,
            sync_playwright() as play,
        ):
            chromium = play.chromium.launch(
                executable_path=browser, args=["--no-sandbox"]
            )
            page = chromium.new_page()
            page.set_default_timeout(120_000)
            page.goto(
                f"{rules.origins[0]}/?token={rules.token}", wait_until="networkidle"
            )
            reviewer, decided = Reviewer(page, review, gold, titles), 0
            reviewer.press("Enter")
            while decided < options.clusters and review.queue.rows:
                decided += reviewer.decide()
            chromium.close()
    counts = ", ".join(f"{count} {what}" for what, count in reviewer.made.items())
    print(f"{decided} clusters decided: {counts}")
    print(f"{reviewer.keys} keys, {reviewer.keys / decided:.2f} per decision")


if __name__ == "__main__":
    main()
