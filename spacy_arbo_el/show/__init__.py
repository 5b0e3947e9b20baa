"""Explanations, pages and data frames of links."""
