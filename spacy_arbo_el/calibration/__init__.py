"""Conversion of similarities to probabilities. One scale for all kinds of evidence."""
