"""Sentences of texts and of mentions, against their definition."""

import pytest
import spacy
from hypothesis import example, given
from hypothesis import strategies as st

from spacy_arbo_el.mentions.sentences import (
    LONGEST,
    NEAR,
    contexts_around,
    sentence_bounds,
    sentence_of,
)


@given(st.text(alphabet="aB. \n", max_size=1500))
@example("A" + " " * 1000 + "B")
def test_sentences_are_the_text_in_order_without_what_is_blank(text):
    bounds = sentence_bounds(text)
    end = 0
    for start, following in [*bounds, (len(text), len(text))]:
        assert not text[end:start].strip()
        end = following
    assert all(text[start:end].strip() and end - start <= LONGEST for start, end in bounds)


@given(st.text(alphabet="aB. \n", min_size=1, max_size=1500), st.data())
def test_a_mention_has_its_own_sentences_and_those_near(text, data):
    start = data.draw(st.integers(0, len(text) - 1))
    end = data.draw(st.integers(start + 1, len(text)))
    middle = (start + end) // 2
    near = min(start, middle - NEAR), max(end, middle + NEAR)
    (context,) = contexts_around(text, [(start, end)])
    around = [(a, b) for a, b in sentence_bounds(text) if a < near[1] and near[0] < b]
    assert [line for line, _ in context] == [" ".join(text[a:b].split()) for a, b in around]
    assert sum(share for _, share in context) == pytest.approx(1 if context else 0)
    within = [i for i, (a, b) in enumerate(around) if a < end and start < b]
    if within:
        assert sum(context[i][1] for i in within) >= 0.5


def test_a_text_without_white_space_is_cut_all_the_same():
    text = "\u5b57" * 1000
    assert [end - start for start, end in sentence_bounds(text)] == [LONGEST, LONGEST, 200]


@pytest.mark.parametrize(
    "mention, sentence",
    [
        ("Ada", "Ada saw"),
        ("Halix", "Halix Inc. of\n the North"),
        ("it", "There it was."),
        ("the", "Halix Inc. of\n the North"),
    ],
)
def test_a_sentence_ends_with_a_sign_or_a_line_that_does_not_go_on(mention, sentence):
    doc = spacy.blank("xx")("We met Dr. bo. Ada saw\nHalix Inc. of\n the North\n\nThere it was.")
    (token,) = (token for token in doc if token.text == mention)
    before, words, after = sentence_of(doc[token.i : token.i + 1], doc.text)
    assert words == mention
    assert before + words + after == sentence


def test_a_sentence_is_that_of_the_document_where_it_has_some():
    nlp = spacy.blank("xx")
    nlp.add_pipe("sentencizer")
    doc = nlp("One here. Of Venus\nwe speak. Two there.")
    assert sentence_of(doc[4:5], doc.text) == ("Of ", "Venus", "\nwe speak.")


def test_a_long_sentence_is_cut_between_words():
    doc = spacy.blank("xx")(f"{'left ' * 90}Venus{' right' * 90}")
    before, words, after = sentence_of(doc[90:91], doc.text)
    assert words == "Venus"
    assert before.startswith("… left")
    assert after.endswith("right …")
    assert len(before) < 310
    assert len(after) < 310
