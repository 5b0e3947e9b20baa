"""Parts that only one of the five papers has, with its config beside them."""
