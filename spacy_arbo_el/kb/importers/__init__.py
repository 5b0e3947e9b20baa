"""Readers of entity files, one entity at a time."""

from .common import EntityFormat, ImportReport
from .jsonl import EntityJsonlReader, EntityJsonReader, write_entities_jsonl
from .spacy_kb import entities_of
from .tables import TableReader

__all__ = [
    "EntityFormat",
    "EntityJsonReader",
    "EntityJsonlReader",
    "ImportReport",
    "TableReader",
    "entities_of",
    "write_entities_jsonl",
]
