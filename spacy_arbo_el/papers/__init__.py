"""What only one of the five papers has, one module each, with its config beside it."""
