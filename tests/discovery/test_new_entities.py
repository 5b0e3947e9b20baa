"""New entities as they are kept: what editing does, what is said of it, what survives writing."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from spacy_arbo_el.discovery.found import Member, Near, identify
from spacy_arbo_el.discovery.new_entities import NewEntities
from spacy_arbo_el.discovery.rows import Unlinked
from spacy_arbo_el.encoders.sequences import Sequences

WIDTH = 4


def mentions(numbers, seed=0):
    """Mentions by number, one a document."""
    count = len(numbers)
    ids = np.arange(count * 3, dtype=np.int32)
    places = np.zeros(count, dtype=np.int32)
    windows = Sequences(ids, np.arange(0, 3 * count + 1, 3), places, places + 1, places)
    vectors = np.stack([np.random.default_rng(n + seed).normal(size=WIDTH) for n in numbers])
    return Unlinked(
        [(f"doc{n}", n, n + 3) for n in numbers],
        [Member(n, n, n + 3, f"name {n}", "THING", "before", "after", f"id{n}") for n in numbers],
        [f"form {n}" for n in numbers],
        [[Near("E1", "one", 0.3), Near("E2", "two", round(0.1 + n / 100, 4))] for n in numbers],
        windows,
        vectors.astype(np.float32),
    )


def of_groups(groups):
    found = NewEntities(0.5, "encoder")
    found.put(mentions(range(len(groups))), np.array(groups))
    return found


def members(found):
    return {one.id: [m.document for m in one.members] for one in found}


def test_reading():
    found = of_groups([7, 3, 7, 3, 7])
    first, second = identify(("doc0", 0, 3)), identify(("doc1", 1, 4))
    assert len(found) == 2 and found.ids == [first, second] == [one.id for one in found]
    assert members(found) == {first: [0, 2, 4], second: [1, 3]}
    assert found[first] == found[0] == found[:1][0] == found[-2] and first in found
    assert found[0].documents == 3 and found[0].name == found[0].members[found[0].medoid].text
    assert [near.kb_id for near in found[0].nearest] == ["E1", "E2"]
    assert found[0].nearest[1].chance == pytest.approx(0.14)
    assert found[0].nearest[0].why == "under the threshold of 0.5"
    assert found.id_of(("doc3", 3, 6)) == second and found.id_of(("doc9", 0, 1)) == ""
    assert found.mentions_of(second).vectors.shape == (2, WIDTH)
    assert "nothing" not in found and 3 not in found
    for ask in (found.resolve, found.__getitem__, found.reject):
        with pytest.raises(KeyError, match="no new entity 'nothing'"):
            ask("nothing")


def test_merge_split_reject_and_release():
    found = of_groups([0, 0, 1, 2, 0])
    a, b, c = (identify((f"doc{n}", n, n + 3)) for n in (0, 2, 3))
    assert [m.document for m in found.merge(b, a).members] == [0, 1, 2, 4]
    assert found.resolve(a) == b and found[a].id == b and a not in found.ids
    off = found.split(b, [1, 3])
    assert [m.document for m in off.members] == [1, 4] and off.id == identify(("doc1", 1, 4))
    assert [m.document for m in found[b].members] == [0, 2]
    found.reject(c)
    assert c not in found and found.resolve(c) == "" and found.id_of(("doc3", 3, 6)) == ""
    gone = found.mentions_of(off.id)
    found.release(off.id, "E9")
    assert gone.keys == [("doc1", 1, 4), ("doc4", 4, 7)] and gone.forms == ["form 1", "form 4"]
    assert len(gone.windows) == 2 and found.resolve(off.id) == "E9" and off.id not in found
    assert members(found) == {b: [0, 2]}
    assert [entry["action"] for entry in found.log] == ["merge", "split", "reject", "accept"]
    assert found.log[0]["into"] == b and found.log[1]["mentions"] == [
        ["doc1", 1, 4],
        ["doc4", 4, 7],
    ]
    assert found.log[3]["kb_id"] == "E9" and all(
        entry["at"].endswith("+00:00") for entry in found.log
    )


def test_bad_edits_change_nothing():
    found = of_groups([0, 0, 1])
    a, b = found.ids
    for wrong, message in (([5], "there is no 5"), ([], "leave mentions"), ([0, 1], "leave")):
        with pytest.raises(ValueError, match=message):
            found.split(a, wrong)
    with pytest.raises(KeyError):
        found.merge(a, b, "nothing")
    assert members(found) == {a: [0, 1], b: [2]} and not found.log
    found.merge(a, a)
    assert len(found) == 2 and not found.log


def test_what_was_split_or_rejected_takes_no_part_in_joining():
    found = of_groups([0, 0, 1])
    a, b = found.ids
    off = found.split(a, [1])
    # Near both halves of what was split: the nearest gets it, and they stay two.
    (name,) = found.attach(mentions([5]), np.array([[1, 0]]))
    assert name == off.id and members(found) == {off.id: [1, 5], a: [0], b: [2]}
    found.reject(b)
    (name,) = found.attach(mentions([6]), np.array([[2, 0]]))
    assert name == "" and b not in found and a in found
    found.merge(a, off.id)
    assert members(found) == {a: [0, 1, 5]}
    assert found.attach(mentions([8]), np.array([[0, 1]])) == [a]


def test_joining_is_logged_and_old_ids_lead_on():
    found = of_groups([0, 1])
    a, b = found.ids
    assert found.attach(mentions([4, 5]), np.array([[1, 0], [-1, -1]])) == [a, found.ids[-1]]
    assert found.resolve(b) == a and found.log[-1]["into"] == a
    assert found.log[-1]["mention"] == "doc4:4:7"


def test_mentions_that_were_taken_up_elsewhere_leave():
    found = of_groups([0, 0, 1])
    a, b = found.ids
    found.leave_out([("doc0", 0, 3), ("doc2", 2, 5), ("doc9", 9, 12)], "E4")
    assert members(found) == {a: [1]} and found.resolve(b) == "E4"
    assert found.log[-1]["kb_id"] == "E4" and len(found.log) == 1


def test_writing(tmp_path):
    found = of_groups([0, 0, 1, 2, 3])
    found.documents = 9
    found.split(found.ids[0], [0])
    found.reject(found.ids[-1])
    found.release(found.ids[-1], "E5")
    found.to_disk(tmp_path / "new")
    again = NewEntities.from_disk(tmp_path / "new")
    assert list(again) == list(found) and again.log == found.log and again.documents == 9
    assert all(again.resolve(name) == found.resolve(name) for name in found._ids)
    assert again.rows.forms == found.rows.forms and again.fingerprint == "encoder"
    assert again.attach(mentions([9]), np.array([[1, 0]])) == found.attach(
        mentions([9]), np.array([[1, 0]])
    )
    assert list(NewEntities.from_bytes(NewEntities().to_bytes())) == []


@given(st.binary(max_size=60))
def test_other_bytes_are_refused(data):
    with pytest.raises(ValueError, match="not new entities"):
        NewEntities.from_bytes(data)


@given(st.data())
@settings(max_examples=30)
def test_broken_bytes_never_give_half(data):
    whole = of_groups([0, 0, 1]).to_bytes()
    cut = data.draw(st.integers(0, len(whole) - 1))
    with pytest.raises(ValueError, match="not new entities"):
        NewEntities.from_bytes(whole[:cut])


class Edits(RuleBasedStateMachine):
    """Any edits in any order, against sets of mentions."""

    def __init__(self):
        super().__init__()
        self.found = NewEntities(0.5, "encoder")
        self.sets = {}
        self.count = 0

    @rule(near=st.lists(st.integers(0, 30), max_size=3))
    def come(self, near):
        known = [n % len(self.found.rows) for n in near] if len(self.found.rows) else []
        known += [-1] * (3 - len(known))
        new = mentions([self.count])
        (name,) = self.found.attach(new, np.array([known]))
        gone = {n for n in self.sets if n not in self.found.ids}
        joined = set().union(*(self.sets.pop(n) for n in gone), {self.count})
        self.sets[name] = self.sets.get(name, set()) | joined
        self.count += 1

    @precondition(lambda self: len(self.sets) > 1)
    @rule(data=st.data())
    def merge(self, data):
        a, b = data.draw(st.permutations(sorted(self.sets)))[:2]
        self.found.merge(a, b)
        self.sets[a] |= self.sets.pop(b)

    @precondition(lambda self: any(len(s) > 1 for s in self.sets.values()))
    @rule(data=st.data())
    def split(self, data):
        name = data.draw(st.sampled_from(sorted(n for n, s in self.sets.items() if len(s) > 1)))
        one = self.found[name]
        chosen = data.draw(st.sets(st.integers(0, len(one.members) - 1), min_size=1, max_size=1))
        off = self.found.split(name, chosen)
        moved = {one.members[i].document for i in chosen}
        self.sets[name] -= moved
        self.sets[off.id] = moved

    @precondition(lambda self: self.sets)
    @rule(data=st.data())
    def accept(self, data):
        name = data.draw(st.sampled_from(sorted(self.sets)))
        taken = self.found.mentions_of(name)
        self.found.release(name, "E1")
        assert {m.document for m in taken.members} == self.sets.pop(name)
        assert self.found.resolve(name) == "E1"

    @rule()
    def write_and_read(self):
        self.found = NewEntities.from_bytes(self.found.to_bytes())

    @invariant()
    def the_same_sets(self):
        there = {one.id: {m.document for m in one.members} for one in self.found}
        assert there == self.sets and len(self.found) == len(self.sets)


Edits.TestCase.settings = settings(max_examples=40, stateful_step_count=15, deadline=None)
test_edits = Edits.TestCase
