"""Runs that train or make a pipeline."""
