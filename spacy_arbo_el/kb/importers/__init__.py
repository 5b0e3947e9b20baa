"""Readers of entity files, one entity at a time."""

from ...storage.formats import entity_formats
from .common import ImportReport
from .jsonl import read_entities_json, read_entities_jsonl, write_entities_jsonl
from .obo import read_obo
from .skos import read_skos
from .spacy_kb import entities_of, read_spacy_kb
from .tables import read_table
from .umls import read_umls
from .wikidata import read_wikidata

# The readers of this package by format; ``entity_formats`` has those of others too.
READERS = entity_formats.get_all()

__all__ = [
    "READERS",
    "ImportReport",
    "entities_of",
    "read_entities_json",
    "read_entities_jsonl",
    "read_obo",
    "read_skos",
    "read_spacy_kb",
    "read_table",
    "read_umls",
    "read_wikidata",
    "write_entities_jsonl",
]
