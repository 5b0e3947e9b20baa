from pathlib import Path

import pytest
import spacy
from spacy.util import import_file

# The formats of the example: doccano and spacy-json.
import_file("example_readers", Path(__file__).parents[3] / "examples" / "readers.py")


@pytest.fixture(scope="session")
def nlp():
    return spacy.blank("en")
