"""Training of contexts towards descriptions."""

import numpy as np
import pytest
import spacy
from spacy.training import Example

from spacy_arbo_el.ranking.contexts import fits_of
from spacy_arbo_el.ranking.features import FEATURES, CandidateFeatures
from spacy_arbo_el.training.contexts import ContextObjective
from spacy_arbo_el.training.losses import SoftmaxPositiveNegative

# The text around a mention says nothing that the description says: only training can join them.
ENTITIES = [
    {"id": "river", "title": "Arno", "description": "made of red paper"},
    {"id": "poet", "title": "Arno", "description": "eleven loud trumpets"},
    {"id": "dog", "title": "Arno", "description": "a slow winter train"},
    {"id": "bare", "title": "Arno"},
]
TEXTS = {"river": "Arno flooded the town", "poet": "Arno wrote verse", "dog": "Arno barked twice"}
CONTEXTS = {
    "@misc": "spacy-arbo-el.ContextObjective.v1",
    "namesakes": 2,
    "loss": {"@losses": "spacy-arbo-el.SoftmaxPositiveNegative.v1"},
}


def examples(nlp, texts=TEXTS):
    for kb_id, text in texts.items():
        reference = nlp.make_doc(text)
        reference.ents = [spacy.tokens.Span(reference, 0, 1, label="X", kb_id=kb_id)]
        yield Example(nlp.make_doc(text), reference)


def start(contexts=CONTEXTS):
    nlp = spacy.blank("xx")
    linker = nlp.add_pipe("arbo_linker", config={"objective": {"contexts": contexts}})
    linker.set_kb(ENTITIES)
    nlp.initialize(lambda: list(examples(nlp)))
    return nlp, linker


def margin(linker):
    """By how much the right description fits better than the best wrong one, at worst."""
    linker.refresh()
    ids = [record.kb_ids[0] for record in linker.exemplars.records]
    positions = linker.kb.entities.positions_of(["river", "poet", "dog"])
    entities = np.tile(positions, (len(ids), 1))
    features = np.zeros((*entities.shape, len(FEATURES)), dtype=np.float32)
    none = np.full(entities.shape, -1)
    candidates = CandidateFeatures(entities, features, none, np.zeros(entities.shape, np.float32))
    found = fits_of(linker.exemplars.records, candidates, linker.datastore)
    assert (found.described == 1).all()
    similarity = found.fit
    own = np.eye(3, dtype=bool)[[["river", "poet", "dog"].index(one) for one in ids]]
    best_wrong = np.where(own, -np.inf, similarity).max(axis=1)
    return (similarity[own] - best_wrong).min()


@pytest.mark.bundled
def test_training_brings_contexts_to_the_descriptions_of_their_entities():
    nlp, linker = start()
    before = margin(linker)
    optimizer = nlp.resume_training()
    optimizer.learn_rate = 6e-4
    losses = [nlp.update(list(examples(nlp)), sgd=optimizer)["arbo_linker"] for _ in range(6)]
    assert before < 0.05 < 0.3 < margin(linker)
    assert losses[-1] < losses[0]


def test_descriptions_of_a_step_are_those_of_gold_entities_and_of_namesakes():
    nlp, linker = start()
    data = linker.trainer._current_data()
    objective = ContextObjective(SoftmaxPositiveNegative(), namesakes=1)
    found = objective.read(np.arange(2), data.table, data.cache, linker.kb, linker.encoder)
    count = len(found.descriptions)
    assert len(found.contexts) == 2 and 2 <= count <= 3
    is_positive = found.batch.positives >= 0
    assert is_positive.sum(axis=1).tolist() == [1, 1]
    # Each description is either a positive or a negative of each context.
    assert (is_positive ^ (found.batch.negatives >= 0)).all()
    assert found.batch.queries.tolist() == [count, count + 1]


def test_mentions_of_entities_without_a_description_are_left_out():
    nlp, linker = start()
    nlp.initialize(lambda: list(examples(nlp, {"bare": "Arno was here"})))
    data = linker.trainer._current_data()
    objective = ContextObjective(SoftmaxPositiveNegative())
    read = objective.read(np.arange(1), data.table, data.cache, linker.kb, linker.encoder)
    assert read is None
    assert np.isfinite(nlp.update(list(examples(nlp, {"bare": "Arno was here"})))["arbo_linker"])


def test_without_contexts_nothing_is_read_whole(monkeypatch):
    nlp, linker = start(None)
    monkeypatch.setattr(ContextObjective, "read", lambda *args: pytest.fail("read"))
    nlp.update(list(examples(nlp)))
