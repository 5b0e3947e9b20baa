"""Parts that only one of the five papers has. One module each, with its config beside it."""
