"""The review in the browser."""
