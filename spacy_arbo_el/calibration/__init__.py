"""From similarities to probabilities: one scale for all kinds of evidence."""
