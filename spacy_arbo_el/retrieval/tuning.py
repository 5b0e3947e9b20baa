"""What kinds of index cost and find, over the very vectors they are to search."""

import time
from dataclasses import dataclass
from typing import Any, Dict, Iterator, List, Optional, Sequence

import numpy as np

from ..kb.vectors import VectorRows
from .approximate import ApproximateIndex
from .index import FlatIndex
from .kinds import hnsw, ivf, usual_lists
from .similarity import Similarity

KINDS = {"IVF.v1": ivf, "HNSW.v1": hnsw}


@dataclass(frozen=True)
class Setting:
    """A kind of index, and the settings that a config would give it."""

    kind: str
    settings: Dict[str, Any]

    def __str__(self) -> str:
        values = ", ".join(f"{key} {value}" for key, value in self.settings.items())
        return f"{self.kind}: {values}"

    def config(self) -> str:
        """The section of a config that asks for it."""
        lines = ["[components.arbo_linker.index]", f'@misc = "spacy-arbo-el.{self.kind}"']
        lines += [
            f'{key} = "{value}"' if isinstance(value, str) else f"{key} = {value}"
            for key, value in self.settings.items()
        ]
        return "\n".join(lines)


@dataclass(frozen=True)
class Measured:
    """What a setting costs and finds.

    recall: The share of the truly nearest that are found, by how many are looked for.
    milliseconds: A query, in a batch of all. speedup: Exact search's time over that.
    build: Seconds; 0 where only the search differs from the setting before. size: Bytes.
    """

    setting: Setting
    recall: Dict[int, float]
    milliseconds: float
    speedup: float
    build: float
    size: int
    index: ApproximateIndex


def settings_for(rows: int) -> List[Setting]:
    """Some settings worth a look, the ones that share an index next to each other."""
    lists = usual_lists(rows)
    found = []
    for codes, refine in (("pq4", 4.0), ("sq8", 2.0), ("float32", 1.0)):
        for probes in (max(lists // 128, 1), max(lists // 32, 2), max(lists // 8, 4)):
            values = {"lists": lists, "probes": probes, "codes": codes, "refine": refine}
            found.append(Setting("IVF.v1", values))
    for search in (64, 256):
        found.append(Setting("HNSW.v1", {"search": search, "codes": "sq8"}))
    return found


def measure(
    rows: VectorRows,
    similarity: Similarity,
    queries: np.ndarray,
    settings: Sequence[Setting],
    counts: Sequence[int] = (1, 64),
    usable: Optional[np.ndarray] = None,
) -> Iterator[Measured]:
    """Measure settings one after the other.

    queries: (m, width) float32, prepared. counts: Of nearest rows that recall is measured for.
    usable: (rows,) bool, those that count; None for all.
    """
    flat = FlatIndex(similarity.prepare(rows.array()), similarity)
    k = min(max(counts), len(rows))
    exact_seconds, (_, right) = _timed(flat, queries, k, usable)
    attached = None
    for setting in settings:
        build = KINDS[setting.kind](**setting.settings)
        start = time.perf_counter()
        index = build(rows, similarity, attached)
        seconds = time.perf_counter() - start
        if not isinstance(index, ApproximateIndex):
            continue
        again = attached is not None and attached.about == getattr(index.attached, "about", None)
        attached = index.attached
        spent, (_, found) = _timed(index, queries, k, usable)
        recall = {count: _recall(found[:, :count], right[:, :count]) for count in counts}
        yield Measured(
            setting,
            recall,
            1000 * spent / len(queries),
            exact_seconds / spent,
            0.0 if again else seconds,
            index.size(),
            index,
        )


def _timed(index, queries: np.ndarray, k: int, usable: Optional[np.ndarray]):
    index.search(queries[:8], k, usable)
    start = time.perf_counter()
    found = index.search(queries, k, usable)
    return time.perf_counter() - start, found


def _recall(found: np.ndarray, right: np.ndarray) -> float:
    hits = (right[:, :, None] == found[:, None, :]) & (right[:, :, None] >= 0)
    return float(hits.any(axis=2).sum() / max((right >= 0).sum(), 1))
