"""An exact name of the knowledge base is read as it is written."""

import numpy as np
import pytest

from spacy_arbo_el.mentions.normalization.abbreviations import ExpandAbbreviations
from spacy_arbo_el.mentions.normalization.text import AmericanSpelling, NormalizerChain, keep

from ..cases import cases
from ..linker.conftest import build
from ..linker.world import annotated

CHAIN = {
    "@misc": "spacy-arbo-el.NormalizerChain.v1",
    "*": {
        name: {"@misc": f"spacy-arbo-el.{name}.v1"}
        for name in ("PlainCharacters", "ExpandAbbreviations", "AmericanSpelling")
    },
}
LONG = "World Health Office"
TEXT = (
    "The World Health Office (WHO) met. Then [WHO|E1] of [Colour Ltd|E2] paid the [WHO tumour|E3]."
)


@pytest.mark.parametrize(("names", "read"), cases("exact_names"))
def test_the_spelling_of_a_name_wins(names, read):
    entities = [{"id": f"E{n}", "title": name} for n, name in enumerate((*names, "Alder"))]
    nlp = build(entities, train=(), mentions={"normalizer": CHAIN})
    linker = nlp.get_pipe("arbo_linker")
    doc = annotated(nlp, TEXT)
    batch = linker.reader.read([list(doc.ents)])
    assert batch.normalized == read
    (texts,) = linker.reader.texts_of([list(doc.ents)]).texts
    assert texts.startswith("The World Health Office (WHO) met. Then ")


def test_an_abbreviation_of_another_long_name_is_written_out():
    entities = [{"id": "E1", "title": "Water Horse Order", "aliases": ["WHO"]}]
    nlp = build(entities, train=(), mentions={"normalizer": CHAIN})
    doc = annotated(nlp, TEXT)
    read = nlp.get_pipe("arbo_linker").reader.read([list(doc.ents)]).normalized
    assert read == [LONG, "Color Ltd", f"{LONG} tumor"]


def test_kept_mentions_move_with_the_text():
    text = "coronary heart disease (CHD): CHD, tumour CHD and CHD tumour"
    chain = NormalizerChain((ExpandAbbreviations(), AmericanSpelling()))
    at = [30, 35, 50]
    offsets = np.array([(at[0], 33), (at[1], 45), (at[2], len(text))])
    for kept in np.array([[1, 0, 1], [0, 1, 0], [1, 1, 1], [0, 0, 0]], dtype=bool):
        new, moved = keep(chain, text, offsets, kept)
        for (start, end), (a, b), same in zip(offsets.tolist(), moved.tolist(), kept):
            assert (new[a:b] == text[start:end]) == same
