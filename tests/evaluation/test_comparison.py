"""Inference procedures compared: by document or in one graph, with one curve or several."""

import pytest

from spacy_arbo_el.calibration.calibration import KINDS, Calibration
from spacy_arbo_el.corpora.reader import unlinked
from spacy_arbo_el.evaluation.comparison import PROCEDURES, as_markdown, compare_procedures
from spacy_arbo_el.evaluation.report import with_inference
from spacy_arbo_el.evaluation.scorer import outcomes, score_outcomes
from spacy_arbo_el.linker import find_linker

from ..linker.conftest import build
from ..linker.world import DEV, TRAIN, examples


@pytest.fixture(scope="module")
def pipeline():
    return build(train=TRAIN[:6])


def data_of(nlp):
    return examples(nlp, DEV + TRAIN[6:])


def test_one_graph_gives_the_links_of_link_corpus(pipeline):
    data = data_of(pipeline)
    compared = compare_procedures(pipeline, data, corpus=True)
    linker, before = find_linker(pipeline), find_linker(pipeline).stages
    assert list(compared) == list(PROCEDURES)
    for name in ("directed", "undirected, exemplars"):
        linker.stages = with_inference(before, PROCEDURES[name])
        docs = linker.link_corpus([unlinked(eg.reference) for eg in data])
        linked = [type(eg)(doc, eg.reference) for doc, eg in zip(docs, data)]
        scores = score_outcomes(outcomes(linked, linker.mentions.getter, "arbo"))
        assert compared[name]["arbo_acc"] == scores["arbo_acc"]
        assert compared[name]["arbo_mentions"] == len([m for eg in data for m in eg.reference.ents])
    linker.stages = before


def test_folds_score_each_document_once_in_a_graph_of_all(pipeline):
    data, sizes = data_of(pipeline), []
    corpus = type(find_linker(pipeline).corpus_linker())
    link = corpus.link
    try:
        corpus.link = lambda self, read, threshold: (
            sizes.append(len(list(read()))) or link(self, read, threshold)
        )
        scores = compare_procedures(pipeline, data, folds=2, corpus=True)
    finally:
        corpus.link = link
    assert sizes == [len(data)] * 2 * len(PROCEDURES)
    assert all(row["arbo_mentions"] == 16 for row in scores.values())


def test_one_curve_is_that_of_entities(pipeline):
    curves = Calibration(mention=(1.0, -9.0), exemplar=(2.0, -9.0)).with_one_curve()
    assert curves.to_config() == {kind: [12.0, -6.0] for kind in KINDS}
    linker = find_linker(pipeline)
    before = linker.calibration
    # With these curves, no exemplar speaks for an entity.
    linker.calibration = Calibration(exemplar=(0.1, -50.0))
    separate = compare_procedures(pipeline, data_of(pipeline))
    one = compare_procedures(pipeline, data_of(pipeline), one_curve=True)
    linker.calibration = before
    assert separate["independent, exemplars"] == separate["independent"]
    assert one["independent, exemplars"] != one["independent"] == separate["independent"]
    assert "### dev, one curve: 16 mentions" in as_markdown({"a": one}, "dev, one curve")
