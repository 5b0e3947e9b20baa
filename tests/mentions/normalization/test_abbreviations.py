"""Abbreviations that a document defines, written out; offsets that stay right."""

import re

import numpy as np
import pytest

from spacy_arbo_el.mentions.normalization.abbreviations import (
    ExpandAbbreviations,
    find_abbreviations,
)
from spacy_arbo_el.mentions.normalization.text import AmericanSpelling

from ...cases import cases
from ...linker.conftest import build
from ...linker.world import annotated


@pytest.mark.parametrize("text, defined", cases("abbreviations"))
def test_definitions(text, defined):
    assert find_abbreviations(text) == defined


def test_a_definition_goes_before_what_follows_from_another_one():
    both = "ventricular septa, deep (VSDs); ventricular septal defect (VSD)"
    assert find_abbreviations(both)["VSD"] == "ventricular septal defect"


def spans_of(text, *mentions):
    starts = [text.index(mention) for mention in mentions]
    return np.array([(s, s + len(m)) for s, m in zip(starts, mentions)], dtype=np.int64)


def test_an_abbreviation_may_be_followed_by_a_number():
    text = "multiple endocrine neoplasia (MEN) type, and MEN1, MEN 2 or MENX"
    mentions = ("neoplasia (MEN) type", "MEN1", "MEN 2", "MENX")
    new, moved = ExpandAbbreviations()(text, spans_of(text, *mentions))
    assert [new[a:b] for a, b in moved] == [
        "neoplasia type",
        "multiple endocrine neoplasia 1",
        "multiple endocrine neoplasia 2",
        "MENX",
    ]


def test_only_abbreviations_in_mentions_are_written_out_and_offsets_move():
    text = "Coronary heart disease (CHD) kills. Familial CHD, and CHD-like pain, but not CHDX."
    offsets = spans_of(text, "Coronary heart disease", "Familial CHD", "CHD-like pain", "CHDX")
    expand = ExpandAbbreviations()
    new, moved = expand(text, offsets)
    assert [new[a:b] for a, b in moved] == [
        "Coronary heart disease",
        "Familial Coronary heart disease",
        "Coronary heart disease-like pain",
        "CHDX",
    ]
    assert "(CHD) kills" in new
    again, unmoved = expand("no abbreviation here", spans_of("no abbreviation here", "here"))
    assert again == "no abbreviation here"
    assert unmoved.tolist() == [[16, 20]]


def test_the_linker_encodes_the_long_form():
    text = "The great river Amazon (GRA) floods. Boats on the [GRA|river] wait."
    plain, expanding = (
        build(mentions={"normalizer": normalizer})
        for normalizer in (None, {"@misc": "spacy-arbo-el.ExpandAbbreviations.v1"})
    )
    scores = []
    for nlp in (plain, expanding):
        doc = nlp(annotated(nlp, text))
        candidates = {c.kb_id: c.score for c in doc.ents[0]._.arbo.candidates}
        scores.append(candidates["river"])
        assert doc.ents[0].text == "GRA"
    assert doc.ents[0].kb_id_ == "river"
    assert scores[1] > scores[0]


def test_an_abbreviation_at_the_end_of_the_text_is_written_out():
    text = "coronary heart disease (CHD), Huntington disease of mice (HDMICE) and CHD"
    new, moved = ExpandAbbreviations()(text, np.array([(len(text) - 3, len(text))]))
    assert new.endswith("and coronary heart disease")
    assert moved[0, 1] == len(new)


def test_texts_that_define_very_many_abbreviations_take_no_square_of_their_length():
    """By one expression of all abbreviations this takes hours."""
    shorts = [
        f"{a}{b}{c}{d}" for a in "ABCDEFG" for b in "ABCDEFG" for c in "XYZUVW" for d in "KLMNOP"
    ]
    text = " ".join(f"{s[0]}x {s[1]}y {s[2]}z {s[3]}q ({s})" for s in shorts * 10)
    offsets = np.array([(m.start(), m.end()) for m in re.finditer(r"\w{4}(?=\))", text)])
    new, moved = ExpandAbbreviations()(text, offsets)
    assert len(find_abbreviations(text)) == 1764
    assert len(shorts) == 1764
    assert new[moved[-1, 0] : moved[-1, 1]] == "Gx Gy Wz Pq"
    assert len(moved) == len(offsets)


@pytest.mark.parametrize("normalizer", [ExpandAbbreviations(), AmericanSpelling()])
def test_endless_mentions_are_left_as_they_are(normalizer):
    """A text does not grow without bound."""
    text = "coronary heart disease (CHD) and anaemia; " + "CHD anaemia " * 100_000
    start = text.index("CHD anaemia")
    offsets = np.array([(start, len(text)), (start, start + 11)])
    new, moved = normalizer(text, offsets)
    assert new[moved[1, 0] : moved[1, 1]] != "CHD anaemia", "the short mention is read"
    assert abs(len(new) - len(text)) < 100


@pytest.mark.parametrize(
    "text",
    [
        "(" * 300_000,
        "(A" * 200_000,
        ")(" * 200_000,
        "(A) " * 50_000,
        "(" + "a" * 10**6 + ")",
        "(AB" * 100_000 + ")" * 100_000,
        "oedem" * 100_000,
        "-" * 10**6,
        "A" * 10**6,
    ],
    ids=lambda text: text[:8],
)
def test_hostile_texts_of_a_megabyte_are_read(text):
    offsets = np.array([(0, len(text)), (0, 1), (len(text) - 1, len(text))])
    for normalizer in (ExpandAbbreviations(), AmericanSpelling()):
        new, moved = normalizer(text, offsets)
        assert len(moved) == 3
        assert (moved[:, 1] <= len(new)).all()
