"""The formats of ``--format``, by name. A file given by ``--code`` may register others."""

import codecs
import re
from pathlib import Path

import catalogue

from ..base.errors import ArboError, Errors
from .lines import read_start

# Readers of entities: path and report to entities. See docs/knowledge_base.md.
entity_formats = catalogue.create("spacy_arbo_el", "entity_formats")
# Readers of annotated corpora: path and bad to documents. See docs/training.md.
corpus_formats = catalogue.create("spacy_arbo_el", "corpus_formats")

# The formats of entities by the end of a file's name.
SUFFIXES = {
    ".csv": "table",
    ".tsv": "table",
    ".tab": "table",
    ".txt": "table",
    ".json": "json",
    ".obo": "obo",
    ".ttl": "skos",
    ".rdf": "skos",
    ".owl": "skos",
    ".nt": "skos",
    ".jsonld": "skos",
}
# How files of wbgetentities and Special:EntityData begin.
ENTITY_DATA = re.compile(rb'\{\s*"entities"\s*:\s*\{')
# How a list of its items begins, as its dumps are.
ITEMS = re.compile(
    rb'\[\s*\{[^{}]{0,2000}"(?:labels"\s*:\s*\{|type"\s*:\s*"(?:item|property|lexeme)")', re.S
)


def entity_format_of(path: Path) -> str:
    """Infer the format of an entity file from its name. "jsonl" where it says nothing.

    A file whose first line is an object is JSONL whatever its name, or entity data of Wikidata.
    """
    name = path.name.removesuffix(".gz").removesuffix(".bz2")
    format = SUFFIXES.get(Path(name).suffix.lower(), "jsonl")
    start = read_start(path, 2000).removeprefix(codecs.BOM_UTF8).lstrip()
    if format in ("json", "table") and start.startswith(b"{"):
        return "wikidata" if ENTITY_DATA.match(start) else "jsonl"
    if format == "json" and ITEMS.match(start):
        return "wikidata"
    if format != "skos":
        check_readable(path)
    return format


# The formats of corpora by the end of a file's name.
CORPUS_SUFFIXES = {
    ".csv": "csv",
    ".tsv": "csv",
    ".tab": "csv",
    ".pubtator": "pubtator",
    ".ann": "brat",
    ".xml": "bioc",
    ".bioc": "bioc",
    ".conllu": "conllu",
}
# How files of some formats begin.
CORPUS_STARTS = {
    "aida": re.compile(rb"-DOCSTART- \("),
    "conllu": re.compile(rb"# *(?:newdoc|sent_id|global\.|text) *[\w.]* *="),
    "webanno": re.compile(rb"#FORMAT=WebAnno"),
    "pubtator": re.compile(rb"[^|\s]+\|t\|"),
    "bioc": re.compile(
        rb"(?:<\?xml[^>]*>\s*)?(?:<!DOCTYPE[^>]*>\s*)?<collection|\{.{0,2000}\"passages\"", re.S
    ),
    "label-studio": re.compile(rb"\[\s*\{.{0,2000}\"(?:annotations|data)\"\s*:", re.S),
    "prodigy": re.compile(rb"\{[^\n]*\"(?:spans|_input_hash)\"\s*:"),
}
# Kinds of files that no reader reads, by their beginning or the end of their names.
UNREAD_STARTS = {b"PK\x03\x04": "zip archive or .xlsx", b"PAR1": "Parquet file",
                 b"\xfd7zXZ": ".xz archive", b"\x28\xb5\x2f\xfd": ".zst archive",
                 b"\x80\x04": "pickle", b"\x80\x05": "pickle"}  # fmt: skip
UNREAD_SUFFIXES = {".owl": "OWL file", ".xmi": "UIMA CAS in XMI", ".conllu": "CoNLL-U file",
                   ".conll": "CoNLL file", ".yaml": "YAML file", ".yml": "YAML file",
                   ".xlsx": ".xlsx file", ".html": "HTML page"}  # fmt: skip


def corpus_format_of(path: Path) -> str:
    """Infer the format of a corpus from its name and first characters; "jsonl" by default."""
    if path.is_dir():
        return "brat" if any(path.rglob("*.ann")) or not any(path.rglob("*.tsv")) else "webanno"
    start = read_start(path, 4096).removeprefix(codecs.BOM_UTF8).lstrip()
    for format, pattern in CORPUS_STARTS.items():
        # The keys of the package's own format come first.
        if pattern.match(start) and not re.match(rb'\{[^\n]*"mentions"\s*:', start):
            return format
    name = path.name.removesuffix(".gz").removesuffix(".bz2")
    return CORPUS_SUFFIXES.get(Path(name).suffix.lower(), "jsonl")


def check_readable(path: Path) -> None:
    """Raise ValueError with the kind of a file that no reader reads."""
    start = read_start(path, 64)
    kind = next((kind for mark, kind in UNREAD_STARTS.items() if start.startswith(mark)), None)
    text = start.removeprefix(codecs.BOM_UTF8).lstrip()
    if text.startswith(b"#FORMAT=WebAnno"):
        kind = "WebAnno TSV file"
    elif kind is None and text[:1] not in (b"{", b"["):
        kind = UNREAD_SUFFIXES.get(path.suffix.lower(), "XML file" if text[:1] == b"<" else None)
    if kind is not None:
        raise ArboError(Errors.E119.format(path=path, kind=kind))
