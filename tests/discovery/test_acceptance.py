"""New entities that become entities of the knowledge base."""

import pytest
import spacy

from spacy_arbo_el import MentionRecord, NewEntity
from spacy_arbo_el.discovery.acceptance import entity_from

from ..expecting import raises
from ..linker.conftest import build
from ..linking.invented import NEW, clusters, docs_of


def record(number, text, label="", doc_id=""):
    return MentionRecord((f"print{number}", 0, 5), (), text, label=label, doc_id=doc_id)


def test_entity_from_takes_names_labels_and_documents_of_the_mentions():
    members = (
        record(0, "Zorblat", "THING", "doc a"),
        record(1, "zorb", "THING"),
        record(2, "Zorb", "BEING", "doc a"),
        record(3, "the Zorblat"),
        record(4, "ZORBLAT"),
    )
    new_entity = NewEntity("NEW-1", "Zorblat", members, 0, 0.75, ())
    entity = entity_from(new_entity, "E1", "", "a thing", 10)
    assert (entity.id, entity.title, entity.description) == ("E1", "Zorblat", "a thing")
    assert entity.aliases == ("zorb", "the Zorblat")
    assert entity.types == ("THING", "BEING")
    assert entity.frequency == 5.0
    assert entity.meta == {
        "discovered_as": "NEW-1",
        "mentions": 5,
        "documents": ["doc a", "print1", "print3", "print4"],
        "cohesion": 0.75,
    }
    entity = entity_from(new_entity, "E1", "Zorb", "", 1)
    assert entity.title == "Zorb"
    assert entity.aliases == ("Zorblat",)


@pytest.fixture
def nlp():
    return build(threshold=0.6)


def test_the_next_document_links_to_an_accepted_entity(nlp, linker, tmp_path):
    linker.new_entities.update(linker.corpus.discover(docs_of(nlp)))
    (zorblat,) = (one for one in linker.new_entities if one.name == "Zorblat")
    encoded = []
    encode = linker.encoder.encode_mentions
    linker.encoder.encode_mentions = lambda w: encoded.append(len(w)) or encode(w)
    entity = linker.new_entities.accept(
        zorblat.id, "E77", title="Zorblat", description="a kind of craft"
    )
    assert encoded == [], "mentions are not encoded again"
    assert entity == linker.kb.get("E77")
    assert entity.types == ("THING",)
    assert entity.meta["discovered_as"] == zorblat.id
    assert entity.meta["mentions"] == 4
    assert linker.new_entities.resolve(zorblat.id) == "E77"
    assert zorblat.id not in linker.new_entities
    assert [item.kb_ids for item in linker.exemplars.records[-4:]] == [("E77",)] * 4
    doc = nlp(docs_of(nlp, ["A [Zorblat|x] landed on the roof of the town hall."])[0])
    assert doc.ents[0].kb_id_ == "E77"
    assert doc.ents[0]._.arbo.evidence[0].id == "E77"
    # New entities are saved, and later documents have their ids.
    nlp.to_disk(tmp_path / "model")
    again = spacy.load(tmp_path / "model")
    kept = again.get_pipe("arbo_linker")
    assert kept.new_entities.ids == linker.new_entities.ids
    assert kept.new_entities.log[-1]["action"] == "accept"
    assert again(docs_of(again, NEW[:1])[0]).ents[0].kb_id_ == "E77"
    later = docs_of(again, NEW[1:2])
    kept.corpus.link(later)
    assert clusters(later) == [kept.new_entities.ids[0]]


def test_accepting_discovered_and_existing_entities(nlp, linker):
    discovered = linker.corpus.discover(docs_of(nlp))
    one = discovered[0]
    with pytest.raises(KeyError, match="no new entity"):
        linker.new_entities.accept(one.id)
    entity = discovered.accept(one.id)
    assert entity.id == one.id.replace("NEW-", "ENT-")
    assert entity.title == one.name
    assert one.id not in discovered
    other = discovered[0]
    assert discovered.accept(other.id, "river") == linker.kb.get("river")
    assert linker.exemplars.records[-1].kb_ids == ("river",)
    with raises("E001|NIL"):
        discovered.accept(discovered.ids[0], "NIL")
    assert len(discovered) == 1, "a failed call changes nothing"


@pytest.mark.parametrize("frequency", [0.0, 3.0])
def test_an_accepted_entity_has_a_frequency_where_another_has_one(nlp, linker, frequency):
    linker.kb.update({"id": entity.id, "frequency": 0.0} for entity in list(linker.kb))
    linker.kb.update({"id": "river", "frequency": frequency})
    discovered = linker.corpus.discover(docs_of(nlp))
    count = len(discovered[0].members)
    assert discovered.accept(discovered[0].id).frequency == (count if frequency else 0.0)


def test_accepting_forgets_outdated_corrections(nlp, linker):
    docs = docs_of(nlp)
    linker.new_entities = linker.corpus.discover(docs)
    linker.feedback.learn(docs[0].ents[0], "NIL")
    linker.new_entities.accept(docs[0].ents[0]._.arbo.cluster, "E77")
    assert nlp(docs_of(nlp, NEW[:1])[0]).ents[0].kb_id_ == "E77"
    assert not linker.feedback.forget(docs[0].ents[0])


def test_a_failure_while_accepting_changes_nothing(nlp, linker, monkeypatch):
    discovered = linker.corpus.discover(docs_of(nlp))
    before, exemplars = discovered.to_bytes(), len(linker.exemplars)

    def fail(texts):
        raise RuntimeError("out of memory")

    with monkeypatch.context() as patch:
        patch.setattr(linker.encoder, "encode_texts", fail)
        with pytest.raises(RuntimeError, match="out of memory"):
            discovered.accept(discovered.ids[0], "E77")
    assert "E77" not in linker.kb
    assert len(linker.exemplars) == exemplars
    assert discovered.to_bytes() == before
    assert discovered.accept(discovered.ids[0], "E77").id == "E77"
