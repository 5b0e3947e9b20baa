"""Replacing parts of a text, and normalizers one after the other."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from spacy.util import registry
from thinc.api import Config

from spacy_arbo_el.mentions.normalization.abbreviations import ExpandAbbreviations
from spacy_arbo_el.mentions.normalization.text import (
    AmericanSpelling,
    inside_of,
    normalizer_chain,
    replace,
)


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
