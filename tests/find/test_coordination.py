"""Names that share a word, and names in other forms, each with what it is read as."""

import pytest
import spacy

from spacy_arbo_el import Entity
from spacy_arbo_el.find.finders import mark_names
from spacy_arbo_el.find.near_names import NearNames
from spacy_arbo_el.mentions.getters import EntSpans

from ..cases import cases

NLP = spacy.blank("en")
NAMES = [
    *("breast cancer", "ovarian cancer", "lung cancer", "pancreatic cancer", "melanoma"),
    *("type 1 diabetes", "type 2 diabetes", "hepatitis B", "hepatitis C", "fibrosis"),
    *("lung fibrosis", "meningioma", "bronchus", "snoring", "Velmo syndrome"),
    *("Tumor", "protein C deficiency", "recurrence"),
]


def finder(names):
    return NearNames.of(NLP.vocab, NLP.Defaults.stop_words, map(Entity, names))


FINDER = finder(NAMES)


@pytest.mark.parametrize(("text", "names"), cases("coordinations"))
def test_parts_of_coordinations_and_other_forms(text, names):
    doc = mark_names(NLP.make_doc(text), FINDER, EntSpans())
    assert [[span.text, span._.arbo_name] for span in doc.ents] == names


def test_what_a_mention_is_read_as_is_that_of_the_last_list():
    doc = mark_names(NLP.make_doc("a melonoma"), FINDER, EntSpans())
    doc = mark_names(doc, finder(["melonoma"]), EntSpans())
    assert [span._.arbo_name for span in doc.ents] == [""]
