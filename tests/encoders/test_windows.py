"""Windows and texts of entities against an oracle that tokenizes and cuts them one by one."""

import copy
import pickle
import unicodedata

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from spacy_arbo_el.encoders.inputs import check_offsets
from spacy_arbo_el.encoders.loading import load_pretrained
from spacy_arbo_el.encoders.shim import shim_of
from spacy_arbo_el.encoders.windows import WindowReader, entity_passages, mention_windows
from spacy_arbo_el.encoders.word_pieces import END, MARKERS, START, TITLE, WordPieceTokenizer

from ..cases import cases
from ..expecting import raises
from ..tiny import save_tiny
from .strategies import passages_of

WORDS = cases("odd_words")


@pytest.fixture(scope="module")
def byte_level(tmp_path_factory):
    """A tokenizer of RoBERTa's kind: its pieces are bytes, several to a character."""
    folder = save_tiny(tmp_path_factory.mktemp("byte") / "roberta", "roberta")
    return load_pretrained(str(folder), "eager")[0]


def plain_pieces(tokenizer, text):
    """Ids and offsets of a text, as transformers gives them."""
    encoding = tokenizer(
        text,
        add_special_tokens=False,
        return_offsets_mapping=True,
        split_special_tokens=True,
        truncation=False,
    )
    return encoding["input_ids"], encoding["offset_mapping"]


def cuts_of(tokenizer, text, borders=()):
    """Where a text is cut: at borders of mentions in a piece, at symbols in unknown words."""
    cuts = set()
    for id_, (start, end) in zip(*plain_pieces(tokenizer, text)):
        for at in range(start + 1, end):
            kinds = [unicodedata.category(text[i])[0] in "LNM" for i in (at - 1, at)]
            short = end - start <= 100
            unknown = id_ == tokenizer.unk_token_id and short and kinds[0] != kinds[1]
            both = text[start:at].strip() and text[at:end].strip()
            if unknown or (at in borders and both):
                cuts.add(at)
    return sorted(cuts)


def cut_pieces(tokenizer, text, borders=()):
    """Ids and offsets of a text that is read part by part."""
    ids, offsets = [], []
    bounds = [0, *cuts_of(tokenizer, text, borders), len(text)]
    for start, end in zip(bounds, bounds[1:]):
        part_ids, part_offsets = plain_pieces(tokenizer, text[start:end])
        ids += part_ids
        offsets += [(a + start, b + start) for a, b in part_offsets]
    return ids, offsets


def is_readable(tokenizer, ids):
    """Whether the vocabulary knows any of some pieces; a known digit beside unknown ones: no."""
    known = [i for i in ids if i != tokenizer.unk_token_id]
    if len(known) == len(ids):
        return bool(ids)
    return any(c.isalpha() for name in tokenizer.convert_ids_to_tokens(known) for c in name)


def naive_window(tokenizer, text, start, end, size, borders):
    """One window: its ids, where its marker is, and the word pieces of the mention."""
    ids, offsets = cut_pieces(tokenizer, text, borders)
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
    return [first, *left, begin, *mention, finish, *right[:n_right], last], n_left + 1, mention


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


def windows_in(word_pieces, size, text, offsets):
    """The windows of mentions of one text."""
    text_of = np.zeros(len(offsets), dtype=np.int64)
    return mention_windows(word_pieces, size, [text], text_of, np.array(offsets))


def check_windows(tokenizer, texts, mentions, size):
    table = np.array(mentions, dtype=np.int64).reshape(-1, 3)
    word_pieces = WordPieceTokenizer(tokenizer)
    windows = mention_windows(word_pieces, size, texts, table[:, 0], table[:, 1:])
    assert windows.passage.tolist() == list(range(len(mentions)))
    begin, finish = tokenizer.convert_tokens_to_ids([START, END])
    for i, (number, start, end) in enumerate(mentions):
        ids = passages_of(windows)[i]
        borders = {at for n, *pair in mentions if n == number for at in pair}
        expected, marker, mention = naive_window(
            tokenizer, texts[number], start, end, size, borders
        )
        count = len(mention)
        assert ids == expected
        assert len(ids) <= size
        assert windows.marker[i] == marker
        assert ids[marker] == begin
        assert ids.count(begin) == 1
        assert ids.count(finish) == 1
        assert ids[marker + count + 1] == finish
        # The span is what is between the markers, and empty where that is unreadable.
        readable = is_readable(tokenizer, mention)
        span = (marker + 1, marker + count if readable else marker)
        assert (windows.first[i], windows.last[i]) == span
        assert windows.readable[i] == readable


@given(documents(), st.integers(8, 40))
@example((["a b"], [(0, 1, 2)]), 8)  # white space is a mention without pieces
@example((["a", "\n \n", "b"], [(1, 0, 3), (0, 0, 1), (2, 0, 1)]), 8)  # a text without pieces
def test_windows_equal_the_oracle(tokenizer, drawn, size):
    check_windows(tokenizer, *drawn, size)


@given(documents(), st.integers(8, 40))
def test_windows_of_a_byte_level_tokenizer_equal_the_oracle(byte_level, drawn, size):
    check_windows(byte_level, *drawn, size)


def test_a_long_text_with_many_mentions_is_tokenized_once(tokenizer):
    """20,000 tokens, a mention at every hundredth."""
    words = ["w" + "abcdefghij"[i % 10] for i in range(20_000)]
    text = " ".join(words)
    starts = np.arange(0, 20_000, 100) * 3
    ends = starts + 2
    word_pieces = WordPieceTokenizer(tokenizer)
    calls = []
    read = word_pieces.read_with_offsets
    word_pieces.read_with_offsets = lambda texts, *a: calls.append(len(texts)) or read(texts, *a)
    windows = windows_in(word_pieces, 32, text, np.stack([starts, ends], axis=1))
    assert calls == [1]
    begin, finish = tokenizer.convert_tokens_to_ids([START, END])
    assert (windows.lengths <= 32).all()
    assert (windows.lengths[1:] == 32).all()
    for ids, start, end in zip(passages_of(windows), starts, ends):
        inside = ids[ids.index(begin) + 1 : ids.index(finish)]
        assert tokenizer.decode(inside) == text[start:end]


def test_markers_in_a_text_are_text(tokenizer):
    """A text may contain "[END]" or "[SEP]", which is no marker; copies of a tokenizer agree."""
    text = "press [END] or [SEP] or [TITLE] now"
    cls, sep = tokenizer.cls_token_id, tokenizer.sep_token_id
    markers = tokenizer.convert_tokens_to_ids(list(MARKERS))
    expected = [cls, *tokenizer.convert_tokens_to_ids([START, END]), sep]
    own = WordPieceTokenizer(tokenizer)
    for word_pieces in (own, copy.deepcopy(own), pickle.loads(pickle.dumps(own))):
        windows = windows_in(word_pieces, 40, text, [(0, 5)])
        assert [i for i in windows.ids.tolist() if i in {cls, sep, *markers}] == expected


def naive_entity_text(tokenizer, title, rest, size):
    """A text: its ids, the pieces of its title, and those of its description."""
    title, rest = (cut_pieces(tokenizer, text)[0] for text in (title, rest))
    title = title[: size - 3]
    rest = rest[: size - 3 - len(title)]
    marker = tokenizer.convert_tokens_to_ids(TITLE)
    return [tokenizer.cls_token_id, *title, marker, *rest, tokenizer.sep_token_id], title, rest


texts = st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join)


@given(st.lists(st.tuples(texts, texts), max_size=4), st.integers(8, 30))
@example([("", ""), ("a", ""), ("", "a"), ("a " * 40, "b"), ("a", "b " * 40)], 10)
def test_entity_texts_equal_the_oracle(tokenizer, pairs, size):
    inputs = entity_passages(WordPieceTokenizer(tokenizer), size, pairs)
    assert inputs.passage.tolist() == list(range(len(pairs)))
    for i, (title, rest) in enumerate(pairs):
        ids, title, rest = naive_entity_text(tokenizer, title, rest, size)
        count = len(title)
        assert passages_of(inputs)[i] == ids
        assert len(ids) <= size
        assert ids[inputs.marker[i]] == tokenizer.convert_tokens_to_ids(TITLE)
        marker = count + 1
        # The title, or its marker where only the description is readable, or nothing.
        span = (marker, marker if is_readable(tokenizer, rest) else count)
        if is_readable(tokenizer, title):
            span = (1, count)
        assert (inputs.first[i], inputs.last[i]) == span


READABLE = ["Paris", "Paris🎉", "🎉Paris!", "ሀ B", "中文", "☢ source", "naïve", "-", "!!", "G6PD"]
UNREADABLE = ["☢", "🎉", "ሰላም", "ភ្នំពេញ", "ሀ-ለ", "☢ 2", " ", "\n", "\u200b", "ሰላም ☢"]


@pytest.mark.parametrize("text", READABLE + UNREADABLE)
def test_what_the_vocabulary_does_not_know_is_unreadable(tokenizer, text):
    word_pieces = WordPieceTokenizer(tokenizer)
    whole = f"The visitors saw {text} there"
    mention = windows_in(word_pieces, 32, whole, [(17, 17 + len(text))])
    texts = [(text, ""), (text, text), (text, "a known description")]
    entities = entity_passages(word_pieces, 32, texts)
    readable = text in READABLE
    assert mention.readable.tolist() == [readable]
    assert entities.readable.tolist() == [readable, readable, True]


@pytest.mark.parametrize("text", ["Paris🎉" * 5000, "Paris🎉 " * 3000, "ሰላም " * 20_000])
def test_long_texts_of_symbols_are_read_in_blocks(tokenizer, text, monkeypatch):
    monkeypatch.setattr("spacy_arbo_el.encoders.word_pieces.PARTS_AT_ONCE", 100)
    word_pieces = WordPieceTokenizer(tokenizer)
    text += "Paris"
    places = [(len(text) - 5, len(text)), (0, len(text))]
    windows = windows_in(word_pieces, 32, text, places)
    inside = windows.ids[windows.first[0] : windows.last[0] + 1]
    assert tokenizer.decode(inside) == "paris"
    assert windows.readable[1]
    if " " in text and "Paris🎉" in text:
        assert (
            word_pieces.read([text]).ids.tolist()[:4]
            == word_pieces.read(["Paris🎉 " * 2]).ids.tolist()
        )


def test_long_texts_of_entities_are_cut_before_they_are_tokenized(tokenizer):
    word_pieces = WordPieceTokenizer(tokenizer)
    read, lengths = word_pieces.read, []
    word_pieces.read = lambda texts: lengths.extend(map(len, texts)) or read(texts)
    long = "word " * 200_000
    inputs = entity_passages(word_pieces, 16, [(long, long), ("title", long)])
    assert max(lengths) <= 16 * 100
    expected = entity_passages(word_pieces, 16, [("word " * 20, ""), ("title", "word " * 20)])
    assert inputs.ids.tolist() == expected.ids.tolist()


def test_truncation_of_the_tokenizer_file_is_switched_off(tmp_path):
    """A tokenizer.json may ask for truncation, which would lose a mention far into the text."""
    tokenizer = load_pretrained(str(save_tiny(tmp_path / "bert", "bert")), "eager")[0]
    tokenizer.backend_tokenizer.enable_truncation(5)
    tokenizer.backend_tokenizer.enable_padding(length=50)
    text = "the river " * 20 + "flu"
    place = len(text) - 3, len(text)
    window = windows_in(WordPieceTokenizer(tokenizer), 8, text, [place])
    expected = "[CLS] river the river [START] flu [END] [SEP]"
    assert tokenizer.decode(window.ids, skip_special_tokens=False) == expected


def test_unusable_tokenizers_and_windows_raise_errors(tokenizer):
    class Slow:
        is_fast, name_or_path = False, "old-model"

    class WithoutEnds:
        is_fast, name_or_path = True, "decoder"
        backend_tokenizer = tokenizer.backend_tokenizer
        cls_token_id = bos_token_id = sep_token_id = eos_token_id = None

    with raises("old-model.*no fast version"):
        WordPieceTokenizer(Slow())
    with raises("decoder.*start or the end of a sequence"):
        WordPieceTokenizer(WithoutEnds())
    with raises("too short"):
        WindowReader(7)
    assert len(entity_passages(WordPieceTokenizer(tokenizer), 8, [("a", "b")])) == 1


def test_reader_uses_the_tokenizer_that_the_tower_has_now(tiny, tokenizer):
    tower = tiny.model.get_ref("mention")
    shim, reader = shim_of(tower), tower.attrs["reader"]
    mentions = ["the flu virus"], np.array([0]), np.array([[4, 7]])
    before = reader.read_mentions(tower, *mentions)
    word_pieces = shim.word_pieces
    assert word_pieces.tokenizer is shim.tokenizer
    assert shim.word_pieces is word_pieces
    shim.set_transformer(tokenizer, shim._model)
    after = reader.read_mentions(tower, *mentions)
    expected = mention_windows(WordPieceTokenizer(tokenizer), reader.size, *mentions)
    assert after.ids.tolist() == expected.ids.tolist()
    assert expected.ids.tolist() != before.ids.tolist()


@pytest.mark.parametrize("offsets", [(3, 14), (11, 12), (-1, 2), (5, 3)])
def test_mention_outside_of_its_text_is_refused_by_name(offsets):
    """A mention of ZELDA's wned-wiki ends three characters after its text."""
    texts, text_of = ["Elsewhere, and longer", "In Canada.\n"], np.array([0, 1])
    with raises(r"E208.*its text of 11 characters, which begins 'In Can"):
        check_offsets(texts, text_of, np.array([(0, 9), offsets]))
