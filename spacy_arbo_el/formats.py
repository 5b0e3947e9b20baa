"""The formats of ``--format``, by name. A file given by ``--code`` may register others."""

import codecs
import re
from pathlib import Path

import catalogue

from .storage.lines import read_start

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
ENTITY_DATA = re.compile(rb'\{\s*"entities"\s*:')


def entity_format_of(path: Path) -> str:
    """Infer the format of an entity file from its name. "jsonl" where it says nothing.

    A file whose first line is an object is JSONL whatever its name, or entity data of Wikidata.
    """
    name = path.name.removesuffix(".gz").removesuffix(".bz2")
    format = SUFFIXES.get(Path(name).suffix.lower(), "jsonl")
    start = read_start(path, 100).removeprefix(codecs.BOM_UTF8).lstrip()
    if format in ("json", "table") and start.startswith(b"{"):
        return "wikidata" if ENTITY_DATA.match(start) else "jsonl"
    return format
