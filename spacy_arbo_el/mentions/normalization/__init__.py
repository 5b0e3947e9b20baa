"""Normalizers: abbreviations expanded, spellings unified, before reading."""
