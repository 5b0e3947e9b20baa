"""Finding by letters, against comparing with every name."""

from hypothesis import given
from hypothesis import strategies as st
from spacy.vocab import Vocab

from spacy_arbo_el.kb import lookup
from spacy_arbo_el.kb.entity import Entity
from spacy_arbo_el.kb.knowledge_base import ArboKB
from spacy_arbo_el.kb.lookup import alike, string_lookup, trigrams

NAMES = st.text(st.sampled_from("abcé \"'*-"), min_size=1, max_size=9).filter(str.strip)


@given(st.lists(st.lists(NAMES, min_size=1, max_size=3), max_size=12), NAMES)
def test_alike_is_as_comparing_with_all(groups, query):
    entities = [Entity(f"e{i}", n[0], aliases=tuple(n[1:])) for i, n in enumerate(groups)]
    kb = ArboKB(Vocab(), entities)
    wanted = trigrams(query.casefold())

    def dice(name):
        other = trigrams(name.casefold())
        return 2 * len(wanted & other) / max(len(wanted) + len(other), 1)

    likeness = {i: max(map(dice, e.names)) for i, e in enumerate(entities)}
    expected = sorted((-s, i) for i, s in likeness.items() if s >= 0.3)
    assert [(-s, i) for i, s in alike(kb.entities, query, 99)] == expected


def test_what_is_found_when_names_are_edited():
    kb = ArboKB(Vocab(), [Entity("a", "hepatitis"), Entity("b", "hepatic failure")])
    assert [p for p, _ in alike(kb.entities, "hepatitys", 5)] == [0, 1]
    kb.update(Entity("a", "gout"))
    kb.remove("b")
    assert alike(kb.entities, "hepatitis", 5) == []
    kb.add(Entity("c", "Hepatitis B"))
    assert [p for p, _ in alike(kb.entities, "HEPATITIS", 5)] == [2]


def test_common_trigrams_are_not_looked_up(monkeypatch):
    entities = [Entity(f"e{i}", f"common {i}") for i in range(200)] + [Entity("x", "common zeal")]
    kb = ArboKB(Vocab(), entities)
    monkeypatch.setattr(lookup, "POSTINGS", 50)
    assert alike(kb.entities, "common zeal", 1)[0] == (200, 1.0)


def test_lookup_tables():
    kb = ArboKB(
        Vocab(),
        [
            Entity("a", "cold", frequency=1),
            Entity("b", "Cold", frequency=5),
            Entity("c", "chill", "", ["COLD"], frequency=3),
            Entity("d", "cold sore"),
        ],
    )
    find = string_lookup(exact=2, fuzzy=1, least=0.3)
    assert find(kb.entities, ["cold", "cold soar", "none", "cold"]).tolist() == [
        [1, 2, 0],  # the frequent ones first, then one more that is alike
        [3, -1, -1],
        [-1, -1, -1],
        [1, 2, 0],
    ]
    assert string_lookup(exact=3, fuzzy=0)(kb.entities, ["cold"]).tolist() == [[0, 1, 2]]
