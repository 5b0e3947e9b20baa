import pytest
import spacy
from thinc.api import Config

from spacy_arbo_el.kb.knowledge_base import ArboKB

from .world import ENTITIES, TRAIN, examples


def build(entities=ENTITIES, train=TRAIN, key="", **config):
    """A pipeline with an initialised linker."""
    nlp = spacy.blank("en")
    linker = nlp.add_pipe("arbo_linker", config=Config(config))
    linker.initialize(
        lambda: examples(nlp, train, key) or examples(nlp, ["nothing here"]),
        nlp=nlp,
        kb_loader=lambda vocab: ArboKB(vocab, entities),
    )
    return nlp


@pytest.fixture(scope="session")
def shared_nlp():
    """An untrained pipeline over the small world. Don't change it."""
    return build()


@pytest.fixture
def nlp():
    """One of your own, to change."""
    return build()
