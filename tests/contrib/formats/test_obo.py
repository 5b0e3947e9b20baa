"""Values of OBO tags are read without what stands behind them, in time linear in their length."""

import pytest

from spacy_arbo_el.contrib.formats import obo


@pytest.mark.parametrize("pattern", [obo._MODIFIERS, obo._BEHIND_ID])
def test_a_search_begins_at_the_first_of_several_blanks_alone(pattern):
    value = 'X:1    {source="A"}'
    assert pattern.search(value).start() == 3
    # A search that began at each of n blanks, and read all behind it, would take n squared.
    assert not any(pattern.search(value, start) for start in range(4, len(value)))


def test_modifiers_and_comments_are_stripped():
    assert obo._plain('red cat \t {source="A, B"} ! seen', "name") == "red cat"
    assert obo._plain("X:1 \t ! red cat", "is_a") == "X:1"
