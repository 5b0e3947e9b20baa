"""Windows and entity texts against an oracle that tokenizes and cuts them one by one."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from spacy_arbo_el.encoders.loading import load_pretrained
from spacy_arbo_el.encoders.tokenization import END, MARKERS, START, TITLE, PieceTokenizer

from ..tiny import save_tiny
from .strategies import lists_of

WORDS = [
    "gene",
    "BRCA1-related",
    "supercalifragilistic",
    "é",
    "naïve",
    "中文",
    "🙂",
    "👩‍🔬",
    "e\u0301",
    "a",
    "G6PD,",
    "x.",
    "\n",
    "[START]",
    "[SEP]",
]


@pytest.fixture(scope="module")
def byte_level(tmp_path_factory):
    """A tokenizer of RoBERTa's kind: its pieces are bytes, several to a character."""
    folder = save_tiny(tmp_path_factory.mktemp("byte") / "roberta", "roberta")
    return load_pretrained(str(folder), "eager")[0]


def plain_pieces(tokenizer, text):
    """Ids and offsets of a text, by transformers' own road."""
    encoding = tokenizer(
        text,
        add_special_tokens=False,
        return_offsets_mapping=True,
        split_special_tokens=True,
        truncation=False,
    )
    return encoding["input_ids"], encoding["offset_mapping"]


def naive_window(tokenizer, text, start, end, size):
    """One window: its ids, where the mention's pieces begin and end, and how many there are."""
    ids, offsets = plain_pieces(tokenizer, text)
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
    begin, finish = tokenizer.convert_tokens_to_ids([START, END])
    left = left[len(left) - n_left :]
    first, last = tokenizer.cls_token_id, tokenizer.sep_token_id
    return [first, *left, begin, *mention, finish, *right[:n_right], last], n_left + 1, len(mention)


@st.composite
def documents(draw):
    texts, mentions = [], []
    for number in range(draw(st.integers(1, 3))):
        text = draw(st.sampled_from(["", " "])).join(
            draw(st.lists(st.sampled_from(WORDS), min_size=1, max_size=30))
        )
        texts.append(text)
        for _ in range(draw(st.integers(0, 3))):
            start = draw(st.integers(0, len(text) - 1))
            mentions.append((number, start, draw(st.integers(start + 1, len(text)))))
    return texts, mentions


def check_windows(tokenizer, texts, mentions, size):
    columns = np.array(mentions, dtype=np.int64).reshape(-1, 3).T
    windows = PieceTokenizer(tokenizer, size).windows(texts, *columns)
    assert len(windows) == len(mentions)
    begin, finish = tokenizer.convert_tokens_to_ids([START, END])
    for i, (number, start, end) in enumerate(mentions):
        ids = lists_of(windows)[i]
        expected, anchor, count = naive_window(tokenizer, texts[number], start, end, size)
        assert ids == expected and len(ids) <= size
        assert windows.anchor[i] == anchor and ids[anchor] == begin
        assert ids.count(begin) == ids.count(finish) == 1
        assert ids[anchor + count + 1] == finish
        # The name is what lies between the markers; the markers where nothing does.
        name = (anchor + 1, anchor + count) if count else (anchor, anchor + 1)
        assert (windows.first[i], windows.last[i]) == name


@settings(max_examples=150)
@given(documents(), st.integers(8, 40))
@example((["a b"], [(0, 1, 2)]), 8)  # white space is a mention without pieces
@example((["a", "\n \n", "b"], [(1, 0, 3), (0, 0, 1), (2, 0, 1)]), 8)  # a text without pieces
def test_windows_equal_the_oracle(tokenizer, drawn, size):
    check_windows(tokenizer, *drawn, size)


@settings(max_examples=100)
@given(documents(), st.integers(8, 40))
def test_windows_of_a_byte_level_tokenizer_equal_the_oracle(byte_level, drawn, size):
    check_windows(byte_level, *drawn, size)


def text_of(tokenizer, ids):
    return tokenizer.decode(ids, skip_special_tokens=False)


@pytest.mark.parametrize(
    "start, end, expected",
    [
        (0, 3, "[CLS] [START] one [END] two three four five six seven [SEP]"),
        (40, 43, "[CLS] three four five six seven eight [START] ten [END] [SEP]"),
        (8, 13, "[CLS] one two [START] three [END] four five six seven [SEP]"),
        (14, 18, "[CLS] one two three [START] four [END] five six seven [SEP]"),
    ],
)
def test_context_is_shared_out_and_goes_where_it_is_needed(tokenizer, start, end, expected):
    text = "one two three four five six seven eight ten"
    assert len(text) == 43
    windows = PieceTokenizer(tokenizer, 11).windows(
        [text], np.array([0]), np.array([start]), np.array([end])
    )
    assert text_of(tokenizer, windows.ids) == expected


def test_a_long_mention_keeps_its_two_ends(tokenizer):
    text = "we saw one two three four five six seven eight nine and left"
    start, end = text.index("one"), text.index(" and")
    windows = PieceTokenizer(tokenizer, 8).windows(
        [text], np.array([0]), np.array([start]), np.array([end])
    )
    assert text_of(tokenizer, windows.ids) == "[CLS] [START] one two eight nine [END] [SEP]"


def test_a_long_text_with_many_mentions(tokenizer):
    """20,000 tokens, a mention at every hundredth; tokenized once, cut as alone."""
    words = ["w" + "abcdefghij"[i % 10] for i in range(20_000)]
    text = " ".join(words)
    starts = np.arange(0, 20_000, 100) * 3
    ends = starts + 2
    pieces = PieceTokenizer(tokenizer, 32)
    calls = []
    count = pieces._tokenize_with_offsets
    pieces._tokenize_with_offsets = lambda texts: calls.append(len(texts)) or count(texts)
    windows = pieces.windows([text], np.zeros(len(starts), dtype=np.int64), starts, ends)
    assert calls == [1]
    begin, finish = tokenizer.convert_tokens_to_ids([START, END])
    assert (windows.lengths <= 32).all() and (windows.lengths[1:] == 32).all()
    for ids, start, end in zip(lists_of(windows), starts, ends):
        inside = ids[ids.index(begin) + 1 : ids.index(finish)]
        assert tokenizer.decode(inside) == text[start:end]


def test_markers_in_a_text_are_text(tokenizer):
    """Somebody's text may hold "[END]" or "[SEP]"; that makes no marker of it."""
    text = "press [END] or [SEP] or [TITLE] now"
    windows = PieceTokenizer(tokenizer, 40).windows(
        [text], np.array([0]), np.array([0]), np.array([5])
    )
    specials = {tokenizer.cls_token_id, tokenizer.sep_token_id}
    specials |= set(tokenizer.convert_tokens_to_ids(list(MARKERS)))
    assert [i for i in windows.ids.tolist() if i in specials] == [
        tokenizer.cls_token_id,
        *tokenizer.convert_tokens_to_ids([START, END]),
        tokenizer.sep_token_id,
    ]


def naive_entity_text(tokenizer, title, rest, size):
    title, rest = (plain_pieces(tokenizer, text)[0] for text in (title, rest))
    title = title[: size - 3]
    rest = rest[: size - 3 - len(title)]
    marker = tokenizer.convert_tokens_to_ids(TITLE)
    ids = [tokenizer.cls_token_id, *title, marker, *rest, tokenizer.sep_token_id]
    return ids, len(title)


texts = st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join)


@settings(max_examples=100)
@given(st.lists(st.tuples(texts, texts), max_size=4), st.integers(8, 30))
@example([("", ""), ("a", ""), ("", "a"), ("a " * 40, "b"), ("a", "b " * 40)], 10)
def test_entity_texts_equal_the_oracle(tokenizer, pairs, size):
    sequences = PieceTokenizer(tokenizer, size).entity_texts(pairs)
    assert len(sequences) == len(pairs)
    for i, (title, rest) in enumerate(pairs):
        ids, count = naive_entity_text(tokenizer, title, rest, size)
        assert lists_of(sequences)[i] == ids and len(ids) <= size
        assert ids[sequences.anchor[i]] == tokenizer.convert_tokens_to_ids(TITLE)
        name = (1, count) if count else (1, 1)
        assert (sequences.first[i], sequences.last[i]) == name


def test_nothing_to_cut(tokenizer):
    none = np.zeros(0, dtype=np.int64)
    pieces = PieceTokenizer(tokenizer, 16)
    assert len(pieces.windows(["a text"], none, none, none)) == 0
    assert len(pieces.entity_texts([])) == 0


def test_a_tokenizers_own_truncation_does_not_count(tmp_path):
    """A tokenizer.json may ask for truncation; a mention far into the text must not get lost."""
    tokenizer = load_pretrained(str(save_tiny(tmp_path / "bert", "bert")), "eager")[0]
    tokenizer.backend_tokenizer.enable_truncation(5)
    tokenizer.backend_tokenizer.enable_padding(length=50)
    text = "the river " * 20 + "flu"
    windows = PieceTokenizer(tokenizer, 8).windows(
        [text], np.array([0]), np.array([len(text) - 3]), np.array([len(text)])
    )
    expected = "[CLS] river the river [START] flu [END] [SEP]"
    assert text_of(tokenizer, windows.ids) == expected


def test_unusable_tokenizers_and_windows_are_refused(tokenizer):
    class Slow:
        is_fast, name_or_path = False, "old-model"

    class WithoutEnds:
        is_fast, name_or_path = True, "decoder"
        backend_tokenizer = tokenizer.backend_tokenizer
        cls_token_id = bos_token_id = sep_token_id = eos_token_id = None

    with pytest.raises(ValueError, match="old-model.*no fast version"):
        PieceTokenizer(Slow(), 32)
    with pytest.raises(ValueError, match="decoder.*start or the end of a sequence"):
        PieceTokenizer(WithoutEnds(), 32)
    with pytest.raises(ValueError, match="too small"):
        PieceTokenizer(tokenizer, 7)
    assert len(PieceTokenizer(tokenizer, 8).entity_texts([("a", "b")])) == 1
