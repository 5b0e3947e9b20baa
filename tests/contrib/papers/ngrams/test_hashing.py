import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_arbo_el.contrib.papers.ngrams.hashing import BREAK, number_tokens, tokenize

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


@given(TEXTS, st.integers(0, 5), st.data())
def test_numbers_are_those_of_a_loop_over_tokens(texts, longest, data):
    tokens = tokenize(texts)
    flags = st.lists(st.booleans(), min_size=len(tokens), max_size=len(tokens))
    with_subwords, breaks = (np.array(data.draw(flags), dtype=bool) for _ in range(2))
    words, stream, places = number_tokens(tokens, with_subwords, longest, breaks)
    joined = "".join(texts)
    for i, (start, end) in enumerate(zip(tokens.starts, tokens.ends)):
        text = joined[start:end]
        own = [oracle.word(text)]
        assert words[i] == own[0]
        if breaks[i]:
            own = [BREAK, *own]
        if with_subwords[i]:
            own = [*own, *oracle.subwords(text, longest)]
        assert stream[places[i] : places[i + 1]].tolist() == own
    assert places[-1] == len(stream) and (stream >= 0).all() and (stream < 1 << 31).all()


@pytest.mark.parametrize("text, sentences", cases("sentences"))
def test_sentences_end_at_their_punctuation_and_at_lines(text, sentences):
    tokens = tokenize([text])
    found = {}
    for start, end, number in zip(tokens.starts, tokens.ends, tokens.sentences):
        found.setdefault(int(number), []).append(text[start:end])
    assert list(found.values()) == sentences


def test_upper_and_lower_case_have_the_same_number():
    tokens = tokenize(["Diabetes DIABETES diabetes other"])
    none = np.zeros(len(tokens), dtype=bool)
    words, _, _ = number_tokens(tokens, none, 0, none)
    assert words[0] == words[1] == words[2] != words[3]
