import pytest

from spacy_arbo_el.corpora.annotated import AnnotatedMention, AnnotatedText, split_ids
from spacy_arbo_el.corpora.id_fields import find_id

from ..cases import cases


@pytest.mark.parametrize(("value", "ids"), cases("annotated_ids"))
def test_split_ids_of_annotations(value, ids):
    assert split_ids(value, "+") == tuple(ids)


def test_split_ids_uses_only_the_given_separators():
    assert split_ids("A+B|C") == ("A+B", "C")


def test_kb_id_joins_the_ids():
    assert AnnotatedMention(0, 1, "X", ("B", "A")).kb_id == "B|A"
    assert AnnotatedMention(0, 1, "X").kb_id == "NIL"


@pytest.mark.parametrize(("start", "end"), [(-1, 2), (2, 2), (2, 1), (0, 6)])
def test_mention_outside_the_text_is_an_error(start, end):
    with pytest.raises(ValueError, match=rf"'d7'.*from {start} to {end}.*5 characters"):
        AnnotatedText("d7", "12345", (AnnotatedMention(start, end, "X"),))


def test_known_names_of_fields_go_before_others_and_empty_ones_after():
    assert find_id({"note": "x", "CUI": "", "mesh": 7}).value == "7"
    assert find_id({"note": "x", "CUI": ""}).unread == ()
    assert find_id({"note": "x", "is_mapped": True}).unread == ("note",)
