"""Which names of mentions are one, and which tell two entities apart."""

import numpy as np
import pytest

from spacy_arbo_el import MentionRecord
from spacy_arbo_el.discovery.mention_names import MentionNames, letters_of

from ..cases import cases


def names_of(*texts, label="", document=None):
    """The names of mentions, each in a document of its own unless one is given."""
    return MentionNames.of(
        [
            MentionRecord((document or str(number), 9 * number, 9), (), text, "", "", label, text)
            for number, text in enumerate(texts)
        ]
    )


@pytest.mark.parametrize(
    "forms",
    [
        ("Zorblax", "#Zorblax", "@Zorblax", "ZORBLAX"),
        ("Kel-Vorn", "Kelvorn", "KelVorn", "Kel Vorn"),
        ("Z\u00fcrbl\u00f6x", "Zuerbloex"),
    ],
)
def test_forms_of_one_name_have_one_number(forms):
    assert len(set(names_of(*forms).numbers.tolist())) == 1


@pytest.mark.parametrize("pair", [("C++", "C"), ("C#", "C"), ("Zorb 1 2", "Zorb 12"), ("#", "@")])
def test_other_signs_and_digits_make_other_names(pair):
    assert letters_of(pair[0]) != letters_of(pair[1])


def test_names_differ_by_label():
    records = [MentionRecord(("a", 0, 1), (), "A", label=label, normalized="A") for label in "XY"]
    assert MentionNames.of(records).numbers.tolist() == [0, 1]


@pytest.mark.parametrize("pair, label, may_be_one", cases("names_of_two"))
def test_names_tell_entities_apart(pair, label, may_be_one):
    names = names_of(*pair, label=label)
    assert names.may_be_one(np.array([0, 1]), np.array([1, 0])).tolist() == [may_be_one] * 2


@pytest.mark.parametrize("full", ["Ben Holloway", "Dr. Ada Holloway"])
def test_a_last_name_of_several_persons_is_of_none_of_them(full):
    names = names_of("Holloway", "Ada Holloway", full, label="PERSON")
    is_other = full == "Ben Holloway"
    pairs = np.array([0, 0]), np.array([1, 2])
    assert names.may_be_one(*pairs).tolist() == [not is_other] * 2
    assert names_of("Holloway", "Ada Holloway", full).may_be_one(*pairs).all()


def test_a_short_name_is_the_full_one_of_its_document():
    names = names_of("Kimbralt Shipping ASA", "Kimbralt", "fever", "dengue fever", document="d")
    assert names.numbers.tolist() == [0, 0, 1, 2]
    apart = names_of("Ada Holloway", "Holloway", "Ben Holloway", document="d")
    assert len(set(apart.numbers.tolist())) == 3
