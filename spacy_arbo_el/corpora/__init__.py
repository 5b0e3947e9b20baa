"""Annotated text from files: readers, and the way from them to ``.spacy``."""
