"""Similar names by trigrams, compared with a comparison of all names."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from spacy.vocab import Vocab

from spacy_arbo_el.base.spellings import all_spellings, folded, without_accents
from spacy_arbo_el.kb import lookup
from spacy_arbo_el.kb.entity import Entity
from spacy_arbo_el.kb.knowledge_base import ArboKB
from spacy_arbo_el.kb.lookup import similar_names, trigrams

from ..cases import cases

NAMES = st.text(st.sampled_from("abcé \"'*-"), min_size=1, max_size=9).filter(str.strip)


@given(st.lists(st.lists(NAMES, min_size=1, max_size=3), max_size=12), NAMES)
def test_similar_names_are_those_of_a_comparison_with_all_names(groups, query):
    entities = [Entity(f"e{i}", n[0], aliases=tuple(n[1:])) for i, n in enumerate(groups)]
    kb = ArboKB(Vocab(), entities)
    own = folded(query)
    wanted = [trigrams(form) for form in (own, without_accents(own))]

    def dice(name):
        other = trigrams(name)
        return max(2 * len(one & other) / max(len(one) + len(other), 1) for one in wanted)

    similarity = {i: max(map(dice, all_spellings(e.names))) for i, e in enumerate(entities)}
    expected = sorted((-s, i) for i, s in similarity.items() if s >= 0.3)
    assert [(-s, i) for i, s in similar_names(kb.entities, query, 99)] == expected


def test_similar_names_after_edits():
    kb = ArboKB(Vocab(), [Entity("a", "hepatitis"), Entity("b", "hepatic failure")])
    assert [p for p, _ in similar_names(kb.entities, "hepatitys", 5)] == [0, 1]
    kb.update(Entity("a", "gout"))
    kb.remove("b")
    assert similar_names(kb.entities, "hepatitis", 5) == []
    kb.add(Entity("c", "Hepatitis B"))
    assert [p for p, _ in similar_names(kb.entities, "HEPATITIS", 5)] == [2]


def test_common_trigrams_are_not_looked_up(monkeypatch):
    entities = [Entity(f"e{i}", f"common {i}") for i in range(200)] + [Entity("x", "common zeal")]
    kb = ArboKB(Vocab(), entities)
    monkeypatch.setattr(lookup, "POSTINGS", 50)
    assert similar_names(kb.entities, "common zeal", 1)[0] == (200, 1.0)


@pytest.mark.parametrize(("query", "expected"), cases("similar_letters"))
def test_names_of_the_same_letters_are_found(query, expected):
    names = ["IL-2", "L’Oréal", "AT&T", "Müller GmbH & Co. KG", "Škoda", "IL-21", "がん"]
    kb = ArboKB(Vocab(), [Entity(id_, name) for id_, name in zip("abcdefg", names)])
    assert [entity.id for entity in kb.search(query, 1)] == list(expected)
