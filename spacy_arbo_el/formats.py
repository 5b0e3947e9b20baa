"""The formats of ``--format``, by name. A file given by ``--code`` may register others."""

import catalogue

# Readers of entities: path and report to entities. See docs/knowledge_base.md.
entity_formats = catalogue.create("spacy_arbo_el", "entity_formats")
# Readers of annotated corpora: path and bad to documents. See docs/training.md.
corpus_formats = catalogue.create("spacy_arbo_el", "corpus_formats")
