"""Readers of formats of others: of annotated corpora, and of entities."""
