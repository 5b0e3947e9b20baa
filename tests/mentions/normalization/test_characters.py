"""Typography in mentions."""

import unicodedata

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from spacy_arbo_el.mentions.normalization.text import GREEK, PlainCharacters

from ...cases import cases

READ = PlainCharacters()


def read(mention, before="", after=""):
    """What is read of a mention; the text round it must stay."""
    text = before + mention + after
    offsets = np.array([[len(before), len(before) + len(mention)]])
    new, moved = READ(text, offsets)
    start, end = moved[0].tolist()
    assert new[:start] == before and new[end:] == after
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
    assert (
        len(GREEK) == 49 and GREEK["µ"] == "mu" and GREEK["λ"] == "lambda" and GREEK["Ω"] == "Omega"
    )


@given(st.text(alphabet="abβγ \n-–’ﬁo\u0308\u00ad２", min_size=1), st.text("aβ ", max_size=3))
def test_no_mention_vanishes(mention, around):
    # Soft hyphens alone cannot be seen.
    assume(mention.strip("\u00ad"))
    assert read(mention, around, around)
