"""Windows and normalized mentions of stretches are those of whole texts."""

from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_arbo_el.encoders import stretches, windows
from spacy_arbo_el.encoders.stretches import stretches_of
from spacy_arbo_el.encoders.windows import locate_mentions, mention_windows
from spacy_arbo_el.encoders.word_pieces import WordPieceTokenizer
from spacy_arbo_el.mentions.normalization import text as normalizing
from spacy_arbo_el.mentions.normalization.text import AmericanSpelling, PlainCharacters

from ..cases import cases
from .strategies import spans_of

WORDS = cases("odd_words")
SEPARATORS = [" ", " ", " ", "  ", "\n", "\u00a0", "", "\t "]


@st.composite
def documents(draw):
    """Texts, and mentions as rows of text, start and end."""
    texts, mentions = [], []
    for number in range(draw(st.integers(1, 2))):
        words = draw(st.lists(st.sampled_from(WORDS), min_size=1, max_size=60))
        text = "".join(word + draw(st.sampled_from(SEPARATORS)) for word in words)
        texts.append(text)
        for start in draw(st.lists(st.integers(0, len(text)), max_size=4)):
            end = draw(st.integers(start, min(start + 12, len(text))))
            mentions.append((number, start, end))
    table = np.array(draw(st.permutations(mentions)), dtype=np.int64).reshape(-1, 3)
    return texts, table[:, 0], table[:, 1:]


@pytest.fixture(autouse=True, scope="module")
def short():
    """Texts of a few words count as long."""
    with (
        patch.object(stretches, "UNCUT", 4),
        patch.object(windows, "UNCUT", 4),
        patch.object(windows, "CHARACTERS_AROUND", 1),
        patch.object(normalizing, "UNCUT", 4),
    ):
        yield


@given(documents(), st.integers(0, 20))
def test_stretches_hold_their_mentions_and_do_not_overlap(drawn, reach):
    texts, text_of, offsets = drawn
    if not len(text_of):
        return
    cut = stretches_of(texts, text_of, offsets, np.full(len(text_of), reach))
    last = (-1, 0)
    for stretch, source, (start, end) in zip(cut.texts, cut.source, cut.places):
        text = texts[source]
        assert stretch == text[start:end]
        assert (source, start) >= last
        assert start == 0 or text[start - 1] == " "
        assert end == len(text) or text[end] == " "
        last = (source, end)
    for row, (source, (start, end)) in enumerate(zip(text_of, offsets)):
        stretch, (at, to) = cut.text_of[row], cut.offsets[row]
        place = cut.places[stretch]
        assert cut.source[stretch] == source
        assert (at + place[0], to + place[0]) == (start, end)
        assert place[0] <= max(start - reach, 0)
        assert place[1] >= min(end + reach, len(texts[source]))


@given(documents(), st.integers(8, 24))
def test_windows_are_those_of_whole_texts(tokenizer, drawn, size):
    by_stretches, whole = WordPieceTokenizer(tokenizer), WordPieceTokenizer(tokenizer)
    assert by_stretches.reads_words
    whole.reads_words = False
    found, expected = (mention_windows(one, size, *drawn) for one in (by_stretches, whole))
    assert spans_of(found) == spans_of(expected)


@pytest.mark.parametrize("around", range(4, 12))
def test_a_long_text_is_read_where_its_mentions_are(tokenizer, around):
    text = "gene a virus b " * 300
    offsets = np.array([[2250, 2254], [4498, 4499], [0, 4]], dtype=np.int64)
    none = np.zeros(3, dtype=np.int64)
    located = locate_mentions(WordPieceTokenizer(tokenizer), [text], none, offsets, around)
    left, right = located.around()
    assert (left >= [around, around, 0]).all()
    assert (right >= [around, 0, around]).all()
    assert located.text_of.tolist() == [1, 2, 0]
    assert len(located.pieces.ids) < 200


def test_a_text_without_places_to_cut_is_read_as_a_whole(tokenizer):
    text = "中文" * 40
    located = locate_mentions(
        WordPieceTokenizer(tokenizer), [text], np.zeros(1, int), np.array([[40, 42]]), 6
    )
    assert len(located.pieces.ids) == 80


@pytest.mark.parametrize("normalizer", [PlainCharacters(), AmericanSpelling()])
@given(drawn=documents())
def test_local_normalizers_read_stretches_as_whole_texts(normalizer, drawn):
    texts, text_of, offsets = drawn
    for number, text in enumerate(texts):
        rows = offsets[text_of == number]
        found, expected = normalizing.normalized(normalizer, text, rows), normalizer(text, rows)
        assert found[0] == expected[0]
        assert found[1].tolist() == expected[1].tolist()
