import csv
import gzip
import json

import pytest
import spacy
from hypothesis import given
from hypothesis import strategies as st
from spacy.tokens import Span

from spacy_arbo_el import Link
from spacy_arbo_el.corpora.annotated import LABEL
from spacy_arbo_el.corpora.links import write_links, write_table
from spacy_arbo_el.corpora.read import known_format_of, read, read_documents, read_ids
from spacy_arbo_el.kb import loaders
from spacy_arbo_el.mentions.getters import EntSpans, GroupSpans
from spacy_arbo_el.records.cells import cell, uncell
from spacy_arbo_el.records.lines import is_text, read_lines
from spacy_arbo_el.records.tables import open_table
from spacy_arbo_el.storage.files import replacing

from ..cases import cases
from ..expecting import raises, warns


def test_read_lines_splits_only_at_line_feeds(write):
    path = write("\ufeffa\x0bb\u2028c\x85d\re\r\n\nlast")
    assert list(read_lines(path)) == [(1, "a\x0bb\u2028c\x85d\re"), (2, ""), (3, "last")]


def test_read_ids_reads_one_id_per_line(write):
    assert read_ids(write("1\n 2 \r\n\n1")) == {"1", "2"}


@pytest.mark.parametrize("name", ["file", "a/b/file", "link"])
def test_a_file_is_replaced_whole_or_not_at_all(tmp_path, name):
    path, target = tmp_path / name, tmp_path / "target"
    if name == "link":
        target.write_bytes(b"old")
        path.symlink_to(target)
    for content in (b"one", b"two"):
        with replacing(path) as file:
            file.write(content)
        with pytest.raises(KeyboardInterrupt), replacing(path) as file:
            file.write(b"ne")
            raise KeyboardInterrupt
        assert path.read_bytes() == content
    assert set(path.parent.iterdir()) == ({path, target} if name == "link" else {path})
    assert path.is_symlink() == (name == "link")


def test_a_lone_surrogate_is_no_text():
    assert is_text("🙂")
    assert not is_text("\ud83d")
    assert not is_text(1)


@pytest.mark.parametrize("name, content, kind", cases("files_of_other_kinds"))
def test_files_of_other_kinds_are_named(write, name, content, kind):
    path = write(content, name)
    with raises(f"E119.*{kind}"):
        list(read(path, "jsonl"))
    with raises(f"E119.*{kind}"):
        loaders.known_format_of(path)
    assert known_format_of(write("# text,x\n", "b.csv")) == "csv"


@pytest.mark.filterwarnings("error::ResourceWarning")
def test_rows_without_text_are_counted_and_tables_in_utf_16_are_closed(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text('id,text\na,Blue fever.\nb,\nc,"  "\n', "utf-16")
    for _ in range(2):
        with warns("2 documents without text were left out, .* 'b'"):
            docs = list(read_documents(path, spacy.blank("en")))
        assert [doc.text for doc in docs] == ["Blue fever."]


def test_missing_values_of_parquet_are_those_of_a_table(tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet", reason="the extra ray is not installed")
    mention = {"start": 0, "end": 4, "label": None, "kb_id": None}
    rows = [
        {"id": None, "text": "Blue fever.", "mentions": [mention]},
        {"id": "b", "text": None, "mentions": None},
    ]
    table = pytest.importorskip("pyarrow").Table.from_pylist(rows)
    parquet.write_table(table, tmp_path / "a.parquet")
    with warns("1 documents without text were left out, .* 'b'"):
        (doc,) = read_documents(tmp_path / "a.parquet", spacy.blank("en"))
    assert [span.text for span in doc.ents] == ["Blue"]


@pytest.mark.parametrize(
    "line, is_bad",
    [("#Apple rises, stocks fall", True), ("#2,Beta, Inc", True), ("#,Beta, Inc", True)]
    + [(line, False) for line in ("# a list, of two", "#\ta list, of two", "## a, b", "#")],
)
def test_a_row_that_begins_with_a_hash_tag_is_no_comment(write, line, is_bad):
    bad = []
    table = open_table(write(f"id,title,type,url\n{line}\n", "a.csv"))
    assert list(table.rows(bad.append)) == []
    assert len(bad) == is_bad


@pytest.mark.parametrize("items, format", cases("wikidata_lists"))
def test_lists_of_items_of_wikidata_are_known_by_their_beginning(write, items, format):
    assert loaders.known_format_of(write(json.dumps(items), "items.json")) == format


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@sum(a1)", "\t=1", "\r=1", "'=1", "'tis"])
def test_texts_that_look_like_formulas_are_texts(text):
    assert cell(text) == f"'{text}"


@given(st.text("=+-@\t\r'a1 "))
def test_any_text_comes_back_from_its_cell(text):
    assert uncell(cell(text)) == text


def test_written_links_are_read_again_without_a_label_or_a_link(tmp_path):
    nlp = spacy.blank("en")
    doc = nlp("Ada met Bo")
    doc.spans["sc"] = [Span(doc, 0, 1), Span(doc, 2, 3, label="PERSON")]
    write_links([doc], tmp_path / "links.jsonl", GroupSpans("sc"), "arbo")
    (text,) = read(tmp_path / "links.jsonl", "jsonl")
    assert [(m.label, m.kb_ids) for m in text.mentions] == [(LABEL, ()), ("PERSON", ())]


def test_links_in_a_table_are_no_formulas(tmp_path):
    nlp = spacy.blank("en")
    doc = nlp("=HYPERLINK is a mention")
    doc.ents = [Span(doc, 0, 1, label="@X", kb_id="=1")]
    doc.ents[0]._.arbo = Link("=1", 0.5, ["=1"], [0.5], ())
    write_table([doc], tmp_path / "links.csv", EntSpans(), "arbo")
    with (tmp_path / "links.csv").open(newline="") as file:
        rows = list(csv.reader(file))
    assert not [text for row in rows for text in row if text[:1] in ("=", "@")]


@pytest.mark.parametrize("format, text", [("bioc", "<collection/>"), ("label-studio", "[]")])
def test_a_packed_file_that_was_cut_off_is_an_error_that_names_it(tmp_path, format, text):
    (tmp_path / "x.gz").write_bytes(gzip.compress(text.encode())[:-9])
    with raises("E100.*x.gz.*cut off"):
        list(read(tmp_path / "x.gz", format))
