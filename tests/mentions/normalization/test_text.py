"""Normalizers of mentions: replaced parts, typography, British spellings, chains."""

import unicodedata

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from spacy.util import registry
from thinc.api import Config

from spacy_arbo_el.mentions.normalization.abbreviations import ExpandAbbreviations
from spacy_arbo_el.mentions.normalization.text import (
    AmericanSpelling,
    PlainCharacters,
    inside_of,
    normalizer_chain,
    replace,
)
from spacy_arbo_el.names.characters import GREEK

from ...cases import cases


@given(st.text(alphabet="ab ", max_size=30), st.data())
def test_replacing_moves_every_offset(text, data):
    cuts = data.draw(st.lists(st.integers(0, len(text)), max_size=8, unique=True).map(sorted))
    edits = [(a, b, data.draw(st.text("XY", max_size=4))) for a, b in zip(cuts[::2], cuts[1::2])]
    places = data.draw(
        st.lists(st.tuples(st.integers(0, len(text)), st.integers(0, len(text))), max_size=5)
    )
    offsets = np.array([sorted(pair) for pair in places], dtype=np.int64).reshape(-1, 2)
    new, moved = replace(text, offsets, edits)

    def slowly(position, is_end):
        shift = 0
        for a, b, by in edits:
            if position >= b:
                shift += len(by) - (b - a)
            elif position > a:
                return (a + len(by) if is_end else a) + shift
        return position + shift

    assert moved.tolist() == [[slowly(a, False), slowly(b, True)] for a, b in offsets]
    assert len(new) == slowly(len(text), True)


def test_inside_of_overlapping_mentions():
    inside = inside_of("abcdef", np.array([[0, 2], [1, 4]]))
    assert inside.tolist() == [True, True, True, True, False, False, False]
    assert not inside_of("ab", np.zeros((0, 2), dtype=np.int64)).any()


def test_a_chain_normalizes_what_the_normalizer_before_wrote():
    text = "Acute myeloid leukaemia (AML) is rare. AML kills."
    offsets = np.array([[39, 42]])
    chain = normalizer_chain(ExpandAbbreviations(), AmericanSpelling())
    new, moved = chain(text, offsets)
    assert new[slice(*moved[0])] == "Acute myeloid leukemia"
    assert new.startswith("Acute myeloid leukaemia (AML)")
    assert normalizer_chain()(text, offsets) == (text, offsets)


def test_a_chain_is_configured_by_its_normalizers():
    config = """
    [normalizer]
    @misc = "spacy-arbo-el.NormalizerChain.v1"

    [normalizer.*.abbreviations]
    @misc = "spacy-arbo-el.ExpandAbbreviations.v1"

    [normalizer.*.spelling]
    @misc = "spacy-arbo-el.AmericanSpelling.v1"
    """
    chain = registry.resolve(Config().from_str(config))["normalizer"]
    assert chain == normalizer_chain(ExpandAbbreviations(), AmericanSpelling())


def read(mention, before="", after=""):
    """What is read of a mention; the text round it must stay."""
    text = before + mention + after
    offsets = np.array([[len(before), len(before) + len(mention)]])
    new, moved = PlainCharacters()(text, offsets)
    start, end = moved[0].tolist()
    assert new[:start] == before
    assert new[end:] == after
    return new[start:end]


@pytest.mark.parametrize("mention, plain", cases("plain_characters"))
def test_mentions_are_read_in_plain_characters(mention, plain):
    assert read(mention) == plain
    assert read(mention, "A β–cell ", " of ﬁve.") == plain


LATIN_1 = [chr(code) for code in range(0xA1, 0x100) if chr(code) not in "\u00ad\u00b4"]


@pytest.mark.parametrize("char", LATIN_1)
def test_characters_of_latin_1_are_what_they_stand_for(char):
    stands_for = unicodedata.normalize("NFKC", char).replace("\u2044", "/")
    stands_for = "mu" if char == "µ" else char if " " in stands_for else stands_for
    assert read(f"1{char}") == f"1{stands_for}"


def test_all_letters_of_the_alphabet_have_names():
    assert len(GREEK) == 49
    assert GREEK["µ"] == "mu"
    assert GREEK["λ"] == "lambda"
    assert GREEK["Ω"] == "Omega"


@given(st.text(alphabet="abβγ \n-–’ﬁo\u0308\u00ad２", min_size=1), st.text("aβ ", max_size=3))
def test_no_mention_vanishes(mention, around):
    # Soft hyphens alone cannot be seen.
    assume(mention.strip("\u00ad"))
    assert read(mention, around, around)


@pytest.mark.parametrize("british, american", cases("american_spellings"))
def test_british_spellings_become_american_ones(british, american):
    text = f"With {british} and anaemia."
    offsets = np.array([[5, 5 + len(british)]])
    new, moved = AmericanSpelling()(text, offsets)
    assert new == f"With {american} and anaemia."
    assert new[slice(*moved[0])] == american
