"""A second transformer, which reads a mention and a candidate together."""
