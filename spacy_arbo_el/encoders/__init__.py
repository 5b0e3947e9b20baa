"""Encoders: texts -> vectors."""
