"""The formats of ``--format``, by name. A file given by ``--code`` may register others."""

from pathlib import Path

import catalogue

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
}


def entity_format_of(path: Path) -> str:
    """The format of a file of entities by its name; "jsonl" where it says nothing."""
    return SUFFIXES.get(Path(path.name.removesuffix(".gz")).suffix.lower(), "jsonl")
