"""Files of entities with hostile bytes: each is read, or refused with its name and the line."""

import bz2
import gzip
import json
import re
import time
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from spacy.kb import InMemoryLookupKB
from spacy.vocab import Vocab

from spacy_arbo_el.kb.entity import Entity
from spacy_arbo_el.kb.knowledge_base import ArboKB
from spacy_arbo_el.kb.loaders import import_into
from spacy_arbo_el.storage.formats import entity_formats

from .test_formats import OBO, UMLS, WIKIDATA

ENTITY = {"id": "a", "title": "A", "description": "d", "aliases": ["x"], "types": ["T"]}
FILES = {
    "jsonl": {"kb.jsonl": json.dumps({**ENTITY, "frequency": 2, "meta": {"k": [1]}}).encode()},
    "table": {"kb.csv": b'id,title,aliases,frequency,more\na,"A, B",x|y,3,z\nb,"C\nD",,,\n'},
    "obo": {"kb.obo": OBO.encode()},
    "umls": {name: text.encode() for name, text in UMLS.items()},
    "wikidata": {"kb.json": "\n".join(WIKIDATA).encode()},
    "wikidata gz": {"kb.json.gz": gzip.compress("\n".join(WIKIDATA).encode())},
    "wikidata bz2": {"kb.json.bz2": bz2.compress("\n".join(WIKIDATA).encode())},
}
SNIPPETS = [
    *(b"\0", b"\\u0000", b"\xff\xfe", b"\xef\xbb\xbf", b"\r\n", b"\r", b"\n", b"\x1a", b"\x1b[2J"),
    *(b"\\ud83d", b"\xed\xa0\xbd", b"\xe2\x80\xa8", b"\xc2\x85", b"\xf4\x90\x80\x80"),
    *(b"NaN", b"Infinity", b"-1", b"1e999", b"1" * 400, b"9" * 5000, b"null", b"true", b"0.5"),
    *(b"[" * 2000, b'{"a":' * 2000, b"{}", b"[]", b'""', b'"', b"'", b"|", b"||", b"\t", b","),
    *(b"NIL", b"..", b"\\", b"%s", b"{0}", b": ", b"!", b"[Term]\n", b" ", b"\xc2\xa0"),
]
# (where, how many bytes are replaced, by what)
CHANGES = st.lists(
    st.tuples(
        st.floats(0, 1),
        st.integers(0, 3) | st.integers(0, 60),
        st.sampled_from(SNIPPETS) | st.binary(max_size=4),
    ),
    min_size=1,
    max_size=4,
)


def write(folder, files):
    """Write files into a folder. RETURNS: What to import."""
    folder.mkdir(exist_ok=True)
    for name, data in files.items():
        (folder / name).write_bytes(data)
    return folder if len(files) > 1 else folder / next(iter(files))


def read_or_refused(source, format):
    """The entities of a source, in a knowledge base; None where it is refused as it should be."""
    kb = ArboKB(Vocab())
    try:
        import_into(kb, source, format)
    except (ValueError, FileNotFoundError) as error:
        assert len(str(error)) < 2000
        place = r"line \d+: |does not exist|E002|E016|E023|has no entity"
        assert re.match(rf"\[arbo-E\d+\] .*({place})", str(error), re.DOTALL), error
        assert len(kb) == 0
        return None
    entities = list(kb)
    for entity in entities:
        json.dumps(entity.to_dict(), ensure_ascii=False, allow_nan=False).encode("utf8")
        assert "\0" not in "".join((entity.id, *entity.names, *entity.types))
    return entities


@pytest.mark.attack
@pytest.mark.parametrize("kind", FILES)
def test_changed_files_are_read_or_refused_by_file_and_line(kind, tmp_path, attacks):
    format = kind.split()[0]

    @settings(max_examples=attacks(25, 1000), database=None)
    @given(st.sampled_from(sorted(FILES[kind])), CHANGES, st.none() | st.floats(0, 1))
    def check(name, changes, cut):
        data = FILES[kind][name]
        for place, length, snippet in changes:
            at = int(place * len(data))
            data = data[:at] + snippet + data[at + length :]
        data = data if cut is None else data[: int(cut * len(data))]
        source = write(tmp_path / "files", {**FILES[kind], name: data})
        read_or_refused(source, format)

    check()


@pytest.mark.parametrize("kind", FILES)
def test_unchanged_files_with_other_line_ends_and_a_mark_are_read(kind, tmp_path):
    files, format = FILES[kind], kind.split()[0]
    expected = read_or_refused(write(tmp_path / "x", files), format)
    assert expected
    if " " in kind:
        return
    windows = {name: data.replace(b"\n", b"\r\n") for name, data in files.items()}
    marked = {name: b"\xef\xbb\xbf" + data for name, data in files.items()}
    assert read_or_refused(write(tmp_path / "marked", marked), format) == expected
    found = read_or_refused(write(tmp_path / "windows", windows), format)
    assert [entity.id for entity in found] == [entity.id for entity in expected]
    assert found == expected or kind == "table", "a line end within a cell stays"


BAD = [b"\0", b"\xff", b"\xed\xa0\xbd"]


@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize(
    ("format", "name", "line"),
    [
        ("jsonl", "kb.jsonl", b'{"id": "a", "title": "%s"}'),
        ("jsonl", "kb.jsonl", b'{"id": "a%s"}'),
        ("table", "kb.csv", b'id,title\na,"%s"'),
        ("obo", "kb.obo", b"[Term]\nid: a\nname: a%s"),
        ("wikidata", "kb.json", WIKIDATA[0].encode().replace(b"Ada", b"%s")),
    ],
)
def test_characters_that_cannot_be_stored_are_named_with_file_and_line(
    tmp_path, format, name, line, bad
):
    source = write(tmp_path / "x", {name: line.replace(b"%s", bad)})
    with pytest.raises(ValueError, match=rf"{re.escape(name)}, line \d+: "):
        list(entity_formats.get(format)(source))


@pytest.mark.parametrize("text", ["\\u0000", "\\ud83d"])
@pytest.mark.parametrize("key", ["id", "title", "description", "aliases", "types", "meta", "x"])
def test_escaped_characters_of_jsonl_are_named_with_file_and_line(tmp_path, key, text):
    value = {"aliases": f'["{text}"]', "types": f'["{text}"]', "meta": f'{{"k": "{text}"}}'}
    line = f'{{"id": "b", "{key}": {value.get(key, chr(34) + text + chr(34))}}}'
    source = write(tmp_path / "x", {"kb.jsonl": b'{"id": "a"}\n' + line.encode()})
    if text == "\\u0000" and key in ("meta", "x"):
        assert len(read_or_refused(source, "jsonl")) == 2, "JSON has escapes for NUL"
        return
    with pytest.raises(ValueError, match=r"kb.jsonl, line 2: "):
        list(entity_formats.get("jsonl")(source))


@pytest.mark.parametrize("value", ["NaN", "Infinity", "1e999", "-1", "1" * 400, "true", '"1"'])
def test_impossible_frequencies_are_named_with_file_and_line(tmp_path, value):
    line = f'{{"id": "a", "frequency": {value}}}'.encode()
    with pytest.raises(ValueError, match=r"kb.jsonl, line 1: "):
        list(entity_formats.get("jsonl")(write(tmp_path / "x", {"kb.jsonl": line})))
    line = f'{{"id": "a", "meta": {{"k": [{value}]}}}}'.encode()
    source = write(tmp_path / "z", {"kb.jsonl": line})
    assert (read_or_refused(source, "jsonl") is None) == (value in ("NaN", "Infinity", "1e999"))
    table = f"id,frequency\na,{value}\n".encode()
    if value not in ("true", '"1"'):
        with pytest.raises(ValueError, match=r"kb.csv, line 2: "):
            list(entity_formats.get("table")(write(tmp_path / "y", {"kb.csv": table})))


LONG = b"x" * 10_000_000


@pytest.mark.parametrize(
    ("format", "name", "data"),
    [
        ("jsonl", "kb.jsonl", b'{"id": "a", "description": "%s"}'),
        ("jsonl", "kb.jsonl", b'{"id": "%s'),
        ("table", "kb.csv", b"id,description\na,%s\n"),
        ("obo", "kb.obo", b'[Term]\nid: a\nname: a\ndef: "%s" []\n'),
        ("obo", "kb.obo", b"[Term]\nid: a\n%s\n"),
        ("wikidata", "kb.json", b'{"id": "a", "labels": {}, "x": "%s"}'),
        ("umls", "MRCONSO.RRF", b"C01|%s\n"),
    ],
)
def test_lines_of_ten_megabytes_take_seconds_at_most(tmp_path, format, name, data):
    data = data.replace(b"%s", LONG)
    source = write(tmp_path / "x", {name: data})
    start = time.monotonic()
    read_or_refused(tmp_path / "x" if format == "umls" else source, format)
    assert time.monotonic() - start < 20


@pytest.mark.parametrize(
    "values",
    [
        {"id": "a\0"},
        {"id": "a\ud83d"},
        {"id": "a", "title": "\0"},
        {"id": "a", "title": 7},
        {"id": "a", "description": "\ud83d"},
        {"id": "a", "description": 7.5},
        {"id": "a", "aliases": ["x", "\0"]},
        {"id": "a", "aliases": "x"},
        {"id": "a", "aliases": 7},
        {"id": "a", "aliases": [None]},
        {"id": "a", "types": ["\udfff"]},
        {"id": "a", "frequency": float("-inf")},
        {"id": "a", "frequency": "many"},
        {"id": "a", "frequency": 10**400},
    ],
)
def test_entities_with_impossible_values_are_refused(values):
    with pytest.raises(ValueError, match=r"^\[arbo-E0\d\d\].*'a"):
        Entity(**values)


@pytest.mark.parametrize("value", [float("nan"), {1, 2}, object(), "\ud83d", {(1, 2): 3}])
def test_a_meta_that_is_no_json_is_refused_when_it_is_added(value):
    kb = ArboKB(Vocab())
    with pytest.raises(ValueError, match="E039.*meta of entity 'a'"):
        kb.add([Entity("b"), Entity("a", meta={"k": value})])
    assert len(kb) == 0


@pytest.mark.parametrize("old", ["\0", "\ud83d", 7])
def test_redirects_with_impossible_ids_are_refused(old):
    kb = ArboKB(Vocab(), [Entity("a")])
    with pytest.raises(ValueError, match="E037"):
        kb.redirect({old: "a"})
    assert kb.entities.redirects() == {}


@pytest.fixture
def spacy_kb(tmp_path):
    kb = InMemoryLookupKB(Vocab(), entity_vector_length=2)
    for name in ("Q1", "Q2", "Q3"):
        kb.add_entity(name, 7, [0.0, 1.0])
    kb.add_alias("DA", ["Q1", "Q3"], [0.9, 0.1])
    kb.add_alias("D", ["Q2"], [0.9])
    kb.to_disk(tmp_path / "kb")
    assert len(list(entity_formats.get("spacy")(tmp_path / "kb"))) == 3
    return tmp_path / "kb"


@pytest.mark.parametrize("name", ["contents", "strings.json"])
def test_a_knowledge_base_of_spacy_that_is_cut_off_is_refused(spacy_kb, name):
    path = spacy_kb / name
    data = path.read_bytes()
    for size in range(len(data)):
        path.write_bytes(data[:size])
        with pytest.raises(ValueError, match=rf"^\[arbo-E\d+\].*{name}"):
            list(entity_formats.get("spacy")(spacy_kb))


@pytest.mark.attack
def test_flipped_bits_of_a_knowledge_base_of_spacy_crash_nothing(spacy_kb, attacks):
    path, random = spacy_kb / "contents", Random(0)
    data = path.read_bytes()
    for _ in range(attacks(200, 2000)):
        changed = bytearray(data)
        changed[random.randrange(len(data))] ^= 1 << random.randrange(8)
        path.write_bytes(changed)
        try:
            assert len(list(entity_formats.get("spacy")(spacy_kb))) == 3
        except ValueError as error:
            assert str(error).startswith("[arbo-E")
