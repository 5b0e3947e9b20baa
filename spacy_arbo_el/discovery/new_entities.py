"""The new entities of a corpus: stored, edited, saved, and added to as documents come."""

from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Callable, Dict, Iterable, Iterator, List, Union, overload

import numpy as np

from ..encoders.inputs import SpanInputs
from ..errors import Errors
from ..graph.online import attach
from ..io import write_file
from ..mentions.records import MentionKey
from .clusters import Clusters
from .entities import NewEntity, describe
from .serialization import Contents, pack, unpack
from .unlinked import Rows, Unlinked


class NewEntities:
    """New entities by id, or by place, the largest first.

    ``merge``, ``split`` and ``reject`` correct them, ``linker.accept`` adds one to the knowledge
    base. ``log`` records these edits, and the merges that new mentions caused.

    threshold: The probability that a link had to have.
    fingerprint: Identifies the encoder that the vectors come from.
    documents: How many documents were processed.
    """

    def __init__(self, threshold: float = 0.0, fingerprint: str = "") -> None:
        self.threshold = threshold
        self.fingerprint = fingerprint
        self.documents = 0
        self.log: List[Dict[str, Any]] = []
        self.rows = Rows()
        self._clusters = Clusters()
        self._by_size: Dict[int, np.ndarray] = {}
        self._is_grouped = True

    # Reading

    def __len__(self) -> int:
        return len(self._groups())

    def __iter__(self) -> Iterator[NewEntity]:
        return (self._describe(number) for number in self._groups())

    def __contains__(self, entity_id: object) -> bool:
        return isinstance(entity_id, str) and entity_id in self.ids

    @overload
    def __getitem__(self, which: Union[str, int]) -> NewEntity: ...

    @overload
    def __getitem__(self, which: slice) -> List[NewEntity]: ...

    def __getitem__(self, which: Union[str, int, slice]) -> Union[NewEntity, List[NewEntity]]:
        """A new entity by its id, by the id of one that was merged into it, or by its place."""
        if isinstance(which, str):
            return self._describe(self._number(which))
        numbers = list(self._groups())
        if isinstance(which, slice):
            return [self._describe(number) for number in numbers[which]]
        return self._describe(numbers[which])

    @property
    def ids(self) -> List[str]:
        """The ids, that of the largest new entity first."""
        return [self._clusters.ids[number] for number in self._groups()]

    def resolve(self, entity_id: str) -> str:
        """What a new entity has become.

        RETURNS: Its present id, the id of the entity of the knowledge base that it was accepted
            as, or "" where it was rejected. KeyError where there never was a new entity of this id.
        """
        return self._clusters.id_now(self._clusters.number_of(entity_id))

    def id_of(self, key: MentionKey) -> str:
        """The id of the new entity that a mention belongs to, "" for none."""
        row = self.rows.row(key)
        return self._clusters.id_now(int(self._clusters.of_mention[row])) if row >= 0 else ""

    def mentions_of(self, entity_id: str) -> Unlinked:
        """The mentions of a new entity, with their inputs and vectors."""
        return self.rows.take(self._groups()[self._number(entity_id)])

    # Adding mentions

    def put(self, mentions: Unlinked, groups: np.ndarray) -> None:
        """Add mentions in groups.

        groups: (m,) int64, equal for the mentions of one new entity.
        """
        first = self._clusters.add(groups)
        self._clusters.assign_ids([mentions.records[i].key for i in first.tolist()])
        self.rows.extend(mentions)
        self._is_grouped = False

    def attach(self, mentions: Unlinked, neighbours: np.ndarray) -> List[str]:
        """Add mentions one after the other, each to the new entity of its neighbours.

        A mention without neighbours becomes a new entity.

        neighbours: (m, k) int64, rows of similar mentions that came earlier, most similar first,
            -1 for none. The mentions that are added are numbered after those that are stored.
        RETURNS: For each mention the id that its new entity had at the end of its document, "" for
            a rejected one. The ids depend neither on later documents nor on the number of
            documents that are added at once.
        """
        clusters = self._clusters
        rejected = np.zeros(len(clusters.merged_into), dtype=bool)
        rejected[list(clusters.rejected)] = True
        kept_apart = np.array(clusters.kept_apart, dtype=np.int64).reshape(-1, 2)
        attached = attach(
            clusters.of_mention,
            clusters.merged_into,
            neighbours,
            mentions.documents,
            kept_apart,
            rejected,
        )
        clusters.of_mention = attached.of_mention
        clusters.merged_into = attached.merged_into
        clusters.assign_ids([mentions.records[i].key for i in attached.first_mentions.tolist()])
        for gone, stays, mention in attached.merges:
            place = "{}:{}:{}".format(*mentions.records[mention].key)
            self._note("join", clusters.ids[gone], into=clusters.ids[stays], mention=place)
        self.rows.extend(mentions)
        self._is_grouped = False
        return [clusters.id_now(number) for number in attached.assigned.tolist()]

    # Correcting

    def merge(self, into: str, *others: str) -> NewEntity:
        """Merge new entities; the ids of the others then lead to ``into``."""
        stays = self._number(into)
        gone = [number for number in map(self._number, others) if number != stays]
        gone = list(dict.fromkeys(gone))
        self._clusters.merge(stays, gone)
        for number in gone:
            self._note("merge", self._clusters.ids[number], into=self._clusters.ids[stays])
        self._is_grouped = False
        return self._describe(stays)

    def split(self, entity_id: str, members: Iterable[int]) -> NewEntity:
        """Make some members a new entity of their own. New mentions never merge the two again.

        members: Numbers of mentions in the entity's ``members``.
        RETURNS: The entity of these members.
        """
        number = self._number(entity_id)
        rows = self._groups()[number]
        chosen = sorted(set(members))
        for member in chosen:
            if not 0 <= member < len(rows):
                raise ValueError(Errors.E704.format(id=entity_id, count=len(rows), member=member))
        if not 0 < len(chosen) < len(rows):
            raise ValueError(Errors.E705.format(id=entity_id, count=len(rows)))
        moved = rows[chosen]
        keys = [self.rows.records[row].key for row in moved.tolist()]
        new = self._clusters.split(number, moved, keys[0])
        ids = self._clusters.ids
        self._note("split", ids[number], off=ids[new], mentions=[list(key) for key in keys])
        self._is_grouped = False
        return self._describe(new)

    def reject(self, entity_id: str) -> None:
        """Mark a new entity as no entity. Mentions that join it later are not new either."""
        number = self._number(entity_id)
        self._clusters.rejected[number] = None
        self._note("reject", self._clusters.ids[number])
        self._is_grouped = False

    def release(self, entity_id: str, kb_id: str) -> None:
        """Remove the mentions of a new entity that has become one of the knowledge base."""
        number = self._number(entity_id)
        rows = self._groups()[number]
        self._clusters.accepted[number] = kb_id
        self._note("accept", self._clusters.ids[number], kb_id=kb_id, mentions=len(rows))
        self._remove(rows)

    def leave_out(self, keys: Iterable[MentionKey], kb_id: str) -> None:
        """Remove mentions that have become an entity of the knowledge base elsewhere.

        A new entity that loses all its mentions by this has become that entity too.
        """
        rows = [row for row in map(self.rows.row, keys) if row >= 0]
        before = set(self._groups())
        self._remove(np.array(rows, dtype=np.int64))
        for number in before - set(self._groups()):
            self._clusters.accepted[number] = kb_id
            self._note("accept", self._clusters.ids[number], kb_id=kb_id)

    def _remove(self, rows: np.ndarray) -> None:
        kept = np.ones(len(self.rows), dtype=bool)
        kept[rows] = False
        self.rows.keep(np.flatnonzero(kept))
        self._clusters.keep(kept)
        self._is_grouped = False

    def _note(self, action: str, entity_id: str, **more: Any) -> None:
        now = datetime.now(timezone.utc).isoformat(timespec="seconds")
        self.log.append({"action": action, "id": entity_id, **more, "at": now})

    def _groups(self) -> Dict[int, np.ndarray]:
        """The rows of each new entity by the number of its cluster, the largest first."""
        if not self._is_grouped:
            self._by_size = self._clusters.by_size()
            self._is_grouped = True
        return self._by_size

    def _number(self, entity_id: str) -> int:
        number = self._clusters.current(self._clusters.number_of(entity_id))
        if number not in self._groups():
            raise KeyError(Errors.E703.format(id=entity_id))
        return number

    def _describe(self, number: int) -> NewEntity:
        rows = self._groups()[number]
        records = [self.rows.records[row] for row in rows.tolist()]
        nearest = [self.rows.nearest[row] for row in rows.tolist()]
        vectors, entity_id = self.rows.vectors[rows], self._clusters.ids[number]
        return describe(entity_id, records, vectors, nearest, self.threshold)

    # Another encoder, and saving

    def sync(self, encode: Callable[[SpanInputs], np.ndarray], fingerprint: str) -> None:
        """Encode all mentions anew where their vectors come from another encoder.

        encode: Function from inputs to prepared vectors.
        fingerprint: Identifies the encoder.
        """
        if self.fingerprint != fingerprint:
            self.rows.encode(encode)
            self.fingerprint = fingerprint

    def to_bytes(self) -> bytes:
        """Everything, the log included."""
        mentions = self.rows.take(np.arange(len(self.rows)))
        settings = self.threshold, self.fingerprint, self.documents
        return pack(Contents(mentions, self._clusters, self.log, *settings))

    @classmethod
    def from_bytes(cls, data: bytes) -> "NewEntities":
        """What ``to_bytes`` gave; ValueError where the bytes are something else."""
        contents = unpack(data)
        self = cls(contents.threshold, contents.fingerprint)
        self.documents, self.log = contents.documents, contents.log
        self.rows.extend(contents.mentions)
        self._clusters = contents.clusters
        self._is_grouped = False
        return self

    def to_disk(self, path: Union[str, Path]) -> None:
        """Write a file, all or nothing."""
        write_file(Path(path), self.to_bytes())

    @classmethod
    def from_disk(cls, path: Union[str, Path]) -> "NewEntities":
        """Read a file that ``to_disk`` wrote."""
        return cls.from_bytes(Path(path).read_bytes())
