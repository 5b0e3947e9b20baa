"""New entities that become entities of the knowledge base."""

from spacy_arbo_el.discovery.acceptance import entity_from
from spacy_arbo_el.discovery.entities import NewEntity
from spacy_arbo_el.mentions.record import MentionRecord


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
    assert entity.aliases == ("zorb", "the Zorblat") and entity.types == ("THING", "BEING")
    assert entity.frequency == 5.0
    assert entity.meta == {
        "discovered_as": "NEW-1",
        "mentions": 5,
        "documents": ["doc a", "print1", "print3", "print4"],
        "cohesion": 0.75,
    }
    entity = entity_from(new_entity, "E1", "Zorb", "", 1)
    assert entity.title == "Zorb" and entity.aliases == ("Zorblat",)
