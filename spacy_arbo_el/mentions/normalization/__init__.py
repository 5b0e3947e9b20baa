"""Normalizers: abbreviations written out, spellings made uniform, before mentions are read."""
