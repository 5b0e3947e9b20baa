"""What a cross-encoder adds: rows with and without it, and its accuracy on oracle candidates."""

from dataclasses import dataclass, replace
from typing import Dict, Mapping, Sequence

import numpy as np
from rich.table import Table
from spacy.tokens import Doc

from ..arrays import TopK
from ..errors import Errors
from ..inference.consensus import Consensus
from ..inference.independent import Independent
from ..kb.knowledge_base import ArboKB
from ..linker import ArboLinker
from ..linking.stages import LinkingStages
from ..mentions.batch import MentionBatch
from ..mentions.labels import annotated_batches, gold_positions
from ..reranking.best_evidence import BestEvidence, log_odds_by_vectors
from ..reranking.cross_encoder import CrossEncoder
from ..reranking.cross_encoder_fit import CrossEncoderFit
from ..reranking.pair_rerankers import cached
from ..training.candidates import TrainingCandidates

# Candidates of each retriever in a union (arborescence paper, §3.4).
UNION = 16


def rows_of_cross_encoder(stages: LinkingStages) -> Dict[str, LinkingStages]:
    """Stages to compare with those of a linker that has a trained cross-encoder; none without one.

    "names alone, cross-encoder" has the nearest entities by names, in the order of the scores.
    "without the cross-encoder" and "by the scores, not in the ranker" are the linker's own
    procedure otherwise.
    """
    reranker = stages.reranker
    if not isinstance(reranker, CrossEncoder) or reranker.scorer is None:
        return {}
    alone = replace(reranker, as_feature=False)
    names = replace(alone, ranker=BestEvidence(), fitted=CrossEncoderFit())
    without = replace(stages, reranker=reranker.ranker)
    consensus = Consensus(stages.inference.n_exemplars)
    return {
        "names alone, cross-encoder": replace(stages, inference=Independent(0), reranker=names),
        "without the cross-encoder": without,
        "by the scores, not in the ranker": replace(stages, reranker=alone),
        "consensus": replace(stages, inference=consensus),
        "consensus, without the cross-encoder": replace(without, inference=consensus),
    }


# Oracles


@dataclass(frozen=True, eq=False)
class OracleCandidates:
    """Candidates of the annotated mentions of documents whose entity is in the knowledge base.

    batch: m mentions.
    table: Their candidates and gold entities.
    by_vectors: The log-odds of the linker's neighbours by vectors.
    retrieved: (m,) bool, the mentions with a gold entity among the linker's own candidates.
    """

    batch: MentionBatch
    table: TrainingCandidates
    by_vectors: TopK
    retrieved: np.ndarray

    @classmethod
    def retrieve(cls, linker: ArboLinker, docs: Sequence[Doc], count: int) -> "OracleCandidates":
        """The linker's own first candidates: what its cross-encoder gets to see.

        count: How many candidates a mention has at most.
        """
        stages = linker.stages
        reranker = stages.reranker
        ranker, curves = reranker, stages.calibration
        if isinstance(reranker, CrossEncoder):
            ranker, curves = reranker.ranker, reranker.vector_curves or curves
        batches, ids, known = [], [], [TopK.empty(0)]
        with stages.datastore.reading():
            for spans in annotated_batches(stages.reader, docs):
                batch = stages.encode(stages.read(spans))
                neighbours = stages.retrieve(batch)
                ranking = ranker(batch, neighbours, stages.context)
                ids.append(ranking.candidates.resized(count).ids)
                known.append(log_odds_by_vectors(neighbours, curves))
                batches.append(batch)
        batch = MentionBatch.concat(batches)
        candidates = np.concatenate([np.zeros((0, count), dtype=np.int64), *ids])
        gold = gold_positions(linker.kb, [record.kb_ids for record in batch.records])
        kept = np.flatnonzero((gold >= 0).any(axis=1))
        by_vectors = TopK.concat(known)
        of_candidates, of_gold = map(by_vectors.scores_or_least, (candidates, gold))
        table = TrainingCandidates(candidates, of_candidates, gold, of_gold, np.zeros((2, 2)))
        table = table.take(kept)
        retrieved = np.asarray(table.correct.any(axis=1))
        return cls(batch.take(kept), table, by_vectors.take(kept), retrieved)

    def with_gold(self) -> "OracleCandidates":
        """The gold entity in the place of the last candidate where it is missing (SELF)."""
        return replace(self, table=self.table.with_gold()[1])

    def within(self, kb: ArboKB, other: ArboKB) -> "OracleCandidates":
        """The same candidates as positions in another knowledge base; those that it lacks are left
        out.

        kb: The knowledge base that positions refer to.
        """

        def moved(positions: np.ndarray) -> np.ndarray:
            ids = kb.ids_of(positions)
            return other.entities.positions_of(ids.ravel().tolist()).reshape(ids.shape)

        table, known = self.table, self.by_vectors
        table = replace(table, candidates=moved(table.candidates), gold=moved(table.gold))
        return replace(self, table=table, by_vectors=TopK(moved(known.ids), known.scores))

    def united(self, others: Sequence["OracleCandidates"]) -> "OracleCandidates":
        """The candidates of several linkers, each once, then gold (UNION).

        Log-odds by vectors are those of this linker. Candidates of others alone have the least.

        others: Candidates of the same mentions, in the same knowledge base.

        Raises ValueError where the mentions are others.
        """
        if any(other.batch.keys != self.batch.keys for other in others):
            raise ValueError(Errors.E880)
        tables = [part.table.candidates for part in (self, *others)]
        # One more column, so that gold never takes the place of a candidate.
        empty = np.full((len(self.batch), 1), -1, dtype=np.int64)
        joined = _each_once(np.concatenate([*tables, empty], axis=1))
        scores = self.by_vectors.scores_or_least(joined)
        table = replace(self.table, candidates=joined, scores=scores)
        return replace(self, table=table.with_gold()[1])


def _each_once(candidates: np.ndarray) -> np.ndarray:
    """Candidates (m, c) without repetitions; the others move up, with at least one place left."""
    order = np.argsort(candidates, axis=1, kind="stable")
    ordered = np.take_along_axis(candidates, order, axis=1)
    repeated = np.zeros(candidates.shape, dtype=bool)
    repeated[:, 1:] = ordered[:, 1:] == ordered[:, :-1]
    kept = np.ones(candidates.shape, dtype=bool)
    np.put_along_axis(kept, order, ~repeated, axis=1)
    kept &= candidates >= 0
    places = np.argsort(~kept, axis=1, kind="stable")
    moved = np.take_along_axis(np.where(kept, candidates, -1), places, axis=1)
    return moved[:, : int(kept.sum(axis=1).max(initial=0)) + 1]


@dataclass(frozen=True)
class OracleScores:
    """The accuracy of the ranking by a cross-encoder's scores.

    mentions: How many annotated mentions there are, those whose entity the knowledge base lacks
        included.
    unnormalized: The share of all of them whose first candidate is gold.
    normalized: The share of those with a gold entity among the linker's own candidates.
    macro: The mean of ``unnormalized`` over the labels of mentions.
    """

    mentions: int
    unnormalized: float
    normalized: float
    macro: float


def oracle_scores(
    linker: ArboLinker, candidates: OracleCandidates, docs: Sequence[Doc]
) -> OracleScores:
    """The scores of a linker's cross-encoder on candidates of documents.

    Raises ValueError where the linker has no trained cross-encoder.
    """
    reranker = cached(linker.reranker)
    if not isinstance(reranker, CrossEncoder) or reranker.scorer is None:
        raise ValueError(Errors.E881.format(name=linker.name))
    valid = candidates.table.candidates >= 0
    scores = np.full(valid.shape, -np.inf, dtype=np.float32)
    with linker.datastore.reading():
        pairs = reranker.pairs(candidates.batch, candidates.table.candidates, linker.stages.context)
        scores[valid] = reranker.scorer(pairs)
        if reranker.vector_curves is not None:
            scores[valid] += candidates.table.scores[valid]
    best = scores.argmax(axis=1)[:, None]
    hit = np.take_along_axis(candidates.table.correct, best, axis=1)[:, 0]
    labels = [
        span.label_
        for spans in annotated_batches(linker.reader, docs)
        for group in spans
        for span in group
    ]
    found = np.array([record.label for record in candidates.batch.records])
    of_label = [hit[found == label].sum() / labels.count(label) for label in sorted(set(labels))]
    retrieved = hit[candidates.retrieved]
    return OracleScores(
        len(labels),
        float(hit.sum() / max(len(labels), 1)),
        float(retrieved.mean()) if len(retrieved) else 0.0,
        float(np.mean(of_label)) if of_label else 0.0,
    )


def as_oracle_table(rows: Mapping[str, OracleScores], title: str) -> Table:
    """Rows of scores as a table for the terminal."""
    table = Table(title=title, title_justify="left")
    table.add_column("")
    for column in ("mentions", "unnormalized", "normalized", "macro over types"):
        table.add_column(column, justify="right")
    for name, scores in rows.items():
        values = (scores.unnormalized, scores.normalized, scores.macro)
        table.add_row(name, str(scores.mentions), *(f"{value:.4f}" for value in values))
    return table
