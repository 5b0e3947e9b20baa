"""Stored new entities and the log of decisions on them: reading, editing, saving."""

from copy import deepcopy

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from spacy_arbo_el import MentionRecord, NewEntities, SpanInputs
from spacy_arbo_el.discovery.decision_log import DecisionLog
from spacy_arbo_el.discovery.entities import NearestEntity, new_entity_id
from spacy_arbo_el.discovery.store import Unlinked

from ..expecting import raises

WIDTH = 4


def key_of(number):
    return f"doc{number}", number, number + 3


def record_of(number):
    form = f"form {chr(ord('A') + number)}"
    about = f"name {number}", "before\n the ", " after", "THING", form, f"id{number}"
    return MentionRecord(key_of(number), (), *about)


def mentions(numbers):
    """Mentions by number, one per document."""
    count = len(numbers)
    ids = np.arange(count * 3, dtype=np.int32)
    places = np.zeros(count, dtype=np.int32)
    inputs = SpanInputs.one_span_each(
        ids, np.arange(0, 3 * count + 1, 3), places, places + 1, places
    )
    vectors = np.stack([np.random.default_rng(n).normal(size=WIDTH) for n in numbers])
    nearest = [
        [NearestEntity("E1", "one", 0.3), NearestEntity("E2", "two", round(0.1 + n / 100, 4))]
        for n in numbers
    ]
    records = [record_of(n) for n in numbers]
    return Unlinked(records, np.array(numbers), nearest, inputs, vectors.astype(np.float32))


def of_groups(groups):
    entities = NewEntities(0.5, "encoder")
    entities.add_groups(mentions(range(len(groups))), np.array(groups))
    return entities


def numbers_of(records):
    return [record.key[1] for record in records]


def members(entities):
    return {entity.id: numbers_of(entity.members) for entity in entities}


def test_entities_are_read_by_id_and_by_place_the_largest_first():
    entities = of_groups([7, 3, 7, 3, 7])
    first, second = new_entity_id(key_of(0)), new_entity_id(key_of(1))
    assert len(entities) == 2
    assert entities.ids == [first, second]
    assert [first, second] == [entity.id for entity in entities]
    assert members(entities) == {first: [0, 2, 4], second: [1, 3]}
    assert entities[first] == entities[0]
    assert entities[0] == entities[:1][0]
    assert entities[:1][0] == entities[-2]
    assert first in entities
    assert entities[0].documents == 3
    assert entities[0].name == entities[0].members[entities[0].medoid].text
    assert [refused.kb_id for refused in entities[0].nearest] == ["E1", "E2"]
    assert entities[0].nearest[1].probability == pytest.approx(0.14)
    assert entities[0].nearest[0].reason == "below the threshold of 0.5"
    assert entities.id_of(("doc3", 3, 6)) == second
    assert entities.id_of(("doc9", 0, 1)) == ""
    assert entities.mentions_of(second).vectors.shape == (2, WIDTH)
    assert "nothing" not in entities
    assert 3 not in entities
    for ask in (entities.resolve, entities.__getitem__, entities.reject):
        with pytest.raises(KeyError, match="no new entity 'nothing'"):
            ask("nothing")


def test_to_dict_has_the_members_with_their_documents_on_one_line():
    entities = of_groups([0])
    (data,) = [entity.to_dict() for entity in entities]
    assert data["name"] == "name 0"
    assert data["medoid"] == 0
    assert data["cohesion"] == 1.0
    assert data["members"] == [
        {
            "document": "id0",
            "fingerprint": "doc0",
            "start": 0,
            "end": 3,
            "text": "name 0",
            "label": "THING",
            "before": "before the ",
            "after": " after",
        }
    ]
    assert data["nearest"][0] == {
        "kb_id": "E1",
        "title": "one",
        "probability": 0.3,
        "reason": "below the threshold of 0.5",
    }


def test_bad_edits_change_nothing():
    entities = of_groups([0, 0, 1])
    a, b = entities.ids
    for wrong, message in (([5], "there is no 5"), ([], "leave mentions"), ([0, 1], "leave")):
        with raises(message):
            entities.split(a, wrong)
    with pytest.raises(KeyError):
        entities.merge(a, b, "nothing")
    with raises("No linker has"):
        entities.accept(b)
    with raises("no such decision"):
        entities.undo()
    assert members(entities) == {a: [0, 1], b: [2]}
    assert not entities.log
    entities.merge(a, a)
    assert len(entities) == 2
    assert not entities.log
    entities.mark_accepted(b, "E1")
    with raises("linker.new_entities.undo"):
        entities.undo()
    assert entities.resolve(b) == "E1"


def test_saving_keeps_everything(tmp_path):
    entities = of_groups([0, 0, 1, 2, 3])
    entities.documents = 9
    names = entities.ids
    names.append(entities.split(entities.ids[0], [0]).id)
    entities.reject(entities.ids[-1])
    entities.mark_accepted(entities.ids[-1], "E5")
    entities.to_disk(tmp_path / "new")
    again = NewEntities.from_disk(tmp_path / "new")
    assert list(again) == list(entities)
    assert again.log == entities.log
    assert again.documents == 9
    assert all(again.resolve(name) == entities.resolve(name) for name in names)
    assert again.rows.records == entities.rows.records
    assert again.fingerprint == "encoder"
    rows = np.arange(len(entities.rows))
    documents = entities.rows.take(rows).documents.tolist()
    assert again.rows.take(rows).documents.tolist() == documents
    assert documents == numbers_of(again.rows.records)
    assert again.threshold == 0.5
    assert again.to_bytes() == entities.to_bytes()
    assert list(NewEntities.from_bytes(NewEntities().to_bytes())) == []


def test_a_split_that_restores_an_entity_restores_its_id():
    entities = of_groups([0, 0, 1, 1, 2])
    a, b, c = entities.ids
    entities.merge(a, b, c)
    off = entities.split(a, [2, 3])
    assert off.id == b
    assert members(entities) == {a: [0, 1, 4], b: [2, 3]}
    assert entities.resolve(c) == a
    assert entities.resolve(b) == b
    # Also where the other part is the one that stays: each id is where its first mention is.
    off = entities.split(a, [0, 1])
    assert off.id == a
    assert members(entities) == {a: [0, 1], b: [2, 3], c: [4]}
    assert len(set(entities.decided().numbers.tolist())) == 3, "they stay apart"


def test_an_edit_of_an_id_that_leads_elsewhere_names_where():
    entities = of_groups([0, 1, 1])
    b, a = entities.ids
    entities.merge(b, a)
    assert entities[a].id == b, "reading follows"
    for edit in (entities.reject, entities.named, lambda i: entities.mark_accepted(i, "E1")):
        with raises(f"{a}' was merged into '{b}'.*3 mentions"):
            edit(a)
    with raises("was merged into"):
        entities.split(a, [0])
    with raises("was merged into"):
        entities.merge(b, a)
    assert members(entities) == {b: [0, 1, 2]}
    assert len(entities.log) == 1


def test_undoing_leaves_mentions_that_came_since():
    entities = of_groups([0, 1, 2])
    a, b, c = entities.ids
    entities.merge(b, c)
    entities.add_groups(mentions([7]), np.array([0]), {0: 1})
    assert members(entities) == {b: [1, 2, 7], a: [0]}
    entities.undo()
    assert members(entities) == {b: [1, 7], a: [0], c: [2]}
    assert entities.resolve(b) == b
    assert entities.resolve(c) == c
    entities.split(b, [1])
    entities.undo()
    assert members(entities) == {b: [1, 7], a: [0], c: [2]}
    entities.reject(c)
    entities.add_groups(mentions([8]), np.array([0]), {0: 2})
    entities.undo()
    assert members(entities) == {b: [1, 7], c: [2, 8], a: [0]}


def discovered_later(entities, numbers, groups, known):
    """What a later discovery gives: the mentions of ``numbers`` in groups."""
    later = entities.continued()
    new = [n for n in numbers if later.rows.row(key_of(n)) < 0]
    later.add_groups(mentions(new), np.array(groups)[[numbers.index(n) for n in new]], known)
    return later


def test_update_takes_over_a_later_discovery_and_keeps_what_it_did_not_see():
    entities = of_groups([0, 0, 1, 1, 2])
    a, b, c = entities.ids
    entities.reject(c)
    decided = entities.decided()
    assert decided.numbers.tolist() == [2]
    assert [r.key for r in decided.records] == [key_of(4)]
    assert decided.others == {key_of(0): 0, key_of(1): 0, key_of(2): 1, key_of(3): 1}
    later = discovered_later(entities, [1, 2, 3, 8], [0, 0, 1, 1], {0: 0, 1: 1})
    assert members(later) == {a: [1, 2], b: [3, 8]}
    assert later.resolve(c) == ""
    # Meanwhile another discovery has added to what is kept.
    entities.add_groups(mentions([20, 21]), np.array([0, 1]), {0: 0})
    fresh = entities.id_of(key_of(21))
    later.documents, entities.documents = 3, 5
    entities.update(later)
    assert members(entities) == {a: [1, 2, 0, 20], b: [3, 8], fresh: [21]}
    assert entities.resolve(c) == ""
    assert entities.documents == 8
    assert members(NewEntities.from_bytes(entities.to_bytes())) == members(entities)
    entities.mark_accepted(a, "E1")
    entities.update(later)
    assert members(entities) == {b: [3, 8], fresh: [21]}
    assert entities.resolve(a) == "E1"
    entities.reject(b)
    with raises("Discover again"):
        entities.update(later)
    assert members(entities) == {fresh: [21]}


def test_update_takes_over_what_was_decided_on_the_later_discovery():
    entities = of_groups([0, 1, 2])
    a, b, c = entities.ids
    later = discovered_later(entities, [0, 1, 2], [0, 1, 2], {0: 0, 1: 1, 2: 2})
    later.merge(a, b)
    later.reject(c)
    entities.update(later)
    assert members(entities) == {a: [0, 1]}
    assert entities.resolve(b) == a
    entities.undo()
    entities.undo()
    assert members(entities) == {a: [0], b: [1], c: [2]}


def test_update_keeps_an_acceptance_of_a_mention_that_is_rejected_with_others_later():
    entities = of_groups([0, 1])
    a, b = entities.ids
    later = discovered_later(entities, [0, 1], [0, 0], {0: 0})
    later.reject(a)
    entities.mark_accepted(b, "E1")
    entities.update(later)
    assert entities.decided().accepted == {key_of(1)}
    assert entities.resolve(a) == ""
    assert entities.resolve(b) == "E1"
    entities.revert(acceptances=True)
    assert not entities.decided().accepted
    assert entities.resolve(a) == ""
    assert not len(entities)


def test_update_of_nothing_and_by_another_encoder():
    entities, empty = of_groups([0, 1]), NewEntities()
    before = members(entities)
    empty.update(entities)
    assert members(empty) == before
    entities.update(NewEntities(0.5, "encoder"))
    assert members(entities) == before
    other = of_groups([0])
    other.fingerprint = "other"
    with raises("different encoders"):
        entities.update(other)


class Edits(RuleBasedStateMachine):
    """Any edits in any order, compared with sets of mentions."""

    def __init__(self):
        super().__init__()
        self.entities = NewEntities(0.5, "encoder")
        self.sets = {}
        # What was there before each decision that can be undone.
        self.before = []
        self.count = 0

    @rule(place=st.integers(0, 5))
    def put(self, place):
        """To an entity that is there, or as one of its own."""
        known = {}
        if place < len(self.sets):
            known[0] = self.entities.clusters.number_of(self.entities.ids[place])
        new = mentions([self.count])
        self.entities.add_groups(new, np.array([0]), known)
        self.sets.setdefault(self.entities.id_of(new.keys[0]), set()).add(self.count)
        self.before = []
        self.count += 1

    @precondition(lambda self: len(self.sets) > 1)
    @rule(data=st.data())
    def merge(self, data):
        a, b = data.draw(st.permutations(sorted(self.sets)))[:2]
        self.before.append(deepcopy(self.sets))
        self.entities.merge(a, b)
        self.sets[a] |= self.sets.pop(b)

    @precondition(lambda self: any(len(s) > 1 for s in self.sets.values()))
    @rule(data=st.data())
    def split(self, data):
        name = data.draw(st.sampled_from(sorted(n for n, s in self.sets.items() if len(s) > 1)))
        entity = self.entities[name]
        last = len(entity.members) - 1
        chosen = data.draw(st.sets(st.integers(0, last), min_size=1, max_size=last))
        self.before.append(deepcopy(self.sets))
        off = self.entities.split(name, chosen)
        moved = set(numbers_of(entity.members[i] for i in chosen))
        rest = self.sets.pop(name) - moved
        (other,) = set(self.entities.ids) - set(self.sets) - {off.id}
        assert name in (off.id, other), "the id stays with one of the parts"
        self.sets.update({off.id: moved, other: rest})

    @precondition(lambda self: self.sets)
    @rule(data=st.data())
    def accept(self, data):
        name = data.draw(st.sampled_from(sorted(self.sets)))
        taken = self.entities.mentions_of(name)
        self.before.append(deepcopy(self.sets))
        self.entities.mark_accepted(name, "E1")
        assert set(numbers_of(taken.records)) == self.sets.pop(name)
        assert self.entities.resolve(name) == "E1"

    @precondition(lambda self: self.sets)
    @rule(data=st.data())
    def reject(self, data):
        name = data.draw(st.sampled_from(sorted(self.sets)))
        self.before.append(deepcopy(self.sets))
        self.entities.reject(name)
        self.sets.pop(name)

    @precondition(lambda self: self.before)
    @rule()
    def undo(self):
        """Of the last decisions, one after the other, with nothing put in between."""
        self.entities.revert(acceptances=True)
        self.sets = self.before.pop()
        assert all(self.entities.resolve(name) == name for name in self.sets)

    @rule()
    def save_and_load(self):
        self.entities = NewEntities.from_bytes(self.entities.to_bytes())

    @invariant()
    def entities_equal_the_sets(self):
        sets = {name: set(numbers) for name, numbers in members(self.entities).items()}
        assert sets == self.sets
        assert len(self.entities) == len(self.sets)


Edits.TestCase.settings = settings(stateful_step_count=15)
test_edits = Edits.TestCase


NAMES = "abc"
DECISIONS = st.one_of(
    st.builds(dict, action=st.sampled_from(["reject", "skip"]), id=st.sampled_from(NAMES)),
    st.builds(dict, action=st.just("merge"), id=st.just("a"), others=st.just(["b"])),
    st.builds(
        dict,
        action=st.just("accept"),
        id=st.sampled_from(NAMES),
        kb_id=st.sampled_from("XY"),
        added=st.booleans(),
    ),
)


@given(st.lists(st.one_of(DECISIONS, st.integers(0, 8)), max_size=12))
def test_what_is_free_can_be_undone_and_nothing_else(steps):
    """Steps are decisions, or numbers to undo where that is allowed."""
    log, standing = DecisionLog(), []
    for step in steps:
        if isinstance(step, int):
            if step not in log.free():
                with raises("E714" if step in standing else "E716"):
                    log.decision(step)
                continue
            assert log.decision(step)["n"] == step
            log.add("undo", of=step)
            standing.remove(step)
        else:
            entry = log.add(**step)
            standing.append(entry["n"])
        assert [entry["n"] for entry in log.standing()] == standing
    assert not standing or standing[-1] in log.free()


def test_an_entity_that_another_links_to_stays():
    log = DecisionLog()
    log.add("accept", id="a", kb_id="X", added=True)
    log.add("accept", id="b", kb_id="X", added=False)
    assert log.free() == {1}
    with raises(r"Decision 0 stays: decision 1 \(accept\) on “b”"):
        log.decision(0)
