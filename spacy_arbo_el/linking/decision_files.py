"""Decisions on a corpus's mentions, in mapped files."""

from pathlib import Path
from typing import Any, Dict, Iterator, List, Sequence, Tuple

import numpy as np

from ..arrays import offsets_of
from ..inference.decisions import Decisions, Paths, Step
from ..storage.folders import replacing_folder
from .corpus import CorpusDecisions
from .corpus_files import FOLDER, MappedArrays

# What kinds of steps are written as.
KINDS = ("entity", "exemplar", "mention")
# Mentions whose paths are in memory as lists at a time.
PATHS = 1 << 16


class FileIds(Sequence[str]):
    """One id per mention.

    ids: (n,) text, each id once.
    numbers: (m,) int64, which of them a mention has, -1 for "".
    """

    def __init__(self, ids: np.ndarray, numbers: np.ndarray) -> None:
        self._ids, self._numbers = ids, numbers

    def __len__(self) -> int:
        return len(self._numbers)

    def __getitem__(self, mention: Any) -> Any:
        if isinstance(mention, slice):
            return [self[row] for row in range(*mention.indices(len(self)))]
        number = int(self._numbers[mention])
        return str(self._ids[number]) if number >= 0 else ""


def write_decisions(folder: Path, decided: CorpusDecisions) -> None:
    """Write decisions on a corpus's mentions. All or nothing."""
    decisions, count = decided.decisions, len(decided.decisions.entities)
    number_of: Dict[str, int] = {"": -1}
    for id_ in decided.cluster_ids:
        number_of.setdefault(id_, len(number_of) - 1)
    numbers = np.fromiter((number_of[id_] for id_ in decided.cluster_ids), np.int64, count)
    starts = range(0, count, PATHS)
    blocks = [_steps(decisions.paths[start : start + PATHS]) for start in starts] or [_steps([])]
    lengths, kinds, refs, logits = (np.concatenate(arrays) for arrays in zip(*blocks))
    with replacing_folder(folder, FOLDER) as new:
        for name, array in {
            "entities": decisions.entities,
            "logits": decisions.logits,
            "cluster_numbers": numbers,
            "cluster_ids": np.array(list(number_of)[1:], dtype=str),
            "step_bounds": offsets_of(lengths),
            "step_kinds": kinds,
            "step_refs": refs,
            "step_logits": logits,
        }.items():
            np.save(new / f"{name}.npy", array, allow_pickle=False)


def _steps(paths: Sequence[List[Step]]) -> Tuple[np.ndarray, ...]:
    """Lengths of paths, and their steps' kinds, numbers, log-odds."""
    steps = [step for path in paths for step in path]
    return (
        np.array([len(path) for path in paths], dtype=np.int64),
        np.array([KINDS.index(step.kind) for step in steps], dtype=np.uint8),
        np.array([step.ref for step in steps], dtype=np.int64),
        np.array([step.logit for step in steps], dtype=np.float64),
    )


def read_decisions(folder: Path) -> CorpusDecisions:
    """Map the result of ``write_decisions``."""
    arrays = MappedArrays(folder)
    entities, bounds = arrays["entities"], arrays["step_bounds"]
    kinds, refs, logits = (arrays[f"step_{name}"] for name in ("kinds", "refs", "logits"))

    def steps(mention: int) -> Iterator[Step]:
        for step in range(int(bounds[mention]), int(bounds[mention + 1])):
            yield Step(KINDS[kinds[step]], int(refs[step]), float(logits[step]))

    paths = Paths(lambda mention: list(steps(mention)), len(entities))
    decisions = Decisions(entities, arrays["logits"], paths)
    return CorpusDecisions(decisions, FileIds(arrays["cluster_ids"], arrays["cluster_numbers"]))
