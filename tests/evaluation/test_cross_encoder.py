"""Rows with and without a cross-encoder."""

import pytest

from spacy_arbo_el.linker import find_linker

from ..linker.conftest import build_tiny
from ..linker.world import DEV, TRAIN, examples
from ..reranking.test_cross_encoder import IN_RANKER, with_scorer
from ..scores import compare_inference

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


def model_of(nlp):
    return find_linker(nlp).model.get_ref("mention").attrs["name"]
