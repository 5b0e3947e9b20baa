"""Shards hold every document of a corpus once, whatever its format."""

import json

import pytest
import spacy
from hypothesis import given
from hypothesis import strategies as st
from spacy.tokens import DocBin

from spacy_arbo_el.contrib.scale.shards import cut, read_shard
from spacy_arbo_el.corpora.read import read_documents

NLP = spacy.blank("xx")
TEXTS = [f"Text {number}, with ümlauts.\u2028Not a new line." for number in range(11)]


def no_error(error):
    raise error


def read_all(corpus, size, bad=no_error):
    return [doc for shard in cut(corpus, size) for doc in read_shard(corpus, shard, NLP, bad)]


def ids_of(docs):
    return [doc.user_data["doc_id"] for doc in docs]


def write_lines(path, records):
    lines = (json.dumps(record, ensure_ascii=False) + "\n" for record in records)
    path.write_bytes("".join(lines).encode("utf8"))


@given(
    lines=st.lists(st.sampled_from(["", "\u2028", "ä", "a longer text"]), max_size=20),
    size=st.integers(1, 7),
    end=st.sampled_from(["", "\n", "\r\n"]),
    encoding=st.sampled_from(["utf8", "utf-16"]),
)
def test_shards_of_jsonl_hold_each_line_once(tmp_path_factory, lines, size, end, encoding):
    path = tmp_path_factory.mktemp("lines") / "corpus.jsonl"
    raw = [json.dumps({"text": line}, ensure_ascii=False) if line else "" for line in lines]
    path.write_bytes(((end or "\n").join(raw) + end).encode(encoding))
    docs = read_all(path, size)
    expected = [(f"corpus.jsonl:{n}", line) for n, line in enumerate(lines, 1) if line.strip()]
    assert [(doc.user_data["doc_id"], doc.text) for doc in docs] == expected
    shards = list(cut(path, size))
    assert [shard.number for shard in shards] == list(range(len(shards)))
    assert all(shard.lines.stop - shard.lines.start <= size for shard in shards)


def test_shards_of_each_format_hold_the_documents_of_the_files(tmp_path):
    records = [{"id": f"i{n}", "text": text} for n, text in enumerate(TEXTS)]
    write_lines(tmp_path / "a.jsonl", records)
    for number, text in enumerate(TEXTS):
        (tmp_path / f"{number:02d}.txt").write_text(text, encoding="utf8")
    docs = list(read_documents(tmp_path / "a.jsonl", NLP))
    DocBin(docs=docs, store_user_data=True).to_disk(tmp_path / "b.spacy")
    (tmp_path / "c.csv").write_text("id,text\nx,One row\ny,Another\n", encoding="utf8")
    ids = [record["id"] for record in records]
    for name in ("a.jsonl", "b.spacy"):
        docs = read_all(tmp_path / name, 4)
        assert ids_of(docs) == ids
        assert [doc.text for doc in docs] == TEXTS
        assert len(list(cut(tmp_path / name, 4))) == 3
    everything = read_all(tmp_path, 4)
    names = [f"{number:02d}.txt" for number in range(11)]
    assert sorted(ids_of(everything)) == sorted([*ids, *ids, "x", "y", *names])
    assert len(list(cut(tmp_path, 4))) == 3 + 3 + 3 + 1


def test_rows_of_parquet_are_read_across_row_groups(tmp_path):
    pa = pytest.importorskip("pyarrow", reason="Parquet needs pyarrow")
    import pyarrow.parquet as pq

    mentions = [[{"start": 0, "end": 4, "label": "T"}] for _ in TEXTS]
    ids = [None if n == 5 else n for n in range(11)]
    table = pa.table({"id": ids, "other": TEXTS, "text": TEXTS, "mentions": mentions})
    pq.write_table(table, tmp_path / "p.parquet", row_group_size=3)
    for size in (1, 2, 4, 20):
        docs = read_all(tmp_path / "p.parquet", size)
        assert ids_of(docs) == ["p.parquet:6" if n == 5 else str(n) for n in range(11)]
        assert [doc.text for doc in docs] == TEXTS
        assert all(doc.ents[0].text == "Text" for doc in docs)
    assert [doc.text for doc in read_documents(tmp_path / "p.parquet", NLP)] == TEXTS
    pq.write_table(table.select(["id"]), tmp_path / "q.parquet")
    errors = []
    assert not read_all(tmp_path / "q.parquet", 20, errors.append)
    assert len(errors) == 1
    assert "no column 'text'" in str(errors[0])


def test_what_cannot_be_read_is_an_error_and_the_rest_is_read(tmp_path):
    write_lines(tmp_path / "a.jsonl", [{"text": "One"}, {"text": 3}, {"text": "Three"}])
    with (tmp_path / "a.jsonl").open("ab") as file:
        file.write(b'{"text": "\xff"}\nno JSON\n')
        mention = {"start": 1, "end": 99, "label": "T"}
        file.write(json.dumps({"text": "Four", "mentions": [mention]}).encode() + b"\n")
    (tmp_path / "b.spacy").write_bytes(b"damaged")
    (tmp_path / "c.txt").write_bytes(b"\xff\xfe\xfa")
    (tmp_path / "d.parquet").write_bytes(b"PAR1 no Parquet")
    (tmp_path / "e.txt").write_text("Five")
    for name in ("f.jsonl", "g.txt"):
        (tmp_path / name).symlink_to(name)
    errors = []
    docs = read_all(tmp_path, 2, errors.append)
    assert sorted(doc.text for doc in docs) == ["Five", "One", "Three"]
    reasons = [str(error) for error in errors]
    for number in (2, 4, 5, 6):
        assert sum(f"a.jsonl, line {number}" in reason for reason in reasons) == 1, reasons
    for name in ("b.spacy", "c.txt", "d.parquet", "f.jsonl", "g.txt"):
        assert sum(name in reason for reason in reasons) == 1, reasons
    assert len(errors) == 9


def test_one_damaged_document_of_a_docbin_does_not_hide_the_others(tmp_path):
    docbin = DocBin(docs=[NLP(text) for text in TEXTS], store_user_data=True)
    docbin.span_groups[2] = b"damaged"
    docbin.to_disk(tmp_path / "a.spacy")
    errors = []
    docs = read_all(tmp_path / "a.spacy", 4, errors.append)
    assert [doc.text for doc in docs] == [text for n, text in enumerate(TEXTS) if n != 2]
    assert len(errors) == 1
    assert "document 3" in str(errors[0])
