"""What was decided on new entities holds in discoveries and in linked corpora."""

import random

import pytest

from spacy_arbo_el import NewEntities, find_linker

from ..linker.conftest import build
from .invented import NEW, clusters, docs_of, many


@pytest.fixture(scope="module")
def shared():
    return build(threshold=0.6)


@pytest.fixture
def linker(shared):
    """A linker that keeps the new entities of the documents."""
    linker = find_linker(shared)
    linker.new_entities = NewEntities()
    linker.new_entities = linker.corpus.discover(docs_of(shared))
    return linker


def named(new_entities, name):
    return next(one for one in new_entities if one.name == name)


def texts_of(new_entities):
    return {one.id: sorted(member.key for member in one.members) for one in new_entities}


def test_rejected_entities_do_not_come_back(shared, linker):
    zorblat = named(linker.new_entities, "Zorblat")
    linker.new_entities.reject(zorblat)
    more = [*NEW, "Yet another green [Zorblat|x] landed on the roof."]
    docs = docs_of(shared, more)
    later = linker.corpus.discover(docs)
    names = {one.name for one in later}
    assert names == {"Quimby's fizzle", "Ulmenau"}, "similar mentions are rejected too"
    assert clusters(docs)[0] == ""
    assert clusters(docs)[-1] == ""
    assert later.resolve(zorblat.id) == ""
    assert "Zorblat" not in [span.text for doc in docs for span in doc.spans["new_entities"]]
    corpus = linker.corpus.link(docs_of(shared, more))
    assert clusters(corpus) == clusters(docs)
    linker.new_entities.update(later)
    linker.new_entities.undo()
    assert named(linker.corpus.discover(docs_of(shared, more)), "Zorblat").id == zorblat.id


def test_merged_entities_stay_merged_and_split_ones_apart(shared, linker):
    zorblat, fizzle = (named(linker.new_entities, n) for n in ("Zorblat", "Quimby's fizzle"))
    off = linker.new_entities.split(zorblat, [0, 2])
    town = named(linker.new_entities, "Ulmenau")
    linker.new_entities.merge(town, fizzle)
    before = texts_of(linker.new_entities)
    assert set(before) == {zorblat.id, off.id, town.id}
    docs = docs_of(shared)
    later = linker.corpus.discover(docs)
    assert texts_of(later) == before
    assert later.resolve(fizzle.id) == town.id
    assert clusters(linker.corpus.link(docs_of(shared))) == clusters(docs)
    random.Random(0).shuffle(docs)
    assert texts_of(linker.corpus.discover(docs)) == before
    # Part of the documents, and others.
    few = [NEW[0], NEW[2], NEW[3], "The [Zorblat|x] landed on the roof of the school."]
    part = linker.corpus.discover(docs_of(shared, few))
    assert set(part.ids) <= {zorblat.id, off.id, town.id}
    linker.new_entities.update(part)
    after = texts_of(linker.new_entities)
    assert all(set(before[name]) <= set(after[name]) for name in before)
    assert sum(map(len, after.values())) == 1 + sum(map(len, before.values()))


def test_accepted_mentions_are_not_found_again_even_below_the_threshold(shared, linker):
    zorblat = linker.new_entities[0]
    entity = linker.new_entities.accept(linker.new_entities[0], title="Zorblat")
    exemplars = len(linker.exemplars)
    docs = docs_of(shared)
    later = linker.corpus.discover(docs, threshold=1.0)
    assert docs[0].ents[0].kb_id_ == "NIL"
    assert clusters(docs)[0] == ""
    assert zorblat.id not in later
    assert later.resolve(zorblat.id) == entity.id
    linker.new_entities.undo()
    assert entity.id not in linker.kb
    assert len(linker.exemplars) == exemplars - 4
    assert zorblat.id in linker.new_entities
    doc = shared(docs_of(shared, NEW[:1])[0])
    assert doc.ents[0].kb_id_ == "NIL"
    # An entity that was merged into it does not go with it.
    linker.kb.add({"id": "mine", "title": "Mine"})
    linker.new_entities.accept(zorblat.id, "new")
    linker.kb.merge("mine", "new")
    linker.new_entities.undo()
    assert "Mine" in linker.kb.get("mine").names
    linker.kb.remove(["new"])


def test_undoing_an_acceptance_elsewhere_and_into_an_existing_entity(shared, linker):
    docs = docs_of(shared)
    linker.new_entities = linker.corpus.discover(docs)
    kept = texts_of(linker.new_entities)
    discovered = linker.corpus.discover(docs_of(shared))
    linker.feedback.add_exemplars([])
    known = len(linker.exemplars)
    entity = linker.kb.get("river")
    linker.feedback.learn(docs[0].ents[0], "planet")
    accepted = discovered.ids[0]
    discovered.accept(accepted, "river")
    assert accepted not in linker.new_entities
    assert linker.new_entities.resolve(accepted) == "river"
    discovered.undo()
    assert linker.kb.get("river") == entity
    assert len(linker.exemplars) == known + 1
    assert linker.exemplars.records[-1].kb_ids == ("planet",)
    assert texts_of(linker.new_entities) == kept
    assert len(discovered) == 3
    linker.feedback.forget(docs[0].ents[0])


def test_what_a_person_has_confirmed_stays_after_undo(shared, linker):
    known = len(linker.exemplars)
    entity = linker.new_entities.accept(linker.new_entities[0], title="Zorblat")
    span = docs_of(shared)[0].ents[0]
    linker.feedback.learn(span, entity.id)
    linker.new_entities.undo()
    assert len(linker.exemplars) == known + 1
    assert entity.id not in linker.kb
    # Linking goes on; without the entity, the correction has no effect.
    assert shared(docs_of(shared)[0]).ents[0].kb_id_ == "NIL"
    linker.kb.add(entity)
    assert shared(docs_of(shared)[0]).ents[0].kb_id_ == entity.id
    linker.kb.remove(entity.id)
    linker.feedback.forget(span)
    linker.feedback.remove_exemplars([span])


def test_ids_and_members_do_not_depend_on_the_order_of_documents(shared, linker):
    linker.new_entities = NewEntities()
    texts = [*NEW, *many(60, seed=3), NEW[0], NEW[3]]
    results, links = [], []
    for seed in range(4):
        order = list(range(len(texts)))
        random.Random(seed).shuffle(order) if seed else None
        docs = docs_of(shared, [texts[i] for i in order])
        results.append(texts_of(linker.corpus.discover(docs)))
        by_text = {}
        for doc in docs:
            by_text[doc.text] = [(e.kb_id_, e._.arbo.cluster) for e in doc.ents]
        links.append(by_text)
        assert clusters(linker.corpus.link(docs)) == clusters(docs)
    assert len(results[0]) > 10
    for each in (results, links):
        assert each[1:] == each[:1] * 3
