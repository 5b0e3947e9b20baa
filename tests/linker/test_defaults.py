"""The default config, without training: what links, what does not, and namesakes."""

from itertools import groupby

import pytest
import spacy
from spacy.tokens import Span
from spacy.training import Example

from spacy_arbo_el import Entity
from spacy_arbo_el.corpora.docs import unlinked
from spacy_arbo_el.evaluation.report import linked_outcomes
from spacy_arbo_el.fitting.calibrate import fit_calibration

from ..cases import cases
from .world import unlinked_doc

DISEASES = [Entity(*row) for row in cases("diseases")]


@pytest.fixture(scope="module")
def nlp():
    nlp = spacy.blank("en")
    linker = nlp.add_pipe("arbo_linker")
    linker.set_kb(DISEASES)
    return nlp


def link(nlp, text, mention):
    return nlp(unlinked_doc(nlp, text.replace(mention, f"[{mention}|]", 1))).ents[0]._.arbo


@pytest.mark.parametrize(
    "text, mention, expected",
    cases("default_links"),
)
def test_spellings_abbreviations_and_plurals_are_linked_and_strangers_not(
    nlp, text, mention, expected
):
    found = link(nlp, text, mention)
    assert found.kb_id == expected
    assert (found.score < 0.3) == (expected == "NIL")
    assert expected != "infarction" or found.score > 0.6


def test_the_only_entity_is_not_linked_to_everything():
    nlp = spacy.blank("en")
    nlp.add_pipe("arbo_linker").set_kb([Entity("E3", "Amazon River", aliases=["Amazon"])])
    assert link(nlp, "Boats travel up the Amazon.", "Amazon").kb_id == "E3"
    assert link(nlp, "Zorblax was founded in 1990.", "Zorblax").kb_id == "NIL"


def test_a_pipeline_that_was_saved_before_it_linked_can_be_calibrated_and_scored(tmp_path):
    """Its encoder gets its weights when they are needed first, whatever needs them."""
    nlp = spacy.blank("en")
    nlp.add_pipe("arbo_linker").set_kb(DISEASES)
    nlp.to_disk(tmp_path / "model")
    doc = nlp.make_doc("An outbreak of measles.")
    doc.ents = [Span(doc, 3, 4, label="X", kb_id="measles")]
    for use in (fit_calibration, compare):
        linker = spacy.load(tmp_path / "model").get_pipe("arbo_linker")
        assert not linker.encoder.is_ready
        use(linker, [doc])
        assert linker.encoder.is_ready


def compare(linker, docs):
    linked_outcomes(linker, linker.caching_stages(), [Example(unlinked(d), d) for d in docs], 0.0)


pytestmark = pytest.mark.bundled
NAMESAKES = cases("namesakes")


def test_contexts_tell_namesakes_apart():
    first, linked, wrong = 0, 0, []
    nlp = spacy.blank("en")
    ruler = nlp.add_pipe("entity_ruler", config={"phrase_matcher_attr": "LOWER"})
    linker = nlp.add_pipe("arbo_linker")
    for name, senses in groupby(NAMESAKES, key=lambda case: case[0]):
        ruler.clear()
        ruler.add_patterns([{"label": "X", "pattern": name}])
        entities, texts = [], []
        for _, title, description, contexts in senses:
            kb_id = f"{name}-{len(entities)}"
            about = {"title": title, "aliases": [name], "description": description}
            entities.append({"id": kb_id, **about})
            texts += [(text, kb_id) for text in contexts]
        linker.set_kb(entities)
        for doc, gold in nlp.pipe(texts, as_tuples=True):
            (mention,) = doc.ents
            first += mention._.arbo.candidates[0].kb_id == gold
            linked += mention.kb_id_ == gold
            if mention.kb_id_ != gold:
                wrong.append(f"{mention._.arbo.candidates[0]}, not {gold}: {doc}")
    total = 2 * len(NAMESAKES)
    assert first >= 0.9 * total, "\n".join(wrong)
    assert linked >= 0.8 * total, "\n".join(wrong)
