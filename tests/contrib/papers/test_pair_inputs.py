"""Pairs of mentions and entities, against a literal procedure."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_arbo_el import Entity
from spacy_arbo_el.contrib.papers.cross_encoder.pair_inputs import (
    NAMES,
    EntityParts,
    entity_texts,
    make_pairs,
)
from spacy_arbo_el.contrib.papers.passages import document_passages
from spacy_arbo_el.encoders.windows import mention_windows
from spacy_arbo_el.encoders.word_pieces import WordPieceTokenizer
from spacy_arbo_el.retrieval.entity_strings import EntityStrings

from ...encoders.test_windows import naive_window
from ...ranking.strings import datastore_of, strings_of

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


def parts_of(word_pieces, size, entities, numbers, index):
    """The parts of entities with the titles of these numbers, and which of them each is."""
    keys, part_of = np.unique(np.array(entities) * NAMES + np.array(numbers), return_inverse=True)
    pairs = [divmod(key, NAMES) for key in keys.tolist()]
    texts = [entity_texts(ENTITIES[e], n, index.names_of(e), None) for e, n in pairs]
    return EntityParts.read(word_pieces, texts, size), part_of


def read(word_pieces, text):
    return word_pieces.read([text]).ids.tolist()


def literal_text(word_pieces, text, entity, name):
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
    return [*kept["first"], title, *(i for key in order for i in kept[key]), sep]


@given(data=st.data())
def test_pairs_are_those_of_a_literal_procedure(word_pieces, data):
    window, text = (data.draw(st.integers(8, 40)) for _ in range(2))
    as_document = data.draw(st.booleans())
    offsets, text_of = np.array(MENTIONS), np.zeros(len(MENTIONS), dtype=np.int64)
    if as_document:
        inputs = document_passages(word_pieces, 256, 9, False, [TEXT], text_of, offsets)
    else:
        inputs = mention_windows(word_pieces, 64, [TEXT], text_of, offsets)
    index = strings_of(datastore_of(*ENTITIES))
    rows = np.repeat(np.arange(len(MENTIONS)), len(ENTITIES))
    entities = np.tile(np.arange(len(ENTITIES)), len(MENTIONS))
    strings = [TEXT[start:end] for start, end in MENTIONS]
    table = np.tile(np.arange(len(ENTITIES)), (len(MENTIONS), 1))
    nearest = index.nearest_names(strings, table).ravel()
    parts, part_of = parts_of(word_pieces, text, entities, nearest, index)
    pairs = make_pairs(inputs, parts, rows, part_of, word_pieces.specials, window)
    assert pairs.passage.tolist() == list(range(len(rows)))
    for number, (mention, entity) in enumerate(zip(rows.tolist(), entities.tolist())):
        first, *_ = naive_window(word_pieces.tokenizer, TEXT, *MENTIONS[mention], window, ())
        second = literal_text(word_pieces, text, ENTITIES[entity], int(nearest[number]))
        ids = pairs.ids[pairs.offsets[number] : pairs.offsets[number + 1]].tolist()
        assert ids == first + second
        assert pairs.first[number] == len(first)
        assert pairs.last[number] == pairs.marker[number]
        assert ids.index(word_pieces.specials[4]) == pairs.marker[number]


def test_a_normalized_name_stands_for_the_name_that_it_was_made_of():
    def normalizer(text, offsets):
        return text.replace("tumour", "tumor"), offsets

    entity = Entity("t", "growth", aliases=["brain tumour", "lump"])
    datastore = datastore_of(entity)
    index = EntityStrings(datastore.kb, datastore.exemplars, normalizer)
    number = int(index.nearest_names(["brain tumor"], np.array([[0]]))[0, 0])
    texts = entity_texts(entity, number, index.names_of(0), normalizer)
    assert texts == ("brain tumour", "", "growth; ", "lump", "")


def test_an_entity_without_names_has_no_title():
    assert entity_texts(ENTITIES[2], 0, ["a form of its exemplar"], None) == ("", "", "", "", "")
    assert entity_texts(ENTITIES[0], 0, [], None)[0] == "flu"
