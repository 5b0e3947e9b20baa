"""The one log of decisions: what stands, what can be undone, what can be made again."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_arbo_el.discovery.decision_log import DecisionLog

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
    log, standing, undone = DecisionLog(), [], []
    for step in steps:
        if isinstance(step, int):
            if step not in log.free():
                with pytest.raises(ValueError, match="E714" if step in standing else "E716"):
                    log.decision(step)
                continue
            assert log.decision(step)["n"] == step
            log.add("undo", of=step)
            standing.remove(step)
            undone.append(step)
        else:
            entry = log.add(**step)
            standing.append(entry["n"])
            undone = []
        assert [entry["n"] for entry in log.standing()] == standing
        assert [entry["n"] for entry in log.undone()] == undone
    assert not standing or standing[-1] in log.free()


def test_a_decision_that_is_made_again_leaves_what_else_was_undone():
    log = DecisionLog()
    for name in NAMES:
        log.add("reject", id=name)
    for number in (2, 1):
        log.add("undo", of=number)
    log.add("reject", id="b", redo=1)
    assert [entry["id"] for entry in log.undone()] == ["c"]


def test_an_entity_that_another_links_to_stays():
    log = DecisionLog()
    log.add("accept", id="a", kb_id="X", added=True)
    log.add("accept", id="b", kb_id="X", added=False)
    assert log.free() == {1}
    with pytest.raises(ValueError, match=r"Decision 0 stays: decision 1 \(accept\) on “b”"):
        log.decision(0)
