"""Which spans of a Doc are mentions, and how they are read."""
