import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_arbo_el.contrib.papers.ngrams.hashing import number_tokens, tokenize

from ....cases import cases
from . import oracle

# Letters, marks, digits, spaces, symbols, scripts without spaces, and characters beyond the tables.
CHARACTERS = st.sampled_from("aBé3 \n\t.,-_'İßक्दे東京ไท가👍𠀀\u200d\x00") | st.characters()
TEXTS = st.lists(st.text(CHARACTERS, max_size=12), max_size=5)


@given(TEXTS, st.data())
def test_tokens_are_those_of_a_loop_over_characters(texts, data):
    total = sum(map(len, texts))
    cuts = data.draw(st.lists(st.integers(0, total), max_size=4))
    tokens = tokenize(texts, np.array(cuts, dtype=np.int64))
    start, expected = 0, []
    for number, text in enumerate(texts):
        of_text = oracle.tokens_of(text, {cut - start for cut in cuts})
        expected.extend((start + a, start + b) for a, b in of_text)
        assert tokens.bounds[number + 1] == len(expected)
        start += len(text)
    assert list(zip(tokens.starts.tolist(), tokens.ends.tolist())) == expected


@given(TEXTS)
def test_numbers_are_those_of_a_loop_over_tokens(texts):
    tokens = tokenize(texts)
    joined = "".join(texts)
    numbers = number_tokens(tokens)
    assert numbers.tolist() == [
        oracle.word(joined[a:b]) for a, b in zip(tokens.starts, tokens.ends)
    ]


@pytest.mark.parametrize("text, sentences", cases("sentences"))
def test_sentences_end_at_their_punctuation_and_at_lines(text, sentences):
    tokens = tokenize([text])
    found = {}
    for start, end, number in zip(tokens.starts, tokens.ends, tokens.sentences):
        found.setdefault(int(number), []).append(text[start:end])
    assert list(found.values()) == sentences
