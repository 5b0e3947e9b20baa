"""Readers of entities from files of various formats, one entity at a time."""

from typing import Callable, Dict

from .fb15k import read_fb15k
from .jsonl import read_entities_jsonl, write_entities_jsonl
from .medic import read_medic_2012, read_medic_half, read_medic_tsv
from .obo import read_obo
from .report import ImportReport
from .spacy_kb import entities_of, read_spacy_kb
from .tables import read_table
from .umls import read_umls
from .wikidata import read_wikidata
from .zelda import read_zelda_titles

# By the value of ``arbo kb build --format``.
READERS: Dict[str, Callable] = {
    "jsonl": read_entities_jsonl,
    "table": read_table,
    "obo": read_obo,
    "umls": read_umls,
    "wikidata": read_wikidata,
    "fb15k": read_fb15k,
    "zelda": read_zelda_titles,
    "medic": read_medic_tsv,
    "medic-half": read_medic_half,
    "medic-2012": read_medic_2012,
    "spacy": read_spacy_kb,
}

__all__ = [
    "READERS",
    "ImportReport",
    "entities_of",
    "read_entities_jsonl",
    "read_fb15k",
    "read_medic_2012",
    "read_medic_half",
    "read_medic_tsv",
    "read_obo",
    "read_spacy_kb",
    "read_table",
    "read_umls",
    "read_wikidata",
    "read_zelda_titles",
    "write_entities_jsonl",
]
