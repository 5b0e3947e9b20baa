"""Ranking by the best evidence, against ranking each mention by hand."""

from types import SimpleNamespace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from spacy_arbo_el.base.arrays import TopK
from spacy_arbo_el.base.calibration import Calibration
from spacy_arbo_el.mentions.record import MentionBatch
from spacy_arbo_el.ranking.ranking import BestEvidence
from spacy_arbo_el.retrieval.neighbours import Neighbours

# Curves under which a text and an exemplar may have equal log-odds.
CALIBRATION = Calibration(entity=(2.0, 0.0), exemplar=(4.0, -1.0))
SIMILARITIES = [-0.5, 0.0, 0.5, 1.0]


@st.composite
def some_neighbours(draw):
    """Neighbours of up to three mentions: four entities, exemplars in rows 10 to 19."""
    count, width, n_exemplars = draw(st.integers(0, 3)), draw(st.integers(0, 4)), 3
    similarities = st.lists(st.sampled_from(SIMILARITIES), min_size=7, max_size=7)
    entities, exemplars = TopK.empty(count, width), TopK.empty(count, n_exemplars)
    owners = np.full((count, n_exemplars), -1, dtype=np.int64)
    for mention in range(count):
        texts = draw(st.permutations(range(4)))[: draw(st.integers(0, width))]
        rows = draw(st.permutations(range(10, 20)))[: draw(st.integers(0, n_exemplars))]
        values = draw(similarities)
        entities.ids[mention, : len(texts)] = texts
        entities.scores[mention, : len(texts)] = sorted(values[: len(texts)], reverse=True)
        exemplars.ids[mention, : len(rows)] = rows
        exemplars.scores[mention, : len(rows)] = sorted(values[4 : 4 + len(rows)], reverse=True)
        owners[mention, : len(rows)] = [draw(st.integers(0, 3)) for _ in rows]
    return Neighbours(entities, exemplars, TopK.empty(count), owners)


def evidence_of(neighbours, mention):
    """(entity, log-odds, exemplar or -1) of all texts, then of all exemplars."""
    texts, exemplars = neighbours.entities, neighbours.exemplars
    for entity, similarity in zip(texts.ids[mention].tolist(), texts.scores[mention].tolist()):
        if entity >= 0:
            yield entity, 2.0 * similarity, -1
    columns = (neighbours.exemplar_entities, exemplars.ids, exemplars.scores)
    for entity, row, similarity in zip(*(column[mention].tolist() for column in columns)):
        if row >= 0:
            yield entity, 4.0 * similarity - 1.0, row


@given(some_neighbours(), st.integers(0, 5))
def test_each_entity_is_ranked_by_its_best_text_or_exemplar(neighbours, count):
    context = SimpleNamespace(calibration=CALIBRATION, n_candidates=count)
    ranking = BestEvidence()(MentionBatch.empty(), neighbours, context)
    assert ranking.candidates.ids.shape == ranking.exemplars.shape == (len(neighbours), count)
    for mention in range(len(neighbours)):
        best = {}
        for entity, logit, row in evidence_of(neighbours, mention):
            # A text comes first, and so it counts where an exemplar has the same log-odds.
            if entity not in best or logit > best[entity][0]:
                best[entity] = (logit, row)
        expected = sorted(best.items(), key=lambda item: (-item[1][0], item[0]))[:count]
        valid = ranking.candidates.valid[mention]
        actual = zip(
            ranking.candidates.ids[mention][valid].tolist(),
            ranking.candidates.scores[mention][valid].tolist(),
            ranking.exemplars[mention][valid].tolist(),
        )
        assert [(entity, (logit, row)) for entity, logit, row in actual] == expected
        assert (ranking.exemplars[mention][~valid] == -1).all()
