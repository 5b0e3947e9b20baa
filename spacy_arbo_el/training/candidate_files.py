"""Files of training candidates, so that they are made once."""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Dict, Optional

import numpy as np
import srsly

from ..errors import Errors
from ..kb.knowledge_base import ArboKB
from ..linker import ArboLinker
from ..storage.files import pack_arrays, unpack_arrays, write_file
from .candidates import TrainingCandidates
from .checksummed import seal, unseal

FORMAT = 4
_KIND = "candidates"
_ARRAYS = ("candidates", "scores", "gold", "gold_scores", "recall")


@dataclass(frozen=True)
class CandidatesFile:
    """A file of candidates. It is refused for another pipeline or corpus.

    path: The file.
    kb: What positions refer to. The file has the ids of entities.
    pipeline: See ``pipeline_fingerprint``.
    corpus: See ``fingerprint_of_docs``.
    """

    path: Path
    kb: ArboKB
    pipeline: str
    corpus: str

    def find(self) -> Optional[TrainingCandidates]:
        """Read the file; None without one.

        Raises ValueError where it has the candidates of others, or is damaged.
        """
        if not self.path.is_file():
            return None
        try:
            content: Any = srsly.msgpack_loads(unseal(_KIND, self.path.read_bytes()))
            if content["format"] != FORMAT:
                raise ValueError(f"its format is {content['format']!r:.20}, not {FORMAT}")
            pipeline, corpus = content["pipeline"], content["corpus"]
            arrays = unpack_arrays(content["arrays"])
            candidates, scores, gold, gold_scores, recall = (arrays[name] for name in _ARRAYS)
            ids = list(content["ids"])
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(Errors.E877.format(path=self.path, problem=error)) from None
        if pipeline != self.pipeline:
            raise ValueError(Errors.E876.format(path=self.path, what="pipeline"))
        if corpus != self.corpus:
            raise ValueError(Errors.E876.format(path=self.path, what="corpus"))
        positions = np.append(self.kb.entities.positions_of(ids), -1)
        return TrainingCandidates(
            positions[candidates], scores, positions[gold], gold_scores, recall
        )

    def write(self, table: TrainingCandidates) -> None:
        """Write candidates, all or nothing."""
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
            "pipeline": self.pipeline,
            "corpus": self.corpus,
            "ids": self.kb.entities.ids_of(positions).tolist(),
            "arrays": pack_arrays(arrays),
        }
        write_file(self.path, seal(_KIND, srsly.msgpack_dumps(content)))

    def find_or_make(
        self, make: Callable[[], TrainingCandidates], report: Callable[[str], None]
    ) -> TrainingCandidates:
        """Load the file's candidates, made if missing.

        make: Makes them.
        report: Takes a line of the log where the file is there.

        Raises ValueError as ``find`` does.
        """
        table = self.find()
        if table is not None:
            report(f"Candidates from {self.path}")
            return table
        table = make()
        self.write(table)
        return table


def pipeline_fingerprint(linker: ArboLinker, count: int) -> str:
    """A hash of what candidates depend on. Encoder, entities, exemplars and settings."""
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


def _numbers(table: np.ndarray, positions: np.ndarray) -> np.ndarray:
    """Places of positions among ``positions``; -1 stays."""
    return np.where(table >= 0, np.searchsorted(positions, table), -1)
