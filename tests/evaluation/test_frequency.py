"""Accuracy by frequency against a plain count."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from spacy.vocab import Vocab

from spacy_arbo_el.evaluation.frequency import (
    band_names,
    entity_counts,
    frequency_table,
    scores_by_frequency,
)
from spacy_arbo_el.evaluation.scorer import Outcome
from spacy_arbo_el.kb.entity import Entity
from spacy_arbo_el.kb.knowledge_base import ArboKB
from spacy_arbo_el.mentions.records import MentionRecord

IDS = ["a", "b", "c", "d"]
LIMITS = {"[0, 1)": (0, 1), "[1, 10)": (1, 10), "[10, 100)": (10, 100)}
LIMITS |= {"[100, 1000)": (100, 1000), "[1000, …)": (1000, 10**9)}


def printed(table):
    console = Console(width=130)
    with console.capture() as capture:
        console.print(table)
    return capture.get()


gold_ids = st.one_of(st.none(), st.lists(st.sampled_from(IDS), max_size=2).map(tuple))
outcome_lists = st.lists(st.builds(Outcome, st.just(""), gold_ids, st.sampled_from(IDS), st.none()))
frequencies = st.dictionaries(st.sampled_from(IDS), st.integers(0, 3000))


@given(outcome_lists, frequencies)
def test_each_mention_is_in_the_band_of_its_most_frequent_entity(found, counts):
    scores = scores_by_frequency(found, counts)
    for name, (low, high) in LIMITS.items():
        inside = [
            r.predicted in r.gold
            for r in found
            if r.gold and low <= max(counts.get(i, 0) for i in r.gold) < high
        ]
        if inside:
            expected = {"mentions": len(inside), "accuracy": sum(inside) / len(inside)}
            assert scores.pop(name) == pytest.approx(expected)
    assert not scores


def test_band_names_and_counts():
    assert band_names() == list(LIMITS)
    records = [
        MentionRecord((str(i), 0, 1), ids, "x") for i, ids in enumerate([("a",), ("a", "b")])
    ]
    kb = ArboKB(Vocab(), [Entity("a"), Entity("b"), Entity("c")])
    assert entity_counts(records, kb) == {"a": 2, "b": 1}
    kb.merge("b", "a")
    assert entity_counts(records, kb) == {"a": 2}


def test_table_has_the_bands_with_mentions_and_their_numbers():
    rows = {
        "one": {"[0, 1)": {"mentions": 3, "accuracy": 1 / 3}},
        "two": {
            "[0, 1)": {"mentions": 3, "accuracy": 1.0},
            "[10, 100)": {"mentions": 5, "accuracy": 0.2},
        },
    }
    text = printed(frequency_table(rows))
    lines = [line.replace("│", " ").split() for line in text.splitlines()]
    assert ["one", "0.3333", "–"] in lines and ["two", "1.0000", "0.2000"] in lines
    assert ["mentions", "3", "0"] in lines and ["mentions", "3", "5"] in lines
    assert "[1, 10)" not in text
