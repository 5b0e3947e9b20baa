"""Names that a text writes in another way than the list."""

import pytest
import spacy

from spacy_arbo_el.corpora.names import Dictionary, mark_names
from spacy_arbo_el.corpora.near_names import NearNames
from spacy_arbo_el.kb.entity import Entity
from spacy_arbo_el.mentions.getters import EntSpans

from ..cases import cases

EN = spacy.blank("en")
NAMES = cases("near_entities")
ENTITIES = [Entity(f"E{n}", name, types=[f"T{n}"]) for n, name in enumerate(NAMES)]


def found(text, entities=ENTITIES):
    doc = mark_names(
        EN.make_doc(text), NearNames.of(EN.vocab, EN.Defaults.stop_words, entities), EntSpans()
    )
    assert doc.text == text
    return [[span.text, span.label_] for span in doc.ents]


@pytest.mark.parametrize(("text", "names"), cases("near_names"))
def test_what_is_found(text, names):
    assert found(text) == names


def test_what_is_exact_is_found_as_before():
    text = "Huntington disease and UNESCO; alpha-synuclein in Velmo Lake (Norway)."
    exact = mark_names(EN.make_doc(text), Dictionary.build(EN, ENTITIES), EntSpans())
    assert found(text) == [[span.text, span.label_] for span in exact.ents]


@pytest.mark.parametrize(("name", "text"), cases("ordinary_words"))
def test_an_ordinary_word_is_no_name(name, text):
    assert found(text, [Entity("E1", name)]) == []


def test_the_subject_of_a_list_names_none_of_it():
    entities = [Entity(f"C{n}", f"cell {chr(97 + n % 26)}{n} body") for n in range(200)]
    text = "the cell, cells and cell a0 body"
    assert found(text, [*entities, Entity("C", "cell")]) == [["cell a0 body", "ENTITY"]]
    assert found(text, [entities[0], Entity("C", "cell")])[0] == ["cell", "ENTITY"]


def test_forms_are_a_setting():
    from .test_names import names_and_linker, names_in

    entities = {"D1": "blue fever"}
    near, exact = (names_and_linker(entities, forms=forms) for forms in ("near", "exact"))
    assert names_in(exact, "fevers blue") == [] and names_in(near, "fevers blue") == ["fevers blue"]
    with pytest.raises(ValueError, match=r"arbo_names\.forms.*'near', 'exact'"):
        names_and_linker(entities, forms="fuzzy")
