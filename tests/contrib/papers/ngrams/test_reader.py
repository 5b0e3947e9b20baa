import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from spacy_arbo_el import SpanInputs
from spacy_arbo_el.base.arrays import offsets_of
from spacy_arbo_el.contrib.papers.ngrams.hashing import BREAK, PLACE
from spacy_arbo_el.contrib.papers.ngrams.reader import (
    NAME_TOKENS,
    Field,
    NgramReader,
    averages,
    entity_fields,
    mention_fields,
)
from spacy_arbo_el.encoders.inputs import check_inputs

from . import oracle
from .test_hashing import CHARACTERS

ROWS = 53
NUMBERS = st.sampled_from([BREAK, PLACE, 2, 3, 40, 99])
WORDS = st.sampled_from(["the", "Cold", "flu.", "Of", "x", "-", "東京", "It", "\n"])


def words(text):
    return [oracle.word(text[a:b]) for a, b in oracle.tokens_of(text)]


def passage(inputs, span):
    """Left context, span and right context as lists of numbers."""
    start = inputs.offsets[inputs.passage[span]]
    ids = inputs.ids[start : inputs.offsets[inputs.passage[span] + 1]].tolist()
    first, last = int(inputs.first[span]), int(inputs.last[span])
    return ids[:first], ids[first : last + 1], ids[last + 1 :]


@given(st.lists(st.lists(WORDS, min_size=1, max_size=9), min_size=1, max_size=3), st.data())
def test_passages_are_those_of_a_loop_over_mentions(groups, data):
    texts = [" ".join(group) for group in groups]
    near, window = (data.draw(st.integers(0, n)) for n in (3, 4))
    mentions = []
    for _ in range(data.draw(st.integers(0, 5))):
        text = data.draw(st.integers(0, len(texts) - 1))
        ends = [data.draw(st.integers(0, len(texts[text]))) for _ in range(2)]
        mentions.append((text, min(ends), max(ends)))
    text_of, *offsets = np.array(mentions, dtype=np.int64).reshape(-1, 3).T
    reader = NgramReader(near, window)
    inputs = reader.read_mentions(None, texts, text_of, np.stack(offsets, axis=1))
    cuts = [[cut for n, *ends in mentions if n == i for cut in ends] for i in range(len(texts))]
    for span, (number, start, end) in enumerate(mentions):
        text = texts[number]
        tokens = oracle.tokens_of(text, cuts[number])
        inside = [i for i, (a, b) in enumerate(tokens) if start <= a and b <= end]
        left, own, right = passage(inputs, span)
        if not inside:
            assert not inputs.readable[span]
            check_inputs(inputs.take(np.array([span])))
            continue
        numbers = [oracle.word(text[a:b]) for a, b in tokens]
        assert own == [numbers[i] for i in inside]
        before, behind = numbers[: inside[0]], numbers[inside[-1] + 1 :]
        assert left == before[len(before) - len(left) :]
        assert right == behind[: len(right)]
        assert min(near, len(before)) <= len(left)
        assert len(left) <= max(near, window)
        assert min(near, len(behind)) <= len(right)
        assert len(right) <= max(near, window)
        check_inputs(inputs.take(np.array([span])))


def test_passage_is_the_sentence_and_at_least_the_tokens_near_the_mention():
    text = "Nothing here. He has a bad flu in winter. The rest."
    start = text.index("flu")
    place = np.array([[start, start + 3]])

    def read(*settings):
        inputs = NgramReader(*settings).read_mentions(None, [text], np.zeros(1, int), place)
        return passage(inputs, 0)

    assert read(1, 9) == (words("He has a bad"), words("flu"), words("in winter."))
    assert read(6, 9)[0] == words("here. He has a bad")
    assert read(1, 2) == (words("a bad"), words("flu"), words("in winter"))


@given(st.lists(st.tuples(st.text(CHARACTERS, max_size=9), st.text(CHARACTERS, max_size=9))))
def test_texts_read_one_by_one_or_together_are_the_same(texts):
    reader = NgramReader()
    together = reader.read_texts(None, texts)
    each = SpanInputs.concat(reader.read_texts(None, [text]) for text in texts)
    for name, array in together.to_dict().items():
        assert np.array_equal(array, each.to_dict()[name])


def test_long_names_and_hostile_texts_are_cut():
    long = "word " * 5000
    read = NgramReader().read_texts(None, [(long, long)])
    assert len(read.ids) <= NAME_TOKENS + 256 + 2
    place = np.array([[0, len(long)]])
    read = NgramReader().read_mentions(None, [long], np.zeros(1, int), place)
    assert len(read.ids) == NAME_TOKENS


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
    texts = [
        ("cold\ncommon cold", "An illness of the nose.\nDisease\nInfection of it"),
        ("flu", ""),
        ("", "Only described"),
        ("flu", "\nDisease"),
        ("", "\nDisease"),
        ("", ""),
        ("\n", " "),
    ]
    inputs = NgramReader().read_texts(None, texts)
    check_inputs(inputs)
    assert inputs.readable.tolist() == [True, True, True, True, False, False, False]
    stop = [BREAK]
    names = words("cold") + stop + words("common cold")
    types = stop + words("Disease") + stop + words("Infection of it")
    assert list(zip(*map(lists_of, entity_fields(inputs))))[:4] == [
        (names, stop + words("An illness of the nose."), stop + types),
        (words("flu"), stop, stop),
        (stop, words("Only described"), stop),
        (words("flu"), stop, stop + words("Disease")),
    ]
