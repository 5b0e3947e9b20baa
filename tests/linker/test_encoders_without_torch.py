"""An encoder without torch, whose passages are whole documents, in the component."""

import pytest
import spacy
from thinc.api import Adam, fix_random_seed

from ..encoders import numpy_tower  # noqa: F401  registers the architecture
from .conftest import build
from .world import DEV, TRAIN, annotated, examples, without_links

TOWER = {"model": {"mention": {"@architectures": "test.HashedEncoder.v1"}}}


@pytest.fixture
def nlp():
    fix_random_seed(0)
    return build(**TOWER)


def test_training_lowers_the_loss_and_retrieves_training_mentions(nlp):
    optimizer = Adam(0.02)
    losses = [nlp.update(examples(nlp, TRAIN), sgd=optimizer)["arbo_linker"] for _ in range(40)]
    assert losses[-1] < 0.8 * losses[0]
    # The tower reads no context: it can't tell the river from the shop.
    assert nlp.evaluate(examples(nlp, TRAIN))["arbo_recall_at_2"] == 1.0


def test_a_passage_with_several_mentions_is_encoded_once(nlp):
    linker = nlp.get_pipe("arbo_linker")
    batch = linker.reader.read([linker.reader.mentions_to_link(annotated(nlp, TRAIN[2]))])
    assert len(batch) == 2 and batch.inputs.passages == 1
    assert linker.exemplars.inputs.passages < len(linker.exemplars)


def test_links_are_the_same_after_saving_and_in_pipe(nlp, tmp_path):
    nlp.update(examples(nlp, TRAIN), sgd=Adam(0.01))

    def links(pipeline, **settings):
        docs = [without_links(annotated(pipeline, text)) for text in (*TRAIN, *DEV)]
        linked = pipeline.pipe(docs, **settings)
        return [[(ent.text, ent._.arbo) for ent in doc.ents] for doc in linked]

    expected = links(nlp)
    assert links(nlp, batch_size=1) == expected
    nlp.to_disk(tmp_path / "model")
    assert links(spacy.load(tmp_path / "model")) == expected
