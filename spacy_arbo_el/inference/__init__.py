"""Inference procedures: from ranked candidates to links."""
