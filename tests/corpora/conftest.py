import os
from pathlib import Path

import pytest
import spacy


@pytest.fixture(scope="session")
def nlp():
    return spacy.blank("en")


@pytest.fixture(scope="session")
def data_dir():
    """The folder with the real corpora. Tests that need it are skipped if it does not exist."""
    default = Path(__file__).parents[2].parent / "shared" / "data"
    folder = Path(os.environ.get("ARBO_DATA_DIR", default))
    if not folder.is_dir():
        pytest.skip("no real corpora: set ARBO_DATA_DIR to their folder")
    return folder


@pytest.fixture
def write(tmp_path):
    """Writes text or bytes to a file and returns its path."""

    def write(content, name="input.txt"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode("utf8"))
        return path

    return write
