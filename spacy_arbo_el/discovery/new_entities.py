"""The new entities of a corpus: kept, edited, written down, and added to as documents come."""

from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Callable, Dict, Iterable, Iterator, List, Sequence, Tuple, Union

import numpy as np
import srsly

from ..encoders.sequences import Sequences
from ..errors import Errors
from ..graph.online import attach, settled
from ..graph.union_find import find
from ..io import pack_arrays, unpack_arrays, write_file
from ..retrieval.exemplars import Key
from .found import Discovered, Member, Near, describe, identify
from .rows import Rows, Unlinked

FORMAT = 1


class NewEntities:
    """New entities by id, or by place, the largest first.

    ``merge``, ``split`` and ``reject`` correct them, ``linker.accept`` takes one into the knowledge
    base. ``log`` has all of that, and the merges that new mentions brought about.

    threshold: The chance of being right that a link had to have where these were found.
    fingerprint: Names the encoder that the vectors come from.
    documents: How many documents were looked at.
    """

    def __init__(self, threshold: float = 0.0, fingerprint: str = "") -> None:
        self.threshold = threshold
        self.fingerprint = fingerprint
        self.documents = 0
        self.log: List[Dict[str, Any]] = []
        self.rows = Rows()
        # The number of each row's cluster, and what each number has become part of. An id belongs
        # to a number for good.
        self._cluster = np.zeros(0, dtype=np.int64)
        self._leads = np.zeros(0, dtype=np.int64)
        self._ids: List[str] = []
        self._numbers: Dict[str, int] = {}
        self._accepted: Dict[int, str] = {}
        self._rejected: Dict[int, None] = {}
        self._apart: List[Tuple[int, int]] = []
        self._groups: Dict[int, np.ndarray] = {}
        self._is_grouped = True

    # What there is

    def __len__(self) -> int:
        return len(self._in_groups())

    def __iter__(self) -> Iterator[Discovered]:
        return (self._describe(number) for number in self._in_groups())

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self._numbers.get(name, -1) in self._in_groups()

    def __getitem__(self, which):
        """A new entity by its id, or that of one it was merged with, or by its place."""
        if isinstance(which, str):
            return self._describe(self._number(which))
        numbers = list(self._in_groups())[which]
        if isinstance(which, slice):
            return [self._describe(number) for number in numbers]
        return self._describe(numbers)

    @property
    def ids(self) -> List[str]:
        """The ids, that of the largest first."""
        return [self._ids[number] for number in self._in_groups()]

    def resolve(self, name: str) -> str:
        """What a new entity has become: its id now, the id of the entity of the knowledge base that
        it was accepted as, "" where it was rejected. KeyError where there never was one."""
        if name not in self._numbers:
            raise KeyError(Errors.E703.format(id=name))
        return self._name(self._numbers[name])

    def id_of(self, key: Key) -> str:
        """The id of the new entity that a mention belongs to, "" for none."""
        row = self.rows.row(key)
        return self._name(int(self._cluster[row])) if row >= 0 else ""

    def mentions_of(self, name: str) -> Unlinked:
        """The mentions of a new entity, with their windows and vectors."""
        return self.rows.take(self._in_groups()[self._number(name)])

    # Adding

    def put(self, mentions: Unlinked, groups: np.ndarray) -> None:
        """Add mentions in groups: (m,) int64, equal for those of one new entity."""
        _, first, label = np.unique(groups, return_index=True, return_inverse=True)
        order = np.argsort(first, kind="stable")
        place = np.argsort(order)
        base = len(self._ids)
        self._leads = np.concatenate([self._leads, np.arange(base, base + len(order))])
        self._cluster = np.concatenate([self._cluster, base + place[label]])
        self._begin([mentions.keys[i] for i in first[order].tolist()])
        self.rows.extend(mentions)
        self._is_grouped = False

    def attach(self, mentions: Unlinked, neighbours: np.ndarray) -> List[str]:
        """Add mentions one after the other, each to the new entity it is near.

        neighbours: (m, k) int64 rows of earlier mentions that are near enough, nearest first, -1
            for none; of these mentions too, numbered on from those there are.
        RETURNS: For each the id of its new entity when its document was through, "" where that is
            rejected. It depends neither on later documents nor on how many come at once.
        """
        document = np.array([member.document for member in mentions.members], dtype=np.int64)
        closed = np.zeros(len(self._leads), dtype=bool)
        closed[list(self._rejected)] = True
        apart = np.array(self._apart, dtype=np.int64).reshape(-1, 2)
        new = attach(self._cluster, self._leads, neighbours, document, apart, closed)
        self._cluster, self._leads = new.cluster, new.leads
        self._begin([mentions.keys[i] for i in new.begun.tolist()])
        for gone, stays, mention in new.merges:
            where = "{}:{}:{}".format(*mentions.keys[mention])
            self._note("join", self._ids[gone], into=self._ids[stays], mention=where)
        self.rows.extend(mentions)
        self._is_grouped = False
        return [self._name(number) for number in new.at_once.tolist()]

    def _begin(self, keys: Sequence[Key]) -> None:
        for key in keys:
            name = identify(key)
            if name in self._numbers:
                # Its first mention has begun another one before, which went elsewhere.
                name = f"{name}-{len(self._ids)}"
            self._numbers[name] = len(self._ids)
            self._ids.append(name)

    # Correcting

    def merge(self, into: str, *others: str) -> Discovered:
        """Make one new entity of several; the ids of the others lead to ``into``."""
        stays = self._number(into)
        gone = [number for number in map(self._number, others) if number != stays]
        for number in dict.fromkeys(gone):
            self._leads[number] = stays
            self._note("merge", self._ids[number], into=self._ids[stays])
        together = {stays, *gone}
        pairs = ((self._lead(a), self._lead(b)) for a, b in self._apart)
        self._apart = [(a, b) for a, b in pairs if not together >= {a, b} and a != b]
        self._is_grouped = False
        return self._describe(stays)

    def split(self, name: str, members: Iterable[int]) -> Discovered:
        """Make a new entity of its own of some members, by their numbers in ``members``.

        The two never join again by themselves. RETURNS: The one split off.
        """
        number = self._number(name)
        rows = self._in_groups()[number]
        chosen = sorted(set(members))
        for member in chosen:
            if not 0 <= member < len(rows):
                raise ValueError(Errors.E704.format(id=name, count=len(rows), member=member))
        if not 0 < len(chosen) < len(rows):
            raise ValueError(Errors.E705.format(id=name, count=len(rows)))
        new = len(self._ids)
        self._leads = np.append(self._leads, new)
        off = rows[chosen]
        self._begin([self.rows.keys[int(off[0])]])
        self._cluster[off] = new
        self._apart.append((number, new))
        places = [list(self.rows.keys[row]) for row in off.tolist()]
        self._note("split", self._ids[number], off=self._ids[new], mentions=places)
        self._is_grouped = False
        return self._describe(new)

    def reject(self, name: str) -> None:
        """Say that this is no entity. Mentions that are near it are not new entities either."""
        number = self._number(name)
        self._rejected[number] = None
        self._note("reject", self._ids[number])
        self._is_grouped = False

    def release(self, name: str, kb_id: str) -> None:
        """Take out the mentions of a new entity that has become one of the knowledge base."""
        number = self._number(name)
        rows = self._in_groups()[number]
        self._accepted[number] = kb_id
        self._note("accept", self._ids[number], kb_id=kb_id, mentions=len(rows))
        self._take_out(rows)

    def leave_out(self, keys: Iterable[Key], kb_id: str) -> None:
        """Take out mentions that have become an entity of the knowledge base elsewhere.

        A new entity none of whose mentions is left has become that entity too.
        """
        rows = np.array([row for row in map(self.rows.row, keys) if row >= 0], dtype=np.int64)
        before = set(self._in_groups())
        self._take_out(rows)
        for number in before - set(self._in_groups()):
            self._accepted[number] = kb_id
            self._note("accept", self._ids[number], kb_id=kb_id)

    def _take_out(self, rows: np.ndarray) -> None:
        kept = np.ones(len(self.rows), dtype=bool)
        kept[rows] = False
        self.rows.keep(np.flatnonzero(kept))
        self._cluster = self._cluster[kept]
        self._is_grouped = False

    def _note(self, action: str, name: str, **more: Any) -> None:
        now = datetime.now(timezone.utc).isoformat(timespec="seconds")
        self.log.append({"action": action, "id": name, **more, "at": now})

    # By number

    def _lead(self, number: int) -> int:
        return int(find(self._leads, number))

    def _name(self, number: int) -> str:
        number = self._lead(number)
        if number in self._accepted:
            return self._accepted[number]
        return "" if number in self._rejected else self._ids[number]

    def _number(self, name: str) -> int:
        number = self._lead(self._numbers[name]) if name in self._numbers else -1
        if number not in self._in_groups():
            raise KeyError(Errors.E703.format(id=name))
        return number

    def _in_groups(self) -> Dict[int, np.ndarray]:
        """The rows of each new entity by its number, the largest first."""
        if not self._is_grouped:
            cluster = settled(self._leads)[self._cluster]
            order = np.argsort(cluster, kind="stable")
            bounds = np.flatnonzero(np.diff(cluster[order], prepend=-1, append=-1))
            groups = [order[start:end] for start, end in zip(bounds[:-1], bounds[1:])]
            groups.sort(key=lambda rows: (-len(rows), int(rows[0])))
            numbered = ((int(cluster[rows[0]]), rows) for rows in groups)
            self._groups = {n: rows for n, rows in numbered if n not in self._rejected}
            self._is_grouped = True
        return self._groups

    def _describe(self, number: int) -> Discovered:
        rows = self._in_groups()[number]
        members = [self.rows.members[row] for row in rows.tolist()]
        near = [self.rows.near[row] for row in rows.tolist()]
        vectors = self.rows.vectors[rows]
        return describe(self._ids[number], members, vectors, near, self.threshold)

    # Another encoder, and writing

    def sync(self, encode: Callable[[Sequences], np.ndarray], fingerprint: str) -> None:
        """Encode all mentions anew where their vectors are another encoder's."""
        if self.fingerprint != fingerprint:
            self.rows.encode(encode)
            self.fingerprint = fingerprint

    def to_bytes(self) -> bytes:
        """All of it, the log included."""
        arrays = {"vectors": self.rows.vectors, "cluster": self._cluster, "leads": self._leads}
        return srsly.msgpack_dumps(
            {
                "format": FORMAT,
                "arrays": pack_arrays({**arrays, **self.rows.windows.to_dict()}),
                "keys": [list(key) for key in self.rows.keys],
                "members": [list(member) for member in self.rows.members],
                "forms": self.rows.forms,
                "near": [[list(one) for one in row] for row in self.rows.near],
                "ids": self._ids,
                "accepted": [list(pair) for pair in self._accepted.items()],
                "rejected": list(self._rejected),
                "apart": [list(pair) for pair in self._apart],
                "log": self.log,
                "threshold": self.threshold,
                "fingerprint": self.fingerprint,
                "documents": self.documents,
            }
        )

    @classmethod
    def from_bytes(cls, data: bytes) -> "NewEntities":
        """What ``to_bytes`` gave; ValueError where it is something else."""
        try:
            msg = srsly.msgpack_loads(data)
            if msg["format"] != FORMAT:
                raise ValueError(f"format {msg['format']}")
            arrays = unpack_arrays(msg["arrays"])
            self = cls(msg["threshold"], msg["fingerprint"])
            self.documents, self.log = msg["documents"], msg["log"]
            near = [[Near(*one) for one in row] for row in msg["near"]]
            members = [Member(*member) for member in msg["members"]]
            keys = [(str(key[0]), int(key[1]), int(key[2])) for key in msg["keys"]]
            windows = Sequences.from_dict(arrays)
            if keys:
                rows = (keys, members, msg["forms"], near, windows, arrays["vectors"])
                self.rows.extend(Unlinked(*rows))
            self._cluster, self._leads = arrays["cluster"], arrays["leads"]
            self._ids = msg["ids"]
            self._numbers = {name: number for number, name in enumerate(self._ids)}
            self._accepted = dict(msg["accepted"])
            self._rejected = dict.fromkeys(msg["rejected"])
            self._apart = [(a, b) for a, b in msg["apart"]]
            if not len(keys) == len(members) == len(self._cluster) == len(windows):
                raise ValueError("rows of different lengths")
        # What msgpack and NumPy raise on broken bytes has no common base.
        except Exception as error:
            raise ValueError(Errors.E708.format(problem=error)) from error
        self._is_grouped = False
        return self

    def to_disk(self, path: Union[str, Path]) -> None:
        """Write a file, all or nothing."""
        write_file(Path(path), self.to_bytes())

    @classmethod
    def from_disk(cls, path: Union[str, Path]) -> "NewEntities":
        """Read a file that ``to_disk`` wrote."""
        return cls.from_bytes(Path(path).read_bytes())
