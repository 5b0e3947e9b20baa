import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from spacy_arbo_el.base.arrays import offsets_of
from spacy_arbo_el.contrib.papers.ngrams.fields import (
    Field,
    averages,
    entity_fields,
    mention_fields,
)
from spacy_arbo_el.contrib.papers.ngrams.hashing import BREAK, PLACE
from spacy_arbo_el.contrib.papers.ngrams.reader import NgramReader

from . import oracle

ROWS = 53
NUMBERS = st.sampled_from([BREAK, PLACE, 2, 3, 40, 99])


def lists_of(field):
    return [field.ids[a:b].tolist() for a, b in zip(field.offsets[:-1], field.offsets[1:])]


@given(st.lists(st.lists(NUMBERS, max_size=8), max_size=5))
def test_averages_are_those_of_a_loop_over_ngrams(groups):
    table = np.random.default_rng(0).normal(size=(ROWS, 4)).astype(np.float32)
    lengths = np.array([len(group) for group in groups], dtype=np.int64)
    flat = np.array([i for group in groups for i in group], dtype=np.int32)
    unigrams, bigrams = (
        matrix @ table for matrix in averages(Field(flat, offsets_of(lengths)), ROWS)
    )
    for row, group in enumerate(groups):
        kept = [oracle.unigram_row(i, ROWS) for i in group if i != BREAK]
        pairs = [
            oracle.bigram_row(a, b, ROWS)
            for a, b in zip(group, group[1:])
            if a != BREAK and b != BREAK
        ]
        for found, rows in ((unigrams[row], kept), (bigrams[row], pairs)):
            expected = table[rows].mean(axis=0) if rows else np.zeros(4)
            assert np.allclose(found, expected, atol=1e-6)


def test_fields_of_a_mention_are_those_of_the_paper():
    text = "Costa has not played since the forward"
    start = text.index("played")
    reader = NgramReader(near=2)
    inputs = reader.read_mentions(
        None, [text], np.zeros(2, int), np.array([[start, start + 6], [0, 5]])
    )
    words = [oracle.word(part) for part in text.split()]
    span, left, right, sentence = map(lists_of, mention_fields(inputs, 2))
    assert span == [words[3:4], words[:1]]
    assert left == [words[1:3], []]
    assert right == [words[4:6], words[1:3]]
    assert sentence == [[*words[:3], PLACE, *words[4:]], [PLACE, *words[1:]]]


def test_fields_of_an_entity_are_names_description_and_types():
    texts = [("cold\nflu", "An illness\nDisease\nState"), ("", "Only this"), ("flu", "")]
    title, description, types = map(lists_of, entity_fields(NgramReader().read_texts(None, texts)))

    def without_breaks(groups):
        return [[i for i in group if i != BREAK] for group in groups]

    def numbers(*groups):
        return [[oracle.word(part) for part in group.split()] for group in groups]

    assert without_breaks(title) == numbers("cold flu", "", "flu")
    assert without_breaks(description) == numbers("An illness", "Only this", "")
    assert without_breaks(types) == numbers("Disease State", "", "")
