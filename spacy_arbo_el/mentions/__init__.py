"""Which spans of a Doc are mentions, and what is read of them."""
