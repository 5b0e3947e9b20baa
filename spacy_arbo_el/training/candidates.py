"""The candidates that a cross-encoder learns to choose from, made once and kept in a file.

A mention of the training corpus is stored as an exemplar, and in abstracts most mentions stand
beside one of the same string and entity. With these exemplars, the first candidate is nearly always
right, and nothing is learned. So candidates come without the exemplars of the mention's document.
"""

import hashlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Callable, Dict, Iterable, List, NamedTuple, Tuple

import numpy as np
import srsly
from spacy.tokens import Doc

from ..arrays import TopK
from ..errors import Errors
from ..io import pack_arrays, unpack_arrays, write_file
from ..kb.knowledge_base import ArboKB
from ..linker import ArboLinker
from ..linking.stages import LinkingStages
from ..mentions.batch import MentionBatch
from ..mentions.labels import annotated_batches, gold_positions, is_gold
from ..reranking.best_evidence import log_odds_by_vectors
from ..retrieval.datastore import Datastore
from ..retrieval.neighbours import Neighbours
from .losses import softmax
from .sealed import seal, unseal

FORMAT = 3
_KIND = "candidates"
_ARRAYS = ("candidates", "scores", "gold", "gold_scores", "recall")


@dataclass(frozen=True, eq=False)
class TrainingCandidates:
    """The candidates of the annotated mentions of a corpus, in the order of its documents.

    candidates: (m, k) int64 positions in the knowledge base, best first, -1 for none.
    scores: (m, k) float32, the log-odds of candidates by vectors.
    gold: (m, g) int64, the positions of the gold entities, -1 for none.
    gold_scores: (m, g) float32, the log-odds of gold entities by vectors. One that is not among the
        neighbours has the least of its mention.
    recall: (2, 2) float64, the share of the mentions with a gold entity among the first candidate
        and among all k; without the exemplars of their document, and with them.
    """

    candidates: np.ndarray
    scores: np.ndarray
    gold: np.ndarray
    gold_scores: np.ndarray
    recall: np.ndarray

    def take(self, rows: np.ndarray) -> "TrainingCandidates":
        """Those of the given mentions."""
        return TrainingCandidates(
            self.candidates[rows],
            self.scores[rows],
            self.gold[rows],
            self.gold_scores[rows],
            self.recall,
        )

    @property
    def correct(self) -> np.ndarray:
        """(m, k) bool, the candidates that are gold."""
        return is_gold(self.candidates, self.gold)

    def gold_probability(self, weight: float) -> np.ndarray:
        """(m,) float64, the probability of gold entities in a softmax over candidates by vectors.

        weight: What the log-odds are multiplied by.
        """
        scores = np.where(self.candidates >= 0, weight * self.scores, -np.inf)
        _, probabilities = softmax(scores.astype(np.float64))
        return np.where(self.correct, probabilities, 0.0).sum(axis=1)

    def with_gold(self) -> Tuple[np.ndarray, "TrainingCandidates"]:
        """The mentions whose gold entity is in the knowledge base, and their candidates.

        A gold entity that is not among them takes the place of the last one.

        RETURNS: (n,) int64, which of the mentions; and n rows.
        """
        rows = np.flatnonzero((self.gold >= 0).any(axis=1))
        chosen = self.take(rows)
        candidates, gold, scores = chosen.candidates.copy(), chosen.gold, chosen.scores.copy()
        missing = np.flatnonzero(~is_gold(candidates, gold).any(axis=1))
        count = (candidates >= 0).sum(axis=1)
        last = np.minimum(count, candidates.shape[1] - 1)
        first_gold = (gold >= 0).argmax(axis=1)[missing]
        candidates[missing, last[missing]] = gold[missing, first_gold]
        scores[missing, last[missing]] = chosen.gold_scores[missing, first_gold]
        return rows, replace(chosen, candidates=candidates, scores=scores)


def annotated_mentions(stages: LinkingStages, docs: Iterable[Doc]) -> List[MentionBatch]:
    """The annotated mentions of documents in batches, not encoded."""
    return [stages.read(spans) for spans in annotated_batches(stages.reader, docs)]


def make_candidates(
    stages: LinkingStages, batches: Iterable[MentionBatch], count: int
) -> TrainingCandidates:
    """The first candidates of annotated mentions by vectors, without exemplars of their document.

    stages: Those of a linker whose encoder is trained.
    batches: The mentions, which need not be encoded.
    count: How many candidates a mention has at most.
    """
    candidates = [[TopK.empty(0, count)] for _ in range(2)]
    gold = [TopK.empty(0, 1)]
    with stages.datastore.reading():
        documents = ExemplarDocuments.of(stages.datastore)
        for batch in map(stages.encode, batches):
            neighbours = neighbours_for_training(stages, batch, documents)
            ranked = [log_odds_by_vectors(found, stages.calibration) for found in neighbours]
            for parts, ranking in zip(candidates, ranked):
                parts.append(ranking.resized(count))
            gold_ids = [record.kb_ids for record in batch.records]
            positions = gold_positions(stages.datastore.kb, gold_ids)
            gold.append(TopK(positions, ranked[0].scores_or_least(positions)))
    without, with_own = (TopK.concat(parts) for parts in candidates)
    all_gold = TopK.concat(gold)
    recall = np.array([_recall(of_one.ids, all_gold.ids) for of_one in (without, with_own)])
    return TrainingCandidates(without.ids, without.scores, all_gold.ids, all_gold.scores, recall)


class ExemplarDocuments(NamedTuple):
    """The documents of exemplars.

    numbers: The number of each document, by its key.
    of_exemplar: (n,) int64, the number of each exemplar's document.
    counts: (d,) int64, how many exemplars each document has.
    """

    numbers: Dict[str, int]
    of_exemplar: np.ndarray
    counts: np.ndarray

    @classmethod
    def of(cls, datastore: Datastore) -> "ExemplarDocuments":
        numbers: Dict[str, int] = {}
        keys = (record.key[0] for record in datastore.exemplars.records)
        of_exemplar = [numbers.setdefault(key, len(numbers)) for key in keys]
        array = np.array(of_exemplar, dtype=np.int64)
        return cls(numbers, array, np.bincount(array, minlength=len(numbers)))


def neighbours_for_training(
    stages: LinkingStages, batch: MentionBatch, documents: ExemplarDocuments
) -> Tuple[Neighbours, Neighbours]:
    """The neighbours of encoded mentions of a training corpus.

    RETURNS: Those without exemplars of the mention's own document, and with them.
    """
    datastore, count = stages.datastore, stages.inference.n_exemplars
    own = np.array([documents.numbers.get(record.key[0], -1) for record in batch.records])
    # So many of a mention's nearest exemplars may be of its document.
    extra = int(documents.counts[own[own >= 0]].max(initial=0)) if count else 0
    with datastore.reading() as retriever:
        found = retriever.neighbours(
            batch,
            datastore.settings.n_candidates,
            count + extra,
            0,
            allowed=datastore.allowed_entities(batch),
            named=datastore.named_entities(batch),
        )
    if not extra:
        return found, found
    # The retriever may give more than are asked for: those of further entities.
    width = max(found.exemplars.width - extra, count)
    is_own = documents.of_exemplar[found.exemplars.ids] == own[:, None]
    others = found.exemplars.where(~is_own).first(width)
    entities = datastore.exemplars.entities(datastore.kb)[others.ids]
    without = found.with_exemplars(others, np.where(others.valid, entities, -1))
    return without, found.narrowed(found.entities.width, width)


def _recall(candidates: np.ndarray, gold: np.ndarray) -> List[float]:
    """The share of mentions with a gold entity first, and among all candidates."""
    correct = is_gold(candidates, gold)[(gold >= 0).any(axis=1)]
    if not len(correct):
        return [0.0, 0.0]
    return [float(correct[:, 0].mean()), float(correct.any(axis=1).mean())]


# Files


def pipeline_fingerprint(linker: ArboLinker, count: int) -> str:
    """A hash of what candidates depend on: encoder, entities, exemplars and settings."""
    stages = linker.stages
    settings = (
        stages.datastore.settings,
        stages.calibration,
        stages.inference.n_exemplars,
        stages.reader.settings,
        count,
    )
    text = f"{linker.trainer.fingerprint()} {settings!r}"
    return hashlib.blake2b(text.encode("utf8"), digest_size=16).hexdigest()


def read_or_make_candidates(
    path: Path,
    kb: ArboKB,
    pipeline: str,
    corpus: str,
    make: Callable[[], TrainingCandidates],
    report: Callable[[str], None],
) -> TrainingCandidates:
    """Those of a file; where there is no file, they are made and written.

    make: Makes them.
    report: Takes a line of the log where the file is there.

    The others are those of ``write_candidates``. Raises ValueError as ``read_candidates`` does.
    """
    if path.is_file():
        report(f"Candidates from {path}")
        return read_candidates(path, kb, pipeline, corpus)
    table = make()
    write_candidates(path, table, kb, pipeline, corpus)
    return table


def write_candidates(
    path: Path, table: TrainingCandidates, kb: ArboKB, pipeline: str, corpus: str
) -> None:
    """Write candidates, all or nothing.

    kb: What positions refer to. The file has the ids of entities.
    pipeline: See ``pipeline_fingerprint``.
    corpus: See ``fingerprint_of_docs``.
    """
    positions = np.unique(np.concatenate([table.candidates.ravel(), table.gold.ravel()]))
    positions = positions[positions >= 0]
    arrays = {
        "candidates": _numbers(table.candidates, positions),
        "scores": table.scores,
        "gold": _numbers(table.gold, positions),
        "gold_scores": table.gold_scores,
        "recall": table.recall,
    }
    content: Dict[str, Any] = {
        "format": FORMAT,
        "pipeline": pipeline,
        "corpus": corpus,
        "ids": kb.ids_of(positions).tolist(),
        "arrays": pack_arrays(arrays),
    }
    write_file(path, seal(_KIND, srsly.msgpack_dumps(content)))


def read_candidates(path: Path, kb: ArboKB, pipeline: str, corpus: str) -> TrainingCandidates:
    """What ``write_candidates`` wrote.

    Raises ValueError where it is of another pipeline or corpus, or damaged.
    """
    try:
        content: Any = srsly.msgpack_loads(unseal(_KIND, path.read_bytes()))
        if content["format"] != FORMAT:
            raise ValueError(f"its format is {content['format']!r:.20}, not {FORMAT}")
        found = {"pipeline": content["pipeline"], "corpus": content["corpus"]}
        arrays = unpack_arrays(content["arrays"])
        candidates, scores, gold, gold_scores, recall = (arrays[name] for name in _ARRAYS)
        ids = list(content["ids"])
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(Errors.E877.format(path=path, problem=error)) from None
    for what, expected in (("pipeline", pipeline), ("corpus", corpus)):
        if found[what] != expected:
            raise ValueError(Errors.E876.format(path=path, what=what))
    positions = np.append(kb.entities.positions_of(ids), -1)
    return TrainingCandidates(positions[candidates], scores, positions[gold], gold_scores, recall)


def _numbers(table: np.ndarray, positions: np.ndarray) -> np.ndarray:
    """Where each position is among ``positions``; -1 stays."""
    return np.where(table >= 0, np.searchsorted(positions, table), -1)
