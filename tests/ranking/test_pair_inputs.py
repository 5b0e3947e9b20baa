"""Pairs of mentions and entities, against a literal procedure."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_arbo_el.encoders.passages import document_passages
from spacy_arbo_el.encoders.windows import mention_windows
from spacy_arbo_el.encoders.word_pieces import WordPieceTokenizer
from spacy_arbo_el.kb.entity import Entity
from spacy_arbo_el.ranking.pair_inputs import EntityPieces, PairFormat

from .strings import index_of

ENTITIES = [
    Entity("a", "flu", "the flu of the river bank, and a virus of it", ["cold virus", "grippe"]),
    Entity("b", "B", types=["Disease", "Virus"]),
    Entity("c", "c", meta={"unnamed": True}),
    Entity("d", "D", "cold " * 40, ["river bank", "d d", "the river of the bank of the apple"]),
]
TEXT = "A cold of the river. The flu virus of the bank, an apple a day; the end of a cold river."
# At the borders of the text, of one word, of nearly all of it.
PHRASES = ["A cold", "flu virus", "virus", TEXT[2:80].rpartition(" ")[0], "cold river."]
MENTIONS = [(TEXT.index(phrase), TEXT.index(phrase) + len(phrase)) for phrase in PHRASES]


@pytest.fixture(scope="module")
def word_pieces(tokenizer):
    return WordPieceTokenizer(tokenizer)


def pieces_of(word_pieces, limit=48):
    index = index_of([entity.names for entity in ENTITIES])
    # In two steps, as they are needed.
    pieces = EntityPieces.none(len(ENTITIES))
    for part in ({2: ENTITIES[2], 0: ENTITIES[0]}, {3: ENTITIES[3], 1: ENTITIES[1]}):
        pieces = pieces.with_entities(word_pieces, part, index, None, limit)
    return pieces, index


def read(word_pieces, text):
    return word_pieces.read([text]).ids.tolist()


def literal_mention(word_pieces, window, left, mention, right):
    """The part of a mention, by the word pieces left of it, of it, and right of it."""
    cls, sep, start, end, _ = word_pieces.specials.tolist()
    budget = window - 4
    if len(mention) > budget:
        tail = budget // 2
        mention = mention[: budget - tail] + mention[len(mention) - tail :]
    while len(left) + len(mention) + len(right) > budget:
        left, right = (left[1:], right) if len(left) > len(right) else (left, right[:-1])
    return [cls, *left, start, *mention, end, *right, sep]


def literal_pair(word_pieces, window, text, mention_ids, entity, name):
    """mention_ids: The word pieces left of a mention, of it, and right of it."""
    _, sep, _, _, title = word_pieces.specials.tolist()
    separator = read(word_pieces, ";")
    names = [read(word_pieces, other) for other in entity.names]
    first = names[name] if names else []
    before = [i for other in names[:name] for i in other + separator]
    after = [i for other in names[name + 1 :] for i in other + separator]
    after = after[: len(after) - len(separator)] if after else after
    types, description = (
        read(word_pieces, ", ".join(entity.types)),
        read(word_pieces, entity.description),
    )
    budget = text - 2
    kept = {}
    parts = {"first": first, "types": types, "before": before, "after": after, "d": description}
    for key, ids in parts.items():
        kept[key] = ids[:budget]
        budget -= len(kept[key])
    order = ("before", "after", "types", "d")
    second = [*kept["first"], title, *(i for key in order for i in kept[key]), sep]
    return literal_mention(word_pieces, window, *mention_ids), second


@given(data=st.data())
def test_pairs_are_those_of_a_literal_procedure(word_pieces, data):
    window, text = (data.draw(st.integers(8, 40)) for _ in range(2))
    as_document = data.draw(st.booleans())
    offsets, text_of = np.array(MENTIONS), np.zeros(len(MENTIONS), dtype=np.int64)
    if as_document:
        inputs = document_passages(word_pieces, 256, 9, False, [TEXT], text_of, offsets)
    else:
        inputs = mention_windows(word_pieces, 64, [TEXT], text_of, offsets)
    pieces, index = pieces_of(word_pieces)
    rows = np.repeat(np.arange(len(MENTIONS)), len(ENTITIES))
    entities = np.tile(np.arange(len(ENTITIES)), len(MENTIONS))
    strings = [TEXT[start:end] for start, end in MENTIONS]
    table = np.tile(np.arange(len(ENTITIES)), (len(MENTIONS), 1))
    nearest = index.nearest_names(strings, table).ravel()
    entity_rows = pieces.row_of[entities]
    titles = pieces.nearest_names(entity_rows, nearest)
    pair_format = PairFormat(window, text, word_pieces.specials)
    pairs = pair_format.pairs(inputs, pieces, rows, entity_rows, titles)
    assert pairs.passage.tolist() == list(range(len(rows)))
    whole = read(word_pieces, TEXT)
    for number, (mention, entity) in enumerate(zip(rows.tolist(), entities.tolist())):
        start, end = MENTIONS[mention]
        low = len(read(word_pieces, TEXT[:start]))
        high = len(read(word_pieces, TEXT[:end]))
        sides = whole[:low], whole[low:high], whole[high:]
        first, second = literal_pair(
            word_pieces, window, text, sides, ENTITIES[entity], int(nearest[number])
        )
        ids = pairs.ids[pairs.offsets[number] : pairs.offsets[number + 1]].tolist()
        assert ids == first + second and pairs.first[number] == len(first)
        assert pairs.last[number] == pairs.marker[number]
        assert ids.index(word_pieces.specials[4]) == pairs.marker[number]


def test_the_name_nearest_to_the_mention_is_the_title(word_pieces):
    pieces, index = pieces_of(word_pieces)
    numbers = index.nearest_names(["the bank of a river", "D"], np.array([[3, 0], [3, 1]]))
    rows = pieces.row_of[np.array([3, 0, 3, 1])]
    places = pieces.nearest_names(rows, numbers.ravel()) - pieces.first_name.rows[rows, 0]
    assert places[0] in (1, 3) and places[2] == 0 and places[3] == 0


def test_a_normalized_name_stands_for_the_name_that_it_was_made_of(word_pieces):
    class Normalizer:
        def __call__(self, text, offsets):
            return text.replace("tumour", "tumor"), offsets

    entity = Entity("t", "growth", aliases=["brain tumour"])
    index = index_of([[*entity.names, "growth", "brain tumor"]])
    pieces = EntityPieces.none(1).with_entities(word_pieces, {0: entity}, index, Normalizer(), 48)
    numbers = index.nearest_names(["brain tumor"], np.array([[0]]))
    assert pieces.nearest_names(np.array([0]), numbers[0]).tolist() == [1]


def test_the_description_is_cut_first_and_the_title_last(word_pieces):
    pieces, _ = pieces_of(word_pieces)
    offsets, zero = np.array([[0, 6]]), np.zeros(1, dtype=np.int64)
    inputs = mention_windows(word_pieces, 32, [TEXT], zero, offsets)
    row = pieces.row_of[np.array([3])]
    title = pieces.first_name.rows[row, 0]
    tokens = word_pieces.tokenizer
    for size, expected in ((8, "d [TITLE] river bank ; d d"), (40, "cold cold")):
        pair_format = PairFormat(32, size, word_pieces.specials)
        pairs = pair_format.pairs(inputs, pieces, zero, row, title)
        text = tokens.decode(pairs.ids[pairs.first[0] : -1])
        assert expected in text and len(pairs.ids) - pairs.first[0] == size
