import pytest

from spacy_arbo_el.base import compiling


@pytest.fixture(autouse=True)
def compiled(monkeypatch):
    """Small graphs are compiled too, though users' small graphs are interpreted."""
    monkeypatch.setattr(compiling, "WORTH_COMPILING", -1)
