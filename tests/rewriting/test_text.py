"""Replacing stretches of a text, and rewrites one after the other."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_arbo_el.rewriting.abbreviations import expand_abbreviations
from spacy_arbo_el.rewriting.spelling import american_spelling
from spacy_arbo_el.rewriting.text import inside_of, replace, rewrite_chain


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet="ab ", max_size=30), st.data())
def test_replacing_moves_every_offset_rightly(text, data):
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


def test_a_chain_rewrites_what_the_one_before_it_wrote():
    text = "Acute myeloid leukaemia (AML) is rare. AML kills."
    offsets = np.array([[39, 42]])
    chain = rewrite_chain(expand_abbreviations(), american_spelling())
    new, moved = chain(text, offsets)
    assert new[slice(*moved[0])] == "Acute myeloid leukemia"
    assert new.startswith("Acute myeloid leukaemia (AML)")
    assert rewrite_chain()(text, offsets) == (text, offsets)
