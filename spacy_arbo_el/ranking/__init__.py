"""Candidates of mentions, scored and decided on."""
