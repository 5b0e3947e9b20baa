"""What of a text is read in other words: abbreviations written out, spellings brought together."""
