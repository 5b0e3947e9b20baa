"""Readers of annotated corpora, and their conversion to ``.spacy``."""
