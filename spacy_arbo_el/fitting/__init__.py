"""Fitting of probabilities and thresholds to annotated documents."""
