"""Passages on a grid, against their definition, and sentences of mentions."""

import pytest
import spacy
from hypothesis import given
from hypothesis import strategies as st

from spacy_arbo_el.mentions.passages import NEAR, STEP, WIDTH, passages_around, sentence_of


@given(st.text(alphabet="ab \n", max_size=1500), st.data())
def test_a_passage_has_all_of_its_mention_and_text_on_both_sides(text, data):
    places = st.integers(0, len(text))
    start, end = sorted((data.draw(places), data.draw(places)))
    (passage,) = passages_around(text, [(start, end)])
    if len(text) <= WIDTH:
        assert passage == text
        return
    middle = (start + end) // 2
    least = WIDTH // 2 - STEP // 2 - NEAR - 1
    around = text[max(middle - least, 0) : middle + least]
    assert text[start:end] in passage
    assert around in passage
    assert len(passage) <= max(WIDTH, end - start) + WIDTH


def test_mentions_near_each_other_have_one_passage():
    text = "".join(f"{number:04} " for number in range(400))
    offsets = [(place, place + 4) for place in range(0, 2000, 5)]
    passages = passages_around(text, offsets)
    assert len(set(passages)) == len(text) // STEP - 1
    assert all(passage.endswith(" ") and passage[:1].isdigit() for passage in passages)


def test_a_text_without_white_space_is_cut_all_the_same():
    (passage,) = passages_around("\u5b57" * 1000, [(500, 502)])
    assert len(passage) == WIDTH


@pytest.mark.parametrize(
    "mention, sentence",
    [
        ("Ada", "Ada saw\n"),
        ("Halix", "Halix Inc. of\n the North\n"),
        ("it", "There it was."),
    ],
)
def test_a_sentence_ends_with_a_sign_or_a_line_that_does_not_go_on(mention, sentence):
    doc = spacy.blank("xx")("We met Dr. bo. Ada saw\nHalix Inc. of\n the North\n\nThere it was.")
    (token,) = (token for token in doc if token.text == mention)
    before, words, after = sentence_of(doc[token.i : token.i + 1])
    assert words == mention
    assert before + words + after == sentence


def test_a_sentence_is_that_of_the_document_where_it_has_some():
    nlp = spacy.blank("xx")
    nlp.add_pipe("sentencizer")
    doc = nlp("One here. Of Venus\nwe speak. Two there.")
    assert sentence_of(doc[4:5]) == ("Of ", "Venus", "\nwe speak.")


def test_a_long_sentence_is_cut_between_words():
    doc = spacy.blank("xx")(f"{'left ' * 90}Venus{' right' * 90}")
    before, words, after = sentence_of(doc[90:91])
    assert words == "Venus"
    assert before.startswith("… left")
    assert after.endswith("right …")
    assert len(before) < 310
    assert len(after) < 310
