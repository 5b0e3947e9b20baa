"""Selection and reading of a Doc's mentions."""
