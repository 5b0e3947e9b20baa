"""Files x damage x reader: each damaged file is read as it was, or refused by name and line."""

import bz2
import gzip
import json
import random
import re
import shutil
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import spacy
from hypothesis import given, settings
from hypothesis import strategies as st
from spacy.tokens import DocBin
from spacy.vocab import Vocab
from thinc.api import Adam

from spacy_arbo_el import ArboKB, find_linker
from spacy_arbo_el.corpora.annotated import AnnotatedMention, AnnotatedText
from spacy_arbo_el.corpora.convert import convert_corpus
from spacy_arbo_el.corpora.docbin import read_docs, write_docbin
from spacy_arbo_el.corpora.docs import to_doc
from spacy_arbo_el.corpora.read import read, read_ids
from spacy_arbo_el.kb.loaders import import_into
from spacy_arbo_el.linking.component_folder import ComponentFolder
from spacy_arbo_el.runs.checkpoint import Checkpoint, read_checkpoint

from .expecting import raises
from .pipelines.saved import NAME, PARTS, contents, empty_linker, load_component
from .runs.test_resume import pipes

NLP = spacy.blank("xx")


@dataclass(frozen=True)
class Reader:
    """A reader of text files, with a valid example.

    read: What a path gives, to the end. Raises ValueError for what it refuses.
    files: Content by name; with several files, the folder is read.
    place: What a message says besides its code.
    lines: Whether it is a file of lines, which may have other ends and a byte order mark.
    """

    read: Callable[[Path], object]
    files: dict[str, bytes]
    place: str = r"line \d+: "
    lines: bool = True

    def write(self, folder, name="", data=b""):
        """Write the files, one of them with other content. RETURNS: What to read."""
        folder.mkdir(exist_ok=True)
        for one, content in {**self.files, **({name: data} if name else {})}.items():
            (folder / one).write_bytes(content)
        return folder if len(self.files) > 1 else folder / next(iter(self.files))

    def outcome(self, source):
        """What is read; None where it is refused as it should be."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                return self.read(source)
            except (ValueError, FileNotFoundError) as error:
                assert re.match(rf"\[arbo-E\d+\] .*({self.place})", str(error), re.DOTALL), error
                assert str(source.parent) in str(error) or "E0" in str(error)
                assert len(str(error)) < 2000, "a message is no copy of the file"
                return None


def entities_of(source, format):
    kb = ArboKB(Vocab())
    try:
        import_into(kb, source, format)
    except (ValueError, FileNotFoundError):
        assert len(kb) == 0
        raise
    for entity in kb:
        json.dumps(entity.to_dict(), ensure_ascii=False, allow_nan=False).encode("utf8")
        assert "\0" not in "".join((entity.id, *entity.names, *entity.types))
    return list(kb)


def documents_of(source, format):
    """The documents of a corpus, which can be converted and stored."""
    texts = list(read(source, format))
    bin = DocBin(docs=[to_doc(NLP, text) for text in texts], store_user_data=True)
    for doc in DocBin().from_bytes(bin.to_bytes()).get_docs(NLP.vocab):
        assert all(span.text for span in doc.spans["mentions"])
    return texts


ENTITY = {"id": "a", "title": "A", "description": "d", "aliases": ["x"], "types": ["T"]}
RECORD = {
    "id": "d1",
    "text": "Ada met Lovelace.",
    "mentions": [
        {"start": 0, "end": 3, "label": "PERSON", "kb_id": "a|b", "cluster": ""},
        {"start": 8, "end": 16, "label": "PERSON", "kb_id": None, "cluster": "new-1"},
    ],
}
PUBTATOR = b"1|t|A title\n1|a|An abstract\n1\t0\t7\tA title\tDisease\tD1|D2\n1\tCID\tD1\tD2\n\n"
SAMPLES = Path(__file__).parent / "data" / "entities"
OBO = (SAMPLES / "obo" / "plants.obo").read_bytes()
ITEMS = (SAMPLES / "wikidata" / "dump.json").read_bytes().splitlines()[1:-1]
DUMP = b"\n".join(line.rstrip(b",") for line in ITEMS)
OF_CORPORA = r"line \d+: |of another format"
OF_ENTITIES = r"line \d+: |does not exist|E002|E016|E023|has no entity"
FILES = {
    "jsonl": {"kb.jsonl": json.dumps({**ENTITY, "frequency": 2, "meta": {"k": [1]}}).encode()},
    "table": {"kb.csv": b'id,title,aliases,frequency,more\na,"A, B",x|y,3,z\nb,"C\nD",,,\n'},
    "obo": {"kb.obo": OBO},
    "umls": {path.name: path.read_bytes() for path in (SAMPLES / "umls" / "subset").iterdir()},
    "wikidata": {"kb.json": DUMP},
    "wikidata gz": {"kb.json.gz": gzip.compress(DUMP)},
    "wikidata bz2": {"kb.json.bz2": bz2.compress(DUMP)},
}
READERS = {
    **{
        kind: Reader(
            partial(entities_of, format=kind.split()[0]), files, OF_ENTITIES, " " not in kind
        )
        for kind, files in FILES.items()
    },
    "documents": Reader(
        partial(documents_of, format="jsonl"),
        {"corpus": json.dumps(RECORD).encode() + b"\n"},
        OF_CORPORA,
    ),
    "pubtator": Reader(partial(documents_of, format="pubtator"), {"corpus": PUBTATOR}, OF_CORPORA),
    "ids": Reader(read_ids, {"ids.txt": b"a\nb\n"}),
}


# Any change of any file

SNIPPETS = [
    *(b"\0", b"\\u0000", b"\xff", b"\xff\xfe", b"\xfe\xff", b"\xef\xbb\xbf", b"\xc0\x80", b"\x85"),
    *(b"\r\n", b"\r", b"\n", b"\x1a", b"\x1b[2J", b"\\ud83d", b"\xed\xa0\xbd", b"\xe2\x80\xa8"),
    *(b"\xc2\x85", b"\xf4\x90\x80\x80", "🙂".encode(), b"NaN", b"Infinity", b"-1", b"1e999"),
    *(b"1" * 400, b"9" * 5000, b"null", b"true", b"0.5", b"[" * 2000, b'{"a":' * 2000, b"{}"),
    *(b"[]", b'""', b'"', b"'", b"|", b"||", b"\t", b",", b"{", b"}", b"[", b"]", b"NIL", b".."),
    *(b"\\", b"%s", b"{0}", b": ", b"!", b"[Term]\n", b" ", b"\xc2\xa0"),
]
# (where, how many bytes are replaced, by what)
CHANGES = st.lists(
    st.tuples(
        st.floats(0, 1),
        st.integers(0, 3) | st.integers(0, 60),
        st.sampled_from(SNIPPETS) | st.binary(max_size=40),
    ),
    min_size=1,
    max_size=4,
)


@pytest.mark.attack
@pytest.mark.parametrize("kind", READERS)
def test_changed_files_are_read_or_refused_by_file_and_line(kind, tmp_path, attacks):
    reader = READERS[kind]

    @settings(max_examples=attacks(25, 1000), database=None)
    @given(
        st.sampled_from(sorted(reader.files)),
        CHANGES,
        st.none() | st.floats(0, 1),
        st.sampled_from([1, 1, 2, 0]),
    )
    def check(name, changes, cut, times):
        data = reader.files[name] * times
        for place, length, snippet in changes:
            at = int(place * len(data))
            data = data[:at] + snippet + data[at + length :]
        data = data if cut is None else data[: int(cut * len(data))]
        reader.outcome(reader.write(tmp_path / "files", name, data))

    check()


@pytest.mark.parametrize("kind", READERS)
def test_other_line_ends_and_a_mark_change_nothing(kind, tmp_path):
    reader = READERS[kind]
    expected = reader.outcome(reader.write(tmp_path / "plain"))
    assert expected
    for name, data in reader.files.items() if reader.lines else ():
        marked = reader.write(tmp_path / "marked", name, b"\xef\xbb\xbf" + data)
        assert reader.outcome(marked) == expected
        windows = data.replace(b"\n", b"\r\n")
        found = reader.outcome(reader.write(tmp_path / "windows", name, windows))
        # A line end within a cell stays.
        assert found == expected or kind == "table" and len(found) == len(expected)


DEEP = 100_000
LONG = b"x" * 10_000_000


@pytest.mark.parametrize("kind", ["documents", "pubtator"])
@pytest.mark.parametrize(
    "content",
    [
        b"[" * DEEP,
        b'{"id": ' * DEEP,
        b'{"id": ' + b"[" * DEEP + b"]" * DEEP + b"}",
        b'{"id": ' + b"9" * 5000 + b"}",
        b'{"id": NaN}',
        LONG,
        b'{"id": "' + LONG,
        b"\xef\xbb\xbf\xef\xbb\xbf{}",
        b"\x00" * 1000,
        b"\xff\xfe{\x00}\x00",
    ],
    ids=lambda content: repr(content[:12]),
)
def test_no_documents_and_endless_lines_are_refused(tmp_path, kind, content):
    reader = READERS[kind]
    assert reader.outcome(reader.write(tmp_path / "x", "corpus", content + b"\n")) is None


# Characters and values that no entity and no record can have


WRONG = [
    None, True, False, 0, -1, 3, 10**30, 1.0, 2.5, float("nan"), float("inf"), "", " ", "0", "NIL",
    "x\x00y", "\ud83d", "\ufeff", "\r\n", "\u2028", "|", "-1", "x" * 10_000, [], [[]], [None], {},
    {"start": 0}, [[[[[[[[[[]]]]]]]]]], ["a", "b", "c", "d"], [0, 1, "C"],
]  # fmt: skip


def variants(value):
    """JSON values with one part of ``value`` replaced by each of ``WRONG``, or removed."""
    yield from WRONG
    if isinstance(value, (dict, list)):
        for key in list(value) if isinstance(value, dict) else range(len(value)):
            rest = value.copy()
            del rest[key]
            yield rest
            for variant in variants(value[key]):
                changed = value.copy()
                changed[key] = variant
                yield changed


def test_wrong_values_in_records_are_refused(tmp_path):
    reader, records = READERS["documents"], list(variants(RECORD))
    data = [json.dumps(record).encode() + b"\n" for record in records]
    valid = [reader.outcome(reader.write(tmp_path / "x", "corpus", one)) for one in data]
    assert 0 < sum(one is not None for one in valid) < len(records) / 3


@pytest.mark.parametrize("format", ["jsonl", "pubtator"])
def test_no_files_and_folders_are_errors_that_name_them(tmp_path, format):
    with pytest.raises(FileNotFoundError, match="nowhere does not exist"):
        list(read(tmp_path / "nowhere", format))
    with pytest.raises((ValueError, OSError), match=str(tmp_path)):
        list(read(tmp_path, format))
    (tmp_path / "empty").touch()
    with raises("no documents"):
        convert_corpus(tmp_path / "empty", tmp_path / "out.spacy", format=format, nlp=NLP)


# Flipped bits and cut files of what programs write


@dataclass(frozen=True)
class Stored:
    """A file that a program has written, and what reads it.

    read: What is found in the folder, to compare; None where damage may change it.
    flips, cuts: How many are tried, few and all.
    refused: The share that must be refused; the others are of no consequence.
    """

    name: str
    read: Callable[[Path], object]
    flips: tuple[int, int]
    cuts: tuple[int, int]
    refused: float = 1.0
    named: bool = True


def read_part(folder, nlp):
    # Reading checks all parts; only what is let through is worth loading.
    ComponentFolder(folder).read(PARTS, None)
    return contents(load_component(folder, nlp))


def read_bytes(folder, nlp):
    linker = empty_linker(nlp)
    linker.from_bytes((folder / "bytes").read_bytes(), exclude=["vocab"])
    return contents(linker)


def read_docbin(folder):
    list(read_docs(folder / "corpus.spacy", NLP.vocab))


STORED = {
    **{name: Stored(name, read_part, (6, 750), (2, 250), 0.9) for name in PARTS},
    "manifest": Stored("manifest.json", read_part, (6, 750), (2, 250), 0.9),
    "bytes": Stored("bytes", read_bytes, (10, 300), (0, 0), 0.9, named=False),
    "checkpoint": Stored(
        "c", lambda folder: read_checkpoint(folder / "c").identity, (500, 10000), (50, 50)
    ),
    "docs": Stored("corpus.spacy", read_docbin, (25, 300), (25, 300), 0.5),
}


@pytest.fixture
def stored(request, tmp_path):
    """The folder with a file of each kind of ``STORED``, and its reader."""
    kind = request.param
    read = STORED[kind].read
    if read in (read_part, read_bytes):
        nlp, path = map(request.getfixturevalue, ("tiny_nlp", "saved_tiny"))
        folder = shutil.copytree(path / NAME, tmp_path / NAME)
        (folder / "bytes").write_bytes(find_linker(nlp).to_bytes(exclude=["vocab"]))
        return STORED[kind], folder, partial(read, nlp=nlp)
    if kind == "checkpoint":
        Checkpoint.of("id", 0, [], pipes(), Adam(0.1)).write(tmp_path / "c")
    else:
        text = AnnotatedText("d", "Ada met Ada.", (AnnotatedMention(0, 3, "X", ("Q1",)),))
        write_docbin([to_doc(NLP, text)], tmp_path / "corpus.spacy")
    return STORED[kind], tmp_path, read


def damaged(data, flips, cuts):
    """Half of the flips at the beginning and all over it, the others at random; and cuts."""
    places = random.Random(0)
    regular = [*range(flips // 4), *np.linspace(0, 8 * len(data) - 1, flips // 4).astype(int)]
    for bit in [*regular, *(places.randrange(8 * len(data)) for _ in range(flips - len(regular)))]:
        changed = bytearray(data)
        changed[bit // 8] ^= 1 << (bit % 8)
        yield bytes(changed)
    for end in np.unique(np.linspace(0, len(data) - 1, min(cuts, len(data))).astype(int)):
        yield data[:end]


@pytest.mark.attack
@pytest.mark.parametrize("stored, kind", [(k, k) for k in STORED], indirect=["stored"])
def test_flipped_bits_and_cut_files(stored, kind, attacks):
    (one, folder, read), refused, tries = stored, 0, 0
    file = folder / one.name
    whole, expected = file.read_bytes(), read(folder)
    for data in damaged(whole, attacks(*one.flips), attacks(*one.cuts)):
        file.write_bytes(data)
        tries += 1
        try:
            assert read(folder) == expected, "in silence"
        except ValueError as error:
            assert str(error).startswith("[arbo-E")
            named = str(folder) in str(error) and one.name in str(error)
            assert named or not one.named, "the message names the file"
            refused += 1
    print(f"{kind}: {refused} of {tries} refused, the others of no consequence")
    assert refused >= one.refused * tries
