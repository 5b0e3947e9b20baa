"""Values of OBO tags are read without what stands behind them."""

from spacy_arbo_el.contrib.formats import obo


def test_modifiers_and_comments_are_stripped():
    assert obo._plain('red cat \t {source="A, B"} ! seen', "name") == "red cat"
    assert obo._plain("X:1 \t ! red cat", "is_a") == "X:1"
