"""Rerankers: from the neighbours of a mention to a ranking of candidates."""
