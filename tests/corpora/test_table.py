"""Cells of tables that people open in spreadsheets."""

import csv

import pytest
import spacy
from hypothesis import given
from hypothesis import strategies as st
from spacy.tokens import Span

from spacy_arbo_el.corpora.annotated import LABEL
from spacy_arbo_el.corpora.json_documents import JsonlReader
from spacy_arbo_el.corpora.links import write_links, write_table
from spacy_arbo_el.corpora.table import cell, uncell
from spacy_arbo_el.mentions.annotations import Link
from spacy_arbo_el.mentions.getters import EntSpans, GroupSpans


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@sum(a1)", "\t=1", "\r=1", "'=1", "'tis"])
def test_texts_that_look_like_formulas_are_texts(text):
    assert cell(text) == f"'{text}"


@pytest.mark.parametrize("value", ["", "a", "a=1", -1, -0.5, None])
def test_other_cells_stay_as_they_are(value):
    assert cell(value) == value


@given(st.text("=+-@\t\r'a1 "))
def test_any_text_comes_back_from_its_cell(text):
    assert uncell(cell(text)) == text


def test_written_links_are_read_again_without_a_label_or_a_link(tmp_path):
    nlp = spacy.blank("en")
    doc = nlp("Ada met Bo")
    doc.spans["sc"] = [Span(doc, 0, 1), Span(doc, 2, 3, label="PERSON")]
    write_links([doc], tmp_path / "links.jsonl", GroupSpans("sc"), "arbo")
    (read,) = JsonlReader().read(tmp_path / "links.jsonl")
    assert [(m.label, m.kb_ids) for m in read.mentions] == [(LABEL, ()), ("PERSON", ())]


def test_links_in_a_table_are_no_formulas(tmp_path):
    nlp = spacy.blank("en")
    doc = nlp("=HYPERLINK is a mention")
    doc.ents = [Span(doc, 0, 1, label="@X", kb_id="=1")]
    doc.ents[0]._.arbo = Link("=1", 0.5, ["=1"], [0.5], ())
    write_table([doc], tmp_path / "links.csv", EntSpans(), "arbo")
    with (tmp_path / "links.csv").open(newline="") as file:
        rows = list(csv.reader(file))
    assert not [text for row in rows for text in row if text[:1] in ("=", "@")]
