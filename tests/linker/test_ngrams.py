"""The encoder of n-grams in the component: training, and text of any kind."""

from pathlib import Path

import pytest
import spacy
from thinc.api import Adam, fix_random_seed

from spacy_arbo_el.kb.entity import Entity

from .conftest import build
from .world import ENTITIES, TRAIN, examples

ROOT = Path(__file__).parents[2]
MODEL = {
    "@architectures": "spacy-arbo-el.NgramEncoder.v1",
    "width": 32,
    "vectors": 32,
    "rows": 2048,
    "hidden": 32,
}
TYPED = {
    "model": MODEL,
    "retriever": {
        "@misc": "spacy-arbo-el.Retriever.v1",
        "verbalization": {"@misc": "spacy-arbo-el.Fields.v1"},
    },
}


@pytest.fixture
def nlp():
    fix_random_seed(0)
    return build(**TYPED)


@pytest.fixture(scope="module")
def trained():
    fix_random_seed(0)
    nlp = build(**TYPED)
    optimizer = Adam(0.005)
    losses = [nlp.update(examples(nlp, TRAIN), sgd=optimizer)["arbo_linker"] for _ in range(40)]
    return nlp, losses


def test_training_lowers_the_loss_and_links_training_mentions(trained):
    nlp, losses = trained
    assert losses[-1] < 0.5 * losses[0]
    scores = nlp.evaluate(examples(nlp, TRAIN))
    assert scores["arbo_recall_at_1"] > 0.9


def test_entities_with_empty_fields_are_linked(nlp):
    linker = nlp.get_pipe("arbo_linker")
    linker.kb.add([Entity("bare", "Zweibrücken"), Entity("text", "", "a lake")])
    doc = nlp.make_doc("We met in Zweibrücken again.")
    doc.ents = [doc.char_span(10, 21, label="THING")]
    assert linker(doc).ents[0].kb_id_ == "bare"


@pytest.mark.parametrize(
    "text, name, kb_id",
    [("我昨天去了東京。", "東京", "tokyo"), ("ฉันไปกรุงเทพเมื่อวาน", "กรุงเทพ", "bangkok")],
)
def test_languages_without_spaces_are_linked(text, name, kb_id):
    entities = [Entity("tokyo", "東京"), Entity("bangkok", "กรุงเทพ"), Entity("kyoto", "京都")]
    nlp = build(entities=[*entities, *ENTITIES], **TYPED)
    doc = spacy.tokens.Doc(nlp.vocab, words=[*text], spaces=[False] * len(text))
    start = text.index(name)
    doc.ents = [doc.char_span(start, start + len(name), label="THING")]
    assert nlp.get_pipe("arbo_linker")(doc).ents[0].kb_id_ == kb_id
