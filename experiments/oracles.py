"""Score cross-encoders on candidates with the gold entity (arborescence paper, Table 3).

    python oracles.py MODEL DEV.spacy [--with OTHER ...]

SELF puts the gold entity among the pipeline's own first 16 candidates. UNION, with --with, adds the
candidates of other pipelines with the same knowledge base. *Unnormalized* is the share of all
annotated mentions whose first candidate is gold; *normalized* that of mentions with a gold entity
among the pipeline's own candidates; *macro* is the mean of the former over the labels of mentions.
"""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import spacy
from spacy.tokens import Doc

from spacy_arbo_el.base.arrays import TopK
from spacy_arbo_el.contrib.papers.cross_encoder.candidates import TrainingCandidates
from spacy_arbo_el.contrib.papers.cross_encoder.cross_encoder import CrossEncoder
from spacy_arbo_el.corpora.docbin import read_docs
from spacy_arbo_el.kb.knowledge_base import ArboKB
from spacy_arbo_el.linker import ArboLinker, find_linker
from spacy_arbo_el.mentions.labels import annotated_batches, gold_positions
from spacy_arbo_el.mentions.record import MentionBatch
from spacy_arbo_el.ranking.ranking import log_odds_by_vectors

# Candidates of each retriever in a union (§3.4).
UNION = 16


@dataclass(frozen=True, eq=False)
class OracleCandidates:
    """Candidates of the annotated mentions of documents whose entity is in the knowledge base.

    batch: m mentions.
    table: Their candidates and gold entities.
    by_vectors: The retriever's log-odds of the linker's neighbours.
    retrieved: (m,) bool, the mentions with a gold entity among the linker's own candidates.
    """

    batch: MentionBatch
    table: TrainingCandidates
    by_vectors: TopK
    retrieved: np.ndarray

    @classmethod
    def retrieve(
        cls, linker: ArboLinker, docs: Sequence[Doc], count: int
    ) -> "OracleCandidates":
        """The linker's own first candidates: what its cross-encoder gets to see.

        count: How many candidates a mention has at most.
        """
        stages = linker.stages
        reranker = stages.reranker
        ranker, curves = reranker, stages.calibration
        if isinstance(reranker, CrossEncoder):
            ranker, curves = reranker.ranker, reranker.vector_curves or curves
        batches, ids, known = [], [], [TopK.empty(0)]
        with stages.datastore.snapshot():
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
        table = TrainingCandidates(candidates, of_candidates, gold, of_gold)
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
            ids = kb.entities.ids_of(positions)
            return other.entities.positions_of(ids.ravel().tolist()).reshape(ids.shape)

        table, known = self.table, self.by_vectors
        table = replace(
            table, candidates=moved(table.candidates), gold=moved(table.gold)
        )
        return replace(
            self, table=table, by_vectors=TopK(moved(known.ids), known.scores)
        )

    def united(self, others: Sequence["OracleCandidates"]) -> "OracleCandidates":
        """The candidates of several linkers, each once, then gold (UNION).

        The retriever's log-odds are those of this linker. Candidates of others alone have the
        least.

        others: Candidates of the same mentions, in the same knowledge base.

        """
        assert all(other.batch.keys == self.batch.keys for other in others), (
            "other mentions"
        )
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
    """The scores of a linker's trained cross-encoder on candidates of documents."""
    reranker = linker.reranker
    assert isinstance(reranker, CrossEncoder) and reranker.scorer is not None
    valid = candidates.table.candidates >= 0
    scores = np.full(valid.shape, -np.inf, dtype=np.float32)
    with linker.datastore.snapshot():
        pairs = reranker.pairs(
            candidates.batch, candidates.table.candidates, linker.stages.context
        )
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
    of_label = [
        hit[found == label].sum() / labels.count(label)
        for label in sorted(set(labels))
    ]
    retrieved = hit[candidates.retrieved]
    return OracleScores(
        len(labels),
        float(hit.sum() / max(len(labels), 1)),
        float(retrieved.mean()) if len(retrieved) else 0.0,
        float(np.mean(of_label)) if of_label else 0.0,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("data", type=Path)
    parser.add_argument("--with", type=Path, nargs="+", default=[], dest="others")
    parser.add_argument("--limit", type=int, help="how many documents; by default all")
    args = parser.parse_args()
    linker = find_linker(spacy.load(args.model))
    docs = list(read_docs(args.data, linker.vocab))[: args.limit]
    own = OracleCandidates.retrieve(linker, docs, UNION)
    rows = {"own candidates": own, "self": own.with_gold()}
    if args.others:
        others = [find_linker(spacy.load(model)) for model in args.others]
        found = [
            OracleCandidates.retrieve(o, docs, UNION).within(o.kb, linker.kb)
            for o in others
        ]
        rows["union"] = own.united(found)
    print(
        "| candidates | mentions | unnormalized | normalized | macro |\n|---|---|---|---|---|"
    )
    for name, candidates in rows.items():
        s = oracle_scores(linker, candidates, docs)
        shares = (f"{share:.4f}" for share in (s.unnormalized, s.normalized, s.macro))
        print(f"| {name} | {s.mentions} | {' | '.join(shares)} |")


if __name__ == "__main__":
    main()
