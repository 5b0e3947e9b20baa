"""The edges that the calibration is fitted on."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_arbo_el.base.arrays import TopK
from spacy_arbo_el.base.calibration import Calibration, fit_offset, probability
from spacy_arbo_el.fitting.calibrate import divided, fit_calibration, fit_in_parts, mention_edges
from spacy_arbo_el.ranking.ranking import rank_by_best_evidence
from spacy_arbo_el.retrieval.neighbours import Neighbours

from ..linker.conftest import build
from ..linker.world import TRAIN, annotated


def test_only_mention_edges_between_different_entities_are_used():
    """The best candidate of mentions 0 and 1 is entity 5. Mention 2 has the gold entity of 0."""
    nearest = np.array([[5], [5], [7], [8]])
    others = np.array([[1, 2], [0, 3], [0, 3], [2, -1]])
    similarity = np.array([[0.9, 0.8], [0.9, 0.4], [0.8, 0.3], [0.3, -np.inf]], np.float32)
    neighbours = Neighbours(
        entities=TopK(nearest, np.full((4, 1), 0.5, np.float32)),
        exemplars=TopK.empty(4),
        mentions=TopK(others, similarity),
        exemplar_entities=TopK.empty(4).ids,
    )
    ranking = rank_by_best_evidence(neighbours, Calibration(), 1)
    identities = [{"a"}, {"a"}, {"a"}, {"new:1"}]
    scores, correct = mention_edges(ranking, neighbours.mentions, identities)
    np.testing.assert_array_equal(scores, np.array([0.8, 0.4, 0.8, 0.3, 0.3], np.float32))
    assert correct.tolist() == [True, False, True, False, False]


@given(st.integers(0, 1 << 30), st.floats(0.5, 30), st.integers(10, 60), st.floats(0, 1))
def test_a_curve_with_a_given_slope_is_right_on_average(seed, slope, n, share):
    rng = np.random.default_rng(seed)
    similarity, correct = rng.normal(size=n), rng.random(n) < share
    found, offset = fit_offset(similarity, correct, slope)
    expected = (correct.sum() + 0.5) / (n + 1)
    assert found == slope
    assert probability(slope * similarity + offset).mean() == pytest.approx(expected, abs=1e-6)
    assert fit_offset(similarity[:9], correct[:9], slope) is None


def test_edges_that_are_never_right_are_hardly_believed():
    """They show no slope, so that no curve can be fitted; the default would believe them."""
    nlp = build(train=TRAIN[:8])
    linker = nlp.get_pipe("arbo_linker")
    # Mentions of four entities side by side, which look alike.
    text = "[Zed one|planet] and [Zed two|metal] and [Zed three|river] and [Zed four|shop] left."
    fitted = fit_calibration(linker, [annotated(nlp, f"{text} {i}") for i in range(6)])
    before = linker.calibration
    assert fitted.calibration.mention[0] == before.mention[0]
    one = np.ones(1)
    assert probability(fitted.calibration.logits("mention", one)) < 0.3
    assert probability(before.logits("mention", one)) > 0.9


def curves_of(fitted):
    return np.concatenate(list(vars(fitted.calibration).values()))


def test_fits_without_each_part_are_those_of_the_other_documents():
    """Also where documents without annotated mentions stand between them."""
    nlp = build(train=TRAIN[:8])
    linker = nlp.get_pipe("arbo_linker")
    docs = [annotated(nlp, text) for text in TRAIN]
    docs[2:2] = [nlp.make_doc("Nothing is here."), annotated(nlp, "[Mercury|] is not annotated.")]
    whole, parts = fit_in_parts(linker, docs, 3)
    used = [docs, *(rest for rest, _ in divided(docs, 3))]
    found = [curves_of(fitted) for fitted in (whole, *parts)]
    expected = [curves_of(fit_calibration(linker, some, from_scratch=True)) for some in used]
    np.testing.assert_allclose(found, expected, rtol=2e-3)
    assert len({tuple(curves) for curves in found}) == 4
