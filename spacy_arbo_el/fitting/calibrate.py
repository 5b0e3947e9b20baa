"""Fit calibration and reranker on annotated documents (dev set)."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, TypeVar

import numpy as np
from spacy.language import Language
from spacy.tokens import Doc

from ..base.arrays import TopK, resized_table
from ..base.calibration import Calibration, fit_logistic, fit_offset
from ..base.log import log
from ..discovery.grouping import Discovery
from ..linker import ArboLinker, linkers_of
from ..linking.stages import LinkingStages
from ..mentions.labels import (
    Identity,
    annotated_batches,
    gold_positions,
    identities_of,
    is_gold,
)
from ..mentions.record import MentionBatch
from ..ranking.ranker_fit import FOLDS, folds_of
from ..ranking.ranking import AnnotatedMentions, Ranking, Reranker
from ..retrieval.mention_search import nearest_in_corpus
from ..retrieval.neighbours import Neighbours
from ..retrieval.similarity import Similarity

T = TypeVar("T")
# Similarities of edges (n,) and whether the edges are correct (n,) bool.
LabelledEdges = tuple[np.ndarray, np.ndarray]


class Fit(NamedTuple):
    """A linker's parts that are fitted on annotated documents."""

    calibration: Calibration
    reranker: Reranker
    threshold: float

    def within(self, stages: LinkingStages) -> LinkingStages:
        return replace(stages, calibration=self.calibration, reranker=self.reranker)

    def install(self, linker: ArboLinker) -> None:
        linker.calibration = self.calibration
        linker.reranker = self.reranker
        if not linker.threshold.by_label:
            linker.threshold = self.threshold


class HeldOutFit(NamedTuple):
    """A fit on documents, and those without each fold of them.

    without: By the number of the fold, see ``divided``.
    """

    whole: Fit
    without: list[Fit]


def annotated_mentions(
    stages: LinkingStages, docs: Iterable[Doc]
) -> AnnotatedMentions | None:
    """The annotated mentions of documents, searched; None if there are none."""
    batches: list[MentionBatch] = []
    neighbours: list[Neighbours] = []
    identities: list[Identity] = []
    for spans in annotated_batches(stages.reader, docs):
        batches.append(stages.encode(stages.read(spans)))
        neighbours.append(stages.retrieve(batches[-1]))
        flat = [span for group in spans for span in group]
        identities += identities_of(stages.datastore.kb, flat)
    if not batches:
        return None
    batch = MentionBatch.concat(batches)
    gold = gold_positions(
        stages.datastore.kb, [record.kb_ids for record in batch.records]
    )
    return AnnotatedMentions(batch, Neighbours.concat(neighbours), gold, identities)


def annotated_docs(linker: ArboLinker, docs: Iterable[Doc]) -> list[Doc]:
    """The documents with an annotated mention."""
    return [
        doc for doc in docs if any(span.kb_id for span in linker.mentions.getter(doc))
    ]


def divided(items: Sequence[T], folds: int) -> Iterator[tuple[list[T], list[T]]]:
    """Yield each of some parts with all items that are not in it, in turn.

    RETURNS: Pairs of the items to fit on, part by part, and of those that are held out.
    """
    fold_items = [list(items[i::folds]) for i in range(folds)]
    for i, held_out in enumerate(fold_items):
        yield (
            [item for j, fold in enumerate(fold_items) if j != i for item in fold],
            held_out,
        )


def fit_calibration(
    linker: ArboLinker,
    docs: Iterable[Doc],
    *,
    stages: LinkingStages | None = None,
    from_scratch: bool = False,
) -> Fit:
    """Fit the curves from similarities to probabilities, and the reranker. The linker is unchanged.

    Each curve predicts how often an edge of its kind is correct, given its similarity. The curve of
    edges between mentions is fitted on pairs whose best candidates differ, since only there such an
    edge can change a link. Most other edges join mentions of the same entity: fitted on all edges,
    the curve would be much too confident. For the curves of texts and of exemplars see
    ``fit_evidence``. The curves of new entities are fitted on the nearest mentions of the whole
    corpus.

    docs: Annotated documents that the linker was not trained on. Mentions without annotation are
        left out.
    stages: The stages to fit; by default ``linker.caching_stages()``.
    from_scratch: Whether a curve gets its default if it can't be fitted on the documents.
        Otherwise it stays as it is.
    """
    return fit_folds(linker, docs, 0, stages=stages, from_scratch=from_scratch).whole


def fit_folds(
    linker: ArboLinker,
    docs: Iterable[Doc],
    folds: int,
    *,
    stages: LinkingStages | None = None,
    from_scratch: bool = True,
    done: Callable[[], Any] = lambda: None,
) -> HeldOutFit:
    """Fit on documents, and without each fold of them. The linker is unchanged.

    The fits share the search, and a ``FeatureRanker`` its networks.

    docs: Documents with annotated mentions that the linker was not trained on.
    folds: The number of folds, which are those of ``divided``; 0 to fit on all alone.
    stages, from_scratch: As in ``fit_calibration``.
    done: Called after the search, and after the fit.
    """
    # The same candidates are ranked once more, after the fit.
    stages = stages or linker.caching_stages()
    if from_scratch:
        stages = replace(stages, calibration=Calibration())
    with stages.datastore.snapshot():
        log.info("Searching for the annotated mentions")
        mentions = annotated_mentions(stages, docs)
        done()
        if mentions is None:
            done()
            fit = Fit(stages.calibration, stages.reranker, linker.threshold)
            return HeldOutFit(fit, [fit] * folds)
        documents = mentions.batch.documents
        fold_of = documents % folds if folds else folds_of(documents)
        # What rerankers look at beside the mentions is fitted on all of them.
        context = _with_evidence(stages, mentions).context
        log.info(
            "Fitting on %d mentions, and without each of %d parts",
            len(documents),
            folds,
        )
        rerankers = stages.reranker.fit(mentions, context, fold_of, folds or FOLDS)
        used = [
            mentions,
            *(mentions.take(np.flatnonzero(fold_of != n)) for n in range(folds)),
        ]
        curves = [
            _fit_edges(replace(_with_evidence(stages, seen), reranker=reranker), seen)
            for seen, reranker in zip(used, rerankers)
        ]
        done()
        fits = [Fit(*parts, linker.threshold) for parts in zip(curves, rerankers)]
        return HeldOutFit(fits[0], fits[1:])


def _with_evidence(
    stages: LinkingStages, mentions: AnnotatedMentions
) -> LinkingStages:
    calibration = fit_evidence(mentions.neighbours, mentions.gold, stages.calibration)
    return replace(stages, calibration=calibration)


def _fit_edges(stages: LinkingStages, mentions: AnnotatedMentions) -> Calibration:
    """Fit the curves between mentions, for stages whose reranker is fitted."""
    batch, neighbours, _, identities = mentions
    ranked = stages.rerank(batch, neighbours)
    edges = mention_edges(ranked.ranking, ranked.neighbours.mentions, identities)
    stages = _with_curve(stages, "mention", edges)
    similarity = stages.datastore.settings.similarity
    if stages.discovery is not None:
        edges = same_entity_edges(
            stages.discovery, batch.encoded, similarity, identities
        )
        stages = _with_curve(stages, "same_new_entity", edges)
    return stages.calibration


def _with_curve(
    stages: LinkingStages, kind: str, edges: LabelledEdges
) -> LinkingStages:
    slope, _ = getattr(stages.calibration, kind)
    curve = fit_logistic(*edges) or fit_offset(*edges, slope)
    change: dict[str, Any] = {} if curve is None else {kind: curve}
    return replace(stages, calibration=replace(stages.calibration, **change))


def fit_evidence(
    neighbours: Neighbours, gold: np.ndarray, calibration: Calibration
) -> Calibration:
    """Fit the curves of texts and of exemplars on annotated mentions (Platt, 1999).

    Each is fitted on the nearest of its kind. A third curve, of the better evidence of a mention,
    brings both to the scale of how often the best candidate is right, which leaves the order of
    candidates as it is.

    gold: (m, g) int64, the positions of each mention's gold entities, -1 for none.
    RETURNS: Where a kind has too few neighbours, the order of candidates stays as it is. Where all
        best candidates are right, the curve "entity" stays. A kind without neighbours keeps its
        curve, and so do both where nothing is right.
    """
    before = calibration.entity, calibration.exemplar
    nearest = [
        table.resized(1).scores
        for table in (neighbours.entities, neighbours.exemplars)
    ]
    owners = (
        neighbours.entities.resized(1).ids,
        resized_table(neighbours.exemplar_entities, 1, -1),
    )
    scores = np.hstack(nearest).astype(np.float64)
    right = is_gold(np.hstack(owners), gold)
    kinds = np.flatnonzero(np.isfinite(scores).any(axis=0)).tolist()
    if not right.any():
        return calibration
    edges = {kind: (scores[:, kind], right[:, kind]) for kind in kinds}
    fits = {
        k: fit_logistic(*edges[k]) or fit_offset(*edges[k], before[k][0])
        for k in kinds
    }
    fitted = {k: curve for k, curve in fits.items() if curve is not None}
    curves = fitted if len(fitted) == len(kinds) else {k: before[k] for k in kinds}
    log_odds = np.stack(
        [curves[k][0] * scores[:, k] + curves[k][1] for k in kinds], axis=1
    )
    best = log_odds.argmax(axis=1)[:, None]
    correct = np.take_along_axis(right[:, kinds], best, axis=1)
    scale = fit_logistic(
        np.take_along_axis(log_odds, best, axis=1)[:, 0], correct[:, 0]
    )
    if scale is None:
        slope = before[kinds[0]][0] / curves[kinds[0]][0]
        scale = slope, before[kinds[0]][1] - slope * curves[kinds[0]][1]
    scaled: Any = {
        ("entity", "exemplar")[kind]: (scale[0] * slope, scale[0] * offset + scale[1])
        for kind, (slope, offset) in curves.items()
    }
    return replace(calibration, **scaled)


def mention_edges(
    ranking: Ranking, nearest: TopK, identities: Sequence[Identity]
) -> LabelledEdges:
    """The edges between nearest mentions whose best candidates differ."""
    best = ranking.candidates.resized(1).ids[:, 0]
    return _edges(
        nearest, nearest.valid & (best[:, None] != best[nearest.ids]), identities
    )


def same_entity_edges(
    discovery: Discovery,
    vectors: np.ndarray,
    similarity: Similarity,
    identities: Sequence[Identity],
) -> LabelledEdges:
    """Edges between nearest annotated mentions of a corpus.

    vectors: (m, width) float32, prepared.
    """
    nearest = nearest_in_corpus(vectors, discovery.n_neighbors, similarity)
    annotated = np.array([bool(identity) for identity in identities], dtype=bool)
    keep = nearest.valid & annotated[:, None] & annotated[nearest.ids]
    return _edges(nearest, keep, identities)


def _edges(
    nearest: TopK, keep: np.ndarray, identities: Sequence[Identity]
) -> LabelledEdges:
    """The edges at which ``keep`` (m, k) is True; correct between mentions of the same entity."""
    pairs = zip(np.nonzero(keep)[0].tolist(), nearest.ids[keep].tolist())
    correct = [bool(identities[m] & identities[n]) for m, n in pairs]
    return nearest.scores[keep], np.array(correct, dtype=bool)


def calibrate_pipeline(nlp: Language, docs: Sequence[Doc]) -> dict[str, Fit]:
    """Calibrate every linker of a pipeline in place. The curves are written to its config."""
    fitted = {}
    for name, linker in linkers_of(nlp).items():
        fitted[name] = fit_calibration(linker, docs)
        install(nlp, name, linker, fitted[name])
    return fitted


def install(nlp: Language, name: str, linker: ArboLinker, fitted: Fit) -> None:
    """Install fitted parts in a linker, and write them to the pipeline's config."""
    fitted.install(linker)
    linker.cfg.write_to(nlp, name)
