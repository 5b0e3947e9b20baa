"""Rerankers: from neighbours of a mention to ranked candidates."""
