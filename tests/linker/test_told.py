"""What was wrong in silence, or said unclearly, in small things."""

import json
import warnings

import pytest
import spacy
from spacy.tokens import Span

from spacy_arbo_el.corpora.annotated import AnnotatedMention, AnnotatedText
from spacy_arbo_el.corpora.read import read, read_documents
from spacy_arbo_el.kb.loaders import known_format_of
from spacy_arbo_el.mentions.getters import GroupSpans
from spacy_arbo_el.show.frames import links_to_dicts


@pytest.mark.parametrize(
    ("start", "end", "want"),
    [(0, 11, (0, 10)), (10, 16, (11, 15)), (0, 10, (0, 10)), (10, 11, (10, 11))],
)
def test_blanks_at_the_ends_of_mentions_are_no_part_of_them(start, end, want):
    (mention,) = AnnotatedText(
        "d", "Blue fever came ", [AnnotatedMention(start, end, "D")]
    ).mentions
    assert (mention.start, mention.end) == want


@pytest.mark.parametrize("value", [None, "0.3", True, -0.1, 2])
def test_a_threshold_is_a_probability(value):
    linker = spacy.blank("en").add_pipe("arbo_linker")
    with pytest.raises(ValueError, match="E402"):
        linker.threshold = value


@pytest.mark.parametrize("entities", [{"D1": "blue fever"}, {"id": "D1", "title": "blue fever"}])
def test_a_dict_is_no_list_of_entities(entities):
    linker = spacy.blank("en").add_pipe("arbo_linker")
    with pytest.raises(ValueError, match="E506.*a list with a dict for each entity"):
        linker.set_kb(entities)


@pytest.mark.parametrize(
    ("items", "format"),
    [
        ([{"type": "item", "id": "Q1", "labels": {"mul": {"value": "Veil"}}}], "wikidata"),
        ([{"id": "Q1", "labels": {}}], "wikidata"),
        ([{"id": "1", "title": "Veil", "types": ["item"]}], "json"),
        ([{"id": "1", "title": "Veil", "labels": "x"}], "json"),
    ],
)
def test_lists_of_items_of_wikidata_are_known_by_their_beginning(tmp_path, items, format):
    path = tmp_path / "items.json"
    path.write_text(json.dumps(items), "utf8")
    assert known_format_of(path) == format


@pytest.mark.filterwarnings("error::ResourceWarning")
def test_tables_in_utf_16_are_closed(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("id,text,mention,kb_id\nd,Blue fever came.,Blue fever,D1\n", "utf-16")
    for _ in range(2):
        (text,) = read(path, "csv")
        assert text.mentions[0].kb_ids == ("D1",)


def test_rows_without_text_are_counted(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text('id,text\na,Blue fever.\nb,\nc,"  "\n', "utf8")
    with pytest.warns(UserWarning, match="2 documents without text were left out, .* 'b'"):
        docs = list(read_documents(path, spacy.blank("en")))
    assert [doc.text for doc in docs] == ["Blue fever."]


def test_links_of_span_groups_are_asked_for():
    nlp = spacy.blank("en")
    doc = nlp("Blue fever came.")
    doc.spans["mine"] = [Span(doc, 0, 2, "D", kb_id="D1")]
    with pytest.warns(UserWarning, match="W111.*'mine'"):
        assert links_to_dicts([doc]) == []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert [row["kb_id"] for row in links_to_dicts([doc], get_spans=GroupSpans("mine"))] == [
            "D1"
        ]
