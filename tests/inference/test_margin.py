"""NIL where two candidates fit equally well."""

import numpy as np
import pytest

from spacy_arbo_el.calibration.calibration import Calibration
from spacy_arbo_el.inference.clustering import Clustering
from spacy_arbo_el.inference.independent import Independent
from spacy_arbo_el.inference.margin import Margin
from spacy_arbo_el.inference.vote import ExemplarVote
from spacy_arbo_el.kb.entity import Entity

from ..linker.conftest import build
from ..linker.world import annotated, without_links
from .examples import decide, neighbours_of, top_k

TWINS = [
    Entity("old", "Zorblat", "a spring in the north"),
    Entity("new", "Zorblat", "a spring in the north"),
    Entity("tree", "maple", "a tree"),
]
CLUSTERING = {"@misc": "spacy-arbo-el.Clustering.v1"}
INDEPENDENT = {"@misc": "spacy-arbo-el.Independent.v1", "n_exemplars": 8}
BEST_EVIDENCE = {"@misc": "spacy-arbo-el.BestEvidence.v1"}
FEATURE_RANKER = {"@misc": "spacy-arbo-el.FeatureRanker.v1"}


def test_margin_takes_candidates_and_exemplars_from_unclear_mentions():
    neighbours = neighbours_of(
        top_k([[0, 1], [0, 1]], [[0.6, 0.59], [0.9, 0.2]]),
        top_k([[3, 4], [3, 4]], [[0.5, 0.4], [0.5, 0.4]]),
        [[0, 1], [0, 1]],
        top_k([[1], [0]], [[0.9], [0.9]]),
    )
    calibration = Calibration()
    margin = Margin(Independent(8))
    assert (margin.n_exemplars, margin.n_mentions) == (8, 0)
    assert decide(margin, neighbours, calibration, -np.inf).entities.tolist() == [-1, 0]
    assert decide(Margin(Independent(8), 0.0), neighbours, calibration, -9.0).entities.tolist() == [
        0,
        0,
    ]
    votes = Margin(ExemplarVote())
    assert decide(votes, neighbours, calibration, -np.inf).entities.tolist() == [-1, 0]
    # Other mentions can still link it.
    by_others = decide(Margin(Clustering()), neighbours, calibration, 0.0)
    assert by_others.entities.tolist() == [0, 0]
    assert [step.ref for step in by_others.paths[0]] == [0, 1, 0]


def test_margin_needs_two_candidates_and_takes_texts_from_votes():
    neighbours = neighbours_of(
        top_k([[0, 1], [0, -1]], [[0.9, 0.899], [0.01, -np.inf]]),
        top_k([[-1], [-1]], [[-np.inf], [-np.inf]]),
        [[-1], [-1]],
        top_k([[-1], [-1]], [[-np.inf], [-np.inf]]),
    )
    for inner in (Independent(8), ExemplarVote(texts=True)):
        decisions = decide(Margin(inner, 0.9), neighbours, Calibration(), -np.inf)
        assert decisions.entities.tolist() == [-1, 0]


@pytest.mark.parametrize("inner", [CLUSTERING, INDEPENDENT])
@pytest.mark.parametrize("reranker", [BEST_EVIDENCE, FEATURE_RANKER])
def test_margin_in_a_pipeline(inner, reranker):
    setting = {"@misc": "spacy-arbo-el.Margin.v1", "min_difference": 0.1, "inference": inner}
    nlp = build(TWINS, [], inference=setting, reranker=reranker)
    doc = nlp(without_links(annotated(nlp, "They rested under a [maple|y].")))
    assert doc.ents[0].kb_id_ == "tree"
    doc = nlp(without_links(annotated(nlp, "They drank from the [Zorblat|x].")))
    assert doc.ents[0].kb_id_ == "NIL"
    link = doc.ents[0]._.arbo
    assert link.cluster and [c.kb_id for c in link.candidates[:2]] == ["old", "new"]
    # A correction makes it clear.
    linker = nlp.get_pipe("arbo_linker")
    linker.learn(doc.ents[0], "new")
    again = nlp(without_links(annotated(nlp, doc.text.replace("Zorblat", "[Zorblat|x]"))))
    assert again.ents[0].kb_id_ == "new"
    plain = build(TWINS, [], inference=inner, reranker=reranker)
    doc = plain(without_links(annotated(plain, "They drank from the [Zorblat|x].")))
    assert doc.ents[0].kb_id_ == "old", "of equal ones the first"
