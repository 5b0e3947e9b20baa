"""Rows with and without a cross-encoder."""

import pytest

from spacy_arbo_el import SpanInputs, find_linker
from spacy_arbo_el.contrib.papers.cross_encoder.pair_scorer import PairScorer
from spacy_arbo_el.encoders.dual import DualEncoder
from spacy_arbo_el.fitting.callback import fit_and_score

from ...linker.conftest import build_tiny
from ...linker.world import DEV, TRAIN, examples
from ...scores import compare_inference
from .test_cross_encoder import IN_RANKER, with_scorer

EXTRA = {"without the cross-encoder", "by the scores, not in the ranker"}


@pytest.fixture(scope="module")
def nlp(tiny_bert):
    """Don't change it."""
    return with_scorer(tiny_bert, section=IN_RANKER, weight=0.5)


def test_a_linker_with_a_cross_encoder_has_rows_without_it(nlp):
    data = examples(nlp, [*DEV, *TRAIN])
    rows = compare_inference(nlp, data, folds=2)
    assert set(rows) == {"names alone", "without the graph", "as configured", *EXTRA}
    plain = build_tiny(model_of(nlp), reranker=IN_RANKER["ranker"])
    expected = compare_inference(plain, examples(plain, [*DEV, *TRAIN]), folds=2)
    assert rows["without the cross-encoder"] == expected["as configured"]
    assert rows["names alone"] == expected["names alone"]


def test_folds_encode_each_mention_and_context_and_score_each_pair_once(nlp, monkeypatch):
    read = {"mentions": [], "contexts": [], "pairs": []}

    def count(kind, owner, name, keys_of):
        called = getattr(owner, name)

        def counted(own, *given):
            read[kind] += keys_of(*given)
            return called(own, *given)

        monkeypatch.setattr(owner, name, counted)

    def of_mentions(tower, texts, size):
        return texts if tower == "mention" else []

    data = examples(nlp, [*DEV, *TRAIN])
    linker = find_linker(nlp)
    linker.refresh()
    count("mentions", DualEncoder, "encode_mentions", SpanInputs.keys)
    count("contexts", DualEncoder, "encode_passages", of_mentions)
    count("pairs", PairScorer, "_read", SpanInputs.keys)
    fit_and_score(linker, [eg.reference for eg in data], "arbo_acc")
    for kind, keys in read.items():
        assert keys, kind
        assert len(keys) == len(set(keys)), kind


def model_of(nlp):
    return find_linker(nlp).model.get_ref("mention").attrs["name"]
