"""What the first pass over a corpus keeps of some of its documents, and its bytes."""

from dataclasses import dataclass, fields, replace
from typing import Any, Dict, List, Sequence

import numpy as np
import srsly

from ..arrays import TopK
from ..encoders.inputs import SpanInputs
from ..inference.decisions import MAX_CONSIDERED
from ..mentions.batch import MentionBatch
from ..mentions.records import MentionRecord
from ..reranking.protocol import RankedMentions, Ranking
from ..retrieval.neighbours import Neighbours
from ..storage.files import pack_arrays, unpack_arrays

RECORD = tuple(field.name for field in fields(MentionRecord))


@dataclass(frozen=True)
class CorpusPart:
    """The mentions of some documents of a corpus, before any decision.

    ranked: The mentions, without neighbours among each other; their rankings hold the
        ``MAX_CONSIDERED`` best candidates.
    candidates: All ranked candidates, for people to read; ids are int32.
    counts: How many mentions each document has.
    """

    ranked: RankedMentions
    candidates: TopK
    counts: List[int]

    @classmethod
    def of(cls, ranked: RankedMentions, counts: List[int], n_exemplars: int) -> "CorpusPart":
        """The stored part of mentions.

        n_exemplars: How many exemplars the inference procedure looks at; it may look at as many
            texts.
        """
        full = ranked.ranking.candidates
        candidates = TopK(full.ids.astype(np.int32), full.scores)
        return cls(_narrowed(ranked, n_exemplars), candidates, counts)

    @classmethod
    def concat(cls, parts: Sequence["CorpusPart"]) -> "CorpusPart":
        """The documents of several parts one after the other; at least one part."""
        return cls(
            RankedMentions.concat([part.ranked for part in parts]),
            TopK.concat([part.candidates for part in parts]),
            [count for part in parts for count in part.counts],
        )

    def to_bytes(self) -> bytes:
        """The part as bytes; scores are exact."""
        records = self.ranked.batch.records
        return srsly.msgpack_dumps(
            {
                "records": [values_of(record) for record in records],
                "arrays": pack_arrays(self.arrays()),
                "metric": self.ranked.neighbours.metric,
                "counts": self.counts,
            }
        )

    def arrays(self) -> Dict[str, np.ndarray]:
        """Everything but the records, by name."""
        batch, neighbours = self.ranked.batch, self.ranked.neighbours
        ranking = self.ranked.ranking
        tables = {
            "entities": neighbours.entities,
            "exemplars": neighbours.exemplars,
            "ranking": ranking.candidates,
            "candidates": self.candidates,
        }
        arrays = {
            "vectors": batch.encoded,
            "documents": batch.documents,
            "labels": batch.labels,
            "exemplar_entities": neighbours.exemplar_entities,
            "ranking_exemplars": ranking.exemplars,
            "corrected": self.ranked.corrected,
            **{f"{name}_ids": table.ids for name, table in tables.items()},
            **{f"{name}_scores": table.scores for name, table in tables.items()},
        }
        return {**arrays, **{f"inputs_{k}": v for k, v in batch.inputs.to_dict().items()}}

    @classmethod
    def from_bytes(cls, data: bytes) -> "CorpusPart":
        """What ``to_bytes`` gave."""
        message = srsly.msgpack_loads(data)
        arrays = unpack_arrays(message["arrays"])

        def table(name: str) -> TopK:
            return TopK(arrays[f"{name}_ids"], arrays[f"{name}_scores"])

        inputs = {k[len("inputs_") :]: v for k, v in arrays.items() if k.startswith("inputs_")}
        batch = MentionBatch(
            [record_of(values) for values in message["records"]],
            SpanInputs.from_dict(inputs),
            arrays["documents"],
            arrays["labels"],
            len(message["counts"]),
            arrays["vectors"],
        )
        neighbours = Neighbours(
            table("entities"),
            table("exemplars"),
            TopK.empty(len(batch)),
            arrays["exemplar_entities"],
            message["metric"],
        )
        ranking = Ranking(table("ranking"), arrays["ranking_exemplars"])
        ranked = RankedMentions(batch, neighbours, ranking, arrays["corrected"])
        return cls(ranked, table("candidates"), list(message["counts"]))


def values_of(record: MentionRecord) -> List[object]:
    """The values of a record, to be written."""
    return [getattr(record, name) for name in RECORD]


def record_of(values: Sequence[object]) -> MentionRecord:
    """The record of which ``values_of`` gave the values."""
    named: Dict[str, Any] = dict(zip(RECORD, values))
    lists = {name: tuple(named[name]) for name in ("key", "kb_ids")}
    return MentionRecord(**{**named, **lists})


def _narrowed(ranked: RankedMentions, n_exemplars: int) -> RankedMentions:
    """What decisions need, without the rest of the neighbours and candidates."""
    n_entities = max(MAX_CONSIDERED, n_exemplars)
    neighbours = ranked.neighbours.narrowed(n_entities, n_exemplars)
    return replace(ranked, neighbours=neighbours, ranking=ranked.ranking.first(MAX_CONSIDERED))
