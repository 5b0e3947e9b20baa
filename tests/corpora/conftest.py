import pytest
import spacy


@pytest.fixture(scope="session")
def nlp():
    return spacy.blank("en")
