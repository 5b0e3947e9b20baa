"""Entities without a name among others: exemplars lead to them, texts don't."""

import spacy
from thinc.api import Adam

from spacy_arbo_el.kb.entity import Entity

from .conftest import build
from .world import ENTITIES, TRAIN, annotated, examples, without_links

COMET = Entity("C7", types=("STAR",), meta={"unnamed": True})
SEEN = "The [comet|C7] with its bright tail came back after years."


def linked(nlp, marked):
    return nlp(without_links(annotated(nlp, marked))).ents[0]._.arbo


def test_an_unnamed_entity_has_no_vector_and_is_linked_by_its_exemplar(tmp_path):
    nlp = build([*ENTITIES, COMET, Entity("C8", meta={"unnamed": True})], [*TRAIN, SEEN])
    linker = nlp.get_pipe("arbo_linker")
    owners = set(linker.refresh().entities.owners.tolist())
    texts = {e.id: position in owners for position, e in linker.kb.entities.items()}
    assert not texts.pop("C7") and not texts.pop("C8") and all(texts.values())
    link = linked(nlp, "They saw the [comet|C7] with a bright tail.")
    assert link.kb_id == "C7"
    assert [step.kind for step in link.evidence][:2] == ["entity", "exemplar"]
    assert "C8" not in linked(nlp, "[C8|C8] is a name that nothing has.").ids
    nlp.to_disk(tmp_path / "model")
    assert linked(spacy.load(tmp_path / "model"), "They saw the [comet|C7].").kb_id == "C7"


def test_mentions_of_unnamed_entities_are_trained_on():
    nlp = build([*ENTITIES, COMET], [*TRAIN, SEEN])
    trained = examples(nlp, [*TRAIN, SEEN, "A [comet|C7] has a tail of dust."])
    assert nlp.update(trained, sgd=Adam(1e-4))["arbo_linker"] > 0
