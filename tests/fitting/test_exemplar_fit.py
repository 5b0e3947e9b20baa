"""A fit beside the exemplars of other documents."""

from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from spacy.util import registry

from spacy_arbo_el import find_linker
from spacy_arbo_el.base.arrays import resized_table
from spacy_arbo_el.fitting.calibrate import annotated_mentions
from spacy_arbo_el.fitting.exemplar_fit import fit_beside_exemplars, restored
from spacy_arbo_el.fitting.held_out import fit_held_out
from spacy_arbo_el.ranking import feature_ranker
from spacy_arbo_el.ranking.ranking import BestEvidence

from ..linker.conftest import build, build_bundled
from ..linker.world import DEV, TRAIN, docs_of

TEXTS = [f"We saw the [Nickname{i}|planet] again." for i in range(7)]
FOLDS = 3


@dataclass(frozen=True)
class Watched(BestEvidence):
    """Keeps what it was asked to learn from.

    seen: The mentions of each part, and the exemplars that there were.
    """

    part: int = -1
    seen: list = field(default_factory=list)

    def labelled(self, mentions, context):
        batch = mentions.batch
        self.seen.append(([one.text for one in batch.records], surface_forms(context.snapshot)))
        return len(batch)

    def fit_folds(self, parts, context):
        assert parts == [3, 2, 2]
        return [replace(self, part=number) for number in range(-1, len(parts))]


def surface_forms(datastore):
    return [record.text for record in datastore.exemplars.records]


def test_each_part_learns_beside_the_exemplars_of_the_others():
    nlp = build(train=TRAIN[:1])
    linker = find_linker(nlp)
    earlier = surface_forms(linker.datastore)
    linker.reranker = Watched()
    docs = docs_of(nlp, TEXTS)
    linker.feedback.add_exemplars(docs[:1])
    before = surface_forms(linker.datastore)
    fit = fit_held_out(linker, docs, FOLDS, "")
    with restored(linker, docs):
        beside = fit_beside_exemplars(linker, docs, fit)
    assert surface_forms(linker.datastore) == before

    names = [f"Nickname{i}" for i in range(len(TEXTS))]
    for part, (mentions, exemplars) in enumerate(linker.reranker.seen):
        assert mentions == names[part::FOLDS]
        assert sorted(exemplars) == sorted([*earlier, *(set(names) - set(mentions))])
    fits = [beside.whole, *beside.without]
    assert [fold_fit.reranker.part for fold_fit in fits] == [-1, 0, 1, 2]
    assert [one.threshold for one in fits] == [one.threshold for one in (fit.whole, *fit.without)]


def test_a_reranker_that_learns_nothing_so_keeps_the_fit(nlp, linker):
    linker.reranker = BestEvidence()
    docs = docs_of(nlp, TEXTS)
    fit = fit_held_out(linker, docs, FOLDS, "")
    assert fit_beside_exemplars(linker, docs, fit) is fit


@pytest.mark.bundled
def test_parts_without_exemplars_are_learned_from_as_one_search_is(monkeypatch):
    nlp = build_bundled(train=[])
    reranker = registry.misc.get("spacy-arbo-el.FeatureRanker.v1")()
    stages = find_linker(nlp).stages
    docs = docs_of(nlp, [*DEV, *TRAIN[4:]])
    found = annotated_mentions(stages, docs)
    searches = [annotated_mentions(stages, docs[part::FOLDS]) for part in range(FOLDS)]
    parts = [reranker.labelled(mentions, stages.context) for mentions in searches]

    learned = []
    monkeypatch.setattr(feature_ranker, "cross_fit", lambda *given: learned.append(given))
    reranker.fit_folds(parts, stages.context)
    reranker.fit(found, stages.context, found.batch.documents % FOLDS, FOLDS)
    width = max(len(labelled.correct[0]) for labelled, *_ in learned)
    rows = [rows_of(labelled, part_of, width) for labelled, part_of, *_ in learned]
    # Layers of 8 bits round otherwise in other batches: up to 0.002 on a CPU with AMX.
    np.testing.assert_allclose(*rows, atol=5e-3)


def rows_of(labelled, part_of, width):
    """All that is learned from, in an order that does not depend on that of the mentions."""
    features = resized_table(labelled.candidates.features, width, 0).reshape(len(part_of), -1)
    correct = resized_table(labelled.correct, width, False)
    rows = np.column_stack([part_of, labelled.sample_weight, correct, features]).astype(float)
    return rows[np.lexsort(rows.round(2).T[::-1])]
