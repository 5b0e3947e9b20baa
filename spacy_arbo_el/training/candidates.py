"""The candidates that a cross-encoder learns to choose from, made once and kept in a file.

A mention of the training corpus is stored as an exemplar, and in abstracts most mentions stand
beside one of the same string and entity. With these exemplars, the first candidate is nearly always
right, and nothing is learned. So candidates come without the exemplars of the mention's document.
"""

import hashlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Dict, List, Sequence, Tuple

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
from ..reranking.best_evidence import rank_by_best_evidence
from ..retrieval.neighbours import Neighbours
from .sealed import seal, unseal

FORMAT = 1
_KIND = "candidates"
_ARRAYS = ("candidates", "gold", "recall")


@dataclass(frozen=True, eq=False)
class TrainingCandidates:
    """The candidates of the annotated mentions of a corpus, in the order of its documents.

    candidates: (m, k) int64 positions in the knowledge base, best first, -1 for none.
    gold: (m, g) int64, the positions of the gold entities, -1 for none.
    recall: (2, 2) float64, the share of the mentions with a gold entity among the first candidate
        and among all k; without the exemplars of their document, and with them.
    """

    candidates: np.ndarray
    gold: np.ndarray
    recall: np.ndarray

    @property
    def correct(self) -> np.ndarray:
        """(m, k) bool, the candidates that are gold."""
        return is_gold(self.candidates, self.gold)

    def for_training(self) -> Tuple[np.ndarray, "TrainingCandidates"]:
        """The mentions whose gold entity is in the knowledge base, and their candidates.

        A gold entity that is not among them takes the place of the last one.

        RETURNS: (n,) int64, which of the mentions; and n rows.
        """
        rows = np.flatnonzero((self.gold >= 0).any(axis=1))
        candidates, gold = self.candidates[rows].copy(), self.gold[rows]
        missing = np.flatnonzero(~is_gold(candidates, gold).any(axis=1))
        count = (candidates >= 0).sum(axis=1)
        last = np.minimum(count, candidates.shape[1] - 1)
        first_gold = np.take_along_axis(gold, (gold >= 0).argmax(axis=1)[:, None], axis=1)[:, 0]
        candidates[missing, last[missing]] = first_gold[missing]
        return rows, replace(self, candidates=candidates, gold=gold)


def make_candidates(linker: ArboLinker, docs: Sequence[Doc], count: int) -> TrainingCandidates:
    """The first candidates of annotated mentions by vectors, without exemplars of their document.

    linker: The linker, whose encoder is trained.
    docs: Annotated documents.
    count: How many candidates a mention has at most.
    """
    stages = linker.stages
    candidates = {own: [TopK.empty(0, count)] for own in (False, True)}
    gold = [np.zeros((0, 1), dtype=np.int64)]
    with stages.datastore.reading():
        for spans in annotated_batches(stages.reader, docs):
            batch = stages.encode(stages.read(spans))
            gold_ids = [record.kb_ids for record in batch.records]
            gold.append(gold_positions(stages.datastore.kb, gold_ids))
            for own, parts in candidates.items():
                neighbours = neighbours_for_training(stages, batch, own)
                ranking = rank_by_best_evidence(neighbours, stages.calibration, count)
                parts.append(ranking.candidates.resized(count))
    ids = {own: TopK.concat(parts).ids for own, parts in candidates.items()}
    all_gold = _padded(gold)
    recall = [_recall(ids[own], all_gold) for own in (False, True)]
    return TrainingCandidates(ids[False], all_gold, np.array(recall))


def neighbours_for_training(
    stages: LinkingStages, batch: MentionBatch, own_exemplars: bool = False
) -> Neighbours:
    """The neighbours of encoded mentions of a training corpus.

    own_exemplars: Whether exemplars of the mention's own document are among them.
    """
    datastore, count = stages.datastore, stages.inference.n_exemplars
    records = datastore.exemplars.records
    names, document_of = np.unique([r.key[0] for r in records] or [""], return_inverse=True)
    own = np.array([record.key[0] for record in batch.records])
    # So many of a mention's nearest exemplars may be of its document.
    extra = 0
    if records and not own_exemplars:
        extra = int(np.bincount(document_of)[np.isin(names, own)].max(initial=0))
    with datastore.reading() as retriever:
        neighbours = retriever.neighbours(
            batch,
            datastore.settings.n_candidates,
            count + extra if count else 0,
            0,
            allowed=datastore.allowed_entities(batch),
            named=datastore.named_entities(batch),
        )
    if not extra or not count:
        return neighbours
    is_own = names[document_of[neighbours.exemplars.ids]] == own[:, None]
    exemplars = neighbours.exemplars.where(~is_own).first(count)
    entities = datastore.exemplars.entities(datastore.kb)[exemplars.ids]
    return neighbours.with_exemplars(exemplars, np.where(exemplars.valid, entities, -1))


def _padded(tables: Sequence[np.ndarray]) -> np.ndarray:
    """Tables (m, g) of positions one after the other, as wide as the widest."""
    return TopK.concat([TopK(table, table.astype(np.float32)) for table in tables]).ids


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
        "gold": _numbers(table.gold, positions),
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
        candidates, gold, recall = (arrays[name] for name in _ARRAYS)
        ids = list(content["ids"])
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(Errors.E877.format(path=path, problem=error)) from None
    for what, expected in (("pipeline", pipeline), ("corpus", corpus)):
        if found[what] != expected:
            raise ValueError(Errors.E876.format(path=path, what=what))
    positions = np.append(kb.entities.positions_of(ids), -1)
    return TrainingCandidates(positions[candidates], positions[gold], recall)


def _numbers(table: np.ndarray, positions: np.ndarray) -> np.ndarray:
    """Where each position is among ``positions``; -1 stays."""
    return np.where(table >= 0, np.searchsorted(positions, table), -1)
