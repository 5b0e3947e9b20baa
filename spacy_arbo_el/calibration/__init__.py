"""From similarities to probabilities. One scale for all kinds of evidence."""
