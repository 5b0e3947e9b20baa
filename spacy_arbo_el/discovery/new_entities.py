"""The new entities of a corpus. Stored, edited, saved, and updated from later discoveries."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar, cast, overload

import numpy as np

from ..base.arrays import take_rows
from ..base.display import counted
from ..base.errors import Errors
from ..encoders.inputs import SpanInputs
from ..kb.entity import Entity
from ..mentions.record import MentionKey
from ..storage.files import write_file
from ..storage.locks import ForkableLock
from .decision_log import DecisionLog, Entry, clusters_of
from .entities import EntityOrId, NewEntity, describe, id_of_entity
from .grouping import Decided
from .serialization import SETTINGS, pack, unpack
from .store import Clusters, Unlinked
from .verdicts import Verdicts

Method = TypeVar("Method", bound=Callable[..., Any])


def locked(method: Method) -> Method:
    """A method of which one thread runs at a time."""

    @wraps(method)
    def run(self: "NewEntities", *args: Any, **kwargs: Any) -> Any:
        with self.lock:
            return method(self, *args, **kwargs)

    return cast(Method, run)


class NewEntities:
    """New entities by id, or by place, the largest first.

    ``merge``, ``split`` and ``reject`` correct them, ``accept`` adds one to the knowledge base,
    ``undo`` takes the last of these decisions back. ``log`` records them. Threads may call all
    methods at the same time.

    threshold: The probability that a link had to have.
    fingerprint: Identifies the encoder that the vectors come from.
    documents: How many documents were processed.
    acceptance: Gives the ``Acceptance`` that moves them to a knowledge base; None without a linker.
    lock: One thread at a time may read or change the new entities. It may wait for no other lock
        while it has this one.
    """

    def __init__(self, threshold: float = 0.0, fingerprint: str = "") -> None:
        self.threshold = threshold
        self.fingerprint = fingerprint
        self.documents = 0
        self.acceptance: Callable[[], Any] | None = None
        self.lock = ForkableLock()
        self.rows = Unlinked.empty()
        self.clusters = Clusters()
        self.history = DecisionLog()
        self._by_size: dict[int, np.ndarray] | None = None

    # Reading

    @property
    def log(self) -> list[Entry]:
        """The history of decisions, with their times."""
        return self.history.entries

    @locked
    def __len__(self) -> int:
        return len(self._groups())

    def __iter__(self) -> Iterator[NewEntity]:
        return iter(self[:])

    def __contains__(self, entity_id: object) -> bool:
        return isinstance(entity_id, str) and entity_id in self.ids

    @overload
    def __getitem__(self, which: str | int) -> NewEntity: ...

    @overload
    def __getitem__(self, which: slice) -> list[NewEntity]: ...

    @locked
    def __getitem__(self, which: str | int | slice) -> NewEntity | list[NewEntity]:
        """Get a new entity by id or place. An id that was merged into another leads to that one."""
        if isinstance(which, str):
            return self._describe(self._number(which))
        numbers = list(self._groups())
        if isinstance(which, slice):
            return [self._describe(number) for number in numbers[which]]
        return self._describe(numbers[which])

    @property
    def ids(self) -> list[str]:
        """The ids, that of the largest new entity first."""
        with self.lock:
            return [self.clusters.ids[number] for number in self._groups()]

    # What people see

    @locked
    def __repr__(self) -> str:
        mentions = sum(map(len, self._groups().values()))
        counts = (
            counted(len(self), "new entity", "new entities"),
            counted(mentions, "mention"),
        )
        return f"NewEntities({', '.join(counts)})"

    # Looking up

    @locked
    def resolve(self, entity_id: str) -> str:
        """Resolve a new entity to its present state.

        RETURNS: Its present id, the id of the entity of the knowledge base that it was accepted
            as, or "" where it was rejected. KeyError where there never was a new entity of this id.
        """
        clusters = self.clusters
        number = clusters.current(clusters.number_of(entity_id))
        if number in clusters.accepted:
            return clusters.accepted[number]
        if number in clusters.rejected:
            return ""
        return clusters.ids[number]

    @locked
    def id_of(self, key: MentionKey) -> str:
        """Id of a mention's new entity, "" for none."""
        row = self.rows.row(key)
        if row < 0:
            return ""
        number = self.clusters.current(int(self.clusters.of_mention[row]))
        if self.clusters.is_open(number):
            return self.clusters.ids[number]
        return ""

    @locked
    def named(self, entity: EntityOrId) -> NewEntity:
        """The new entity of an id.

        Raises ValueError where it was merged into one of another id, and KeyError if
        the id is unknown.
        """
        return self._describe(self._named(entity))

    @locked
    def mentions_of(self, entity: EntityOrId) -> Unlinked:
        """Get a new entity's mentions with inputs and vectors."""
        return self.rows.take(self._groups()[self._number(id_of_entity(entity))])

    # Adding mentions

    def add_groups(
        self,
        mentions: Unlinked,
        groups: np.ndarray,
        continued: dict[int, int] | None = None,
    ) -> None:
        """Add mentions in groups.

        mentions: Mentions that are not stored yet.
        groups: (m,) int64, equal for the mentions of one new entity.
        continued: The numbers of groups that are clusters already.
        """
        with self._changing():
            self.clusters.extend(mentions.keys, groups, continued or {})
            self.rows.extend(mentions)

    # Deciding

    @locked
    def merge(self, into: EntityOrId, *absorbed: EntityOrId) -> NewEntity:
        """Merge new entities. The ids of the others then lead to ``into``."""
        stays = self._named(into)
        gone = [number for number in map(self._named, absorbed) if number != stays]
        if gone:
            with self._changing() as verdicts:
                verdicts.merge(stays, list(dict.fromkeys(gone)))
        return self._describe(stays)

    @locked
    def split(self, entity: EntityOrId, members: Iterable[int]) -> NewEntity:
        """Make some members a separate entity. Later discoveries keep the two apart.

        Members that were a separate entity before get the id of that entity again.

        members: Numbers of mentions in the entity's ``members``.
        RETURNS: The entity of these members.
        """
        number = self._named(entity)
        rows = self._groups()[number]
        chosen = sorted(set(members))
        details = {"id": self.clusters.ids[number], "count": len(rows)}
        for member in chosen:
            if not 0 <= member < len(rows):
                raise Errors.E704(**details, member=member)
        if not 0 < len(chosen) < len(rows):
            raise Errors.E705(**details)
        with self._changing() as verdicts:
            new = verdicts.split(number, rows, rows[chosen])
        return self._describe(new)

    def reject(self, entity: EntityOrId) -> None:
        """Mark a new entity as no entity. Mentions that join it later are not new either."""
        with self._changing() as verdicts:
            verdicts.reject(self._named(entity))

    def mark_accepted(self, entity: EntityOrId, kb_id: str, **more: Any) -> None:
        """Mark a new entity as accepted into the knowledge base."""
        with self._changing() as verdicts:
            verdicts.accept(self._named(entity), kb_id, **more)

    def mark_accepted_elsewhere(self, keys: Iterable[MentionKey], kb_id: str) -> None:
        """Mark mentions as accepted into the knowledge base elsewhere.

        A new entity that loses all its mentions by this has become that entity too.
        """
        with self._changing() as verdicts:
            verdicts.leave_out(set(keys), kb_id)

    def unmark(self, keys: Iterable[Sequence[Any]], kb_id: str) -> None:
        """Undo the last ``mark_accepted_elsewhere`` of mentions of an entity, if any."""
        with self._changing() as verdicts:
            mention_keys = {tuple(key) for key in keys}
            for entry in reversed(self.history.standing()):
                if entry.get("kb_id") == kb_id and mention_keys & set(
                    map(tuple, entry["mentions"])
                ):
                    return verdicts.undo(entry)

    def accept(
        self, entity: EntityOrId, kb_id: str | None = None, **details: Any
    ) -> Entity:
        """Accept a new entity into the knowledge base. Its mentions become exemplars.

        The next document links to it. Either both are added or, on an error, neither. Raises
        ValueError where no linker has these new entities, or where the id leads to another new
        entity by now, because it was merged.

        kb_id: The id to give it; by default that of "NEW-…" is "ENT-…". Where the knowledge base
            has the id, the mentions become exemplars of the existing entity.
        details: ``title``, by default the new entity's name; ``description``; ``types``, by default
            the labels of its mentions; ``max_aliases``, how many of the other surface forms of its
            mentions become aliases, the most frequent first, by default 10.
        """
        if self.acceptance is None:
            raise Errors.E727()
        return self.acceptance().accept(self, entity, kb_id, **details)

    def undo(self, number: int | None = None) -> Entry:
        """Undo a decision. An acceptance is undone in the linker's knowledge base too.

        An entity that was added is removed again, unless others were merged into it. Mentions that
        were exemplars before get back the entity that they had. Mentions that have come since stay
        where they are. Raises ValueError where a later decision is on the same new entities.

        number: That of the decision in ``log``, its "n"; by default the last.
        RETURNS: What the log says of the decision.
        """
        if self.acceptance is None:
            return self.revert(number)
        return self.acceptance().undo(self, number)

    def revert(self, number: int | None = None, *, acceptances: bool = False) -> Entry:
        """Undo a decision as ``undo`` does, outside of the knowledge base.

        acceptances: Whether to take back an acceptance all the same; else that is an error.
        """
        with self._changing() as verdicts:
            entry = self.history.decision(number)
            if "kb_id" in entry and not acceptances:
                raise Errors.E717(id=clusters_of(entry)[0], kb_id=entry["kb_id"])
            verdicts.undo(entry)
            return entry

    # The next discovery

    @locked
    def decided(self) -> Decided:
        """Decisions that the next discovery must keep."""
        return Verdicts(self.rows, self.clusters, self.history).decided()

    @locked
    def continued(self) -> "NewEntities":
        """Carry decisions and ids over to another discovery's mentions.

        Only mentions that are no new entities any more are there already.
        """
        new = NewEntities(self.threshold, self.fingerprint)
        clusters = deepcopy(self.clusters)
        new.acceptance = self.acceptance
        closed = clusters.closed()[clusters.numbers]
        clusters.of_mention = clusters.of_mention[closed]
        new.rows = self.rows.take(np.flatnonzero(closed))
        new.clusters = clusters
        new.history = DecisionLog(list(self.log))
        return new

    def update(self, later: "NewEntities") -> None:
        """Merge a later discovery: ``new_entities.update(corpus.discover(docs))``.

        Mentions of both are grouped as in the later one, others stay. Raises ValueError where
        decisions were made here that the later discovery did not know of.
        """
        # The copy is this thread's own: no thread ever waits for the locks of two.
        taken = NewEntities.from_bytes(later.to_bytes())
        with self._changing() as verdicts:
            if (
                len(self.rows)
                and len(taken.rows)
                and self.fingerprint != taken.fingerprint
            ):
                raise Errors.E719()
            verdicts.carry_to(Verdicts(taken.rows, taken.clusters, taken.history))
            self.rows = taken.rows
            self.clusters = taken.clusters
            self.history = taken.history
            self.threshold = taken.threshold
            self.fingerprint = taken.fingerprint
            self.documents += taken.documents

    @contextmanager
    def _changing(self) -> Iterator[Verdicts]:
        """Take part in a change of the new entities. They are grouped anew after it."""
        with self.lock:
            try:
                yield Verdicts(self.rows, self.clusters, self.history)
            finally:
                self._by_size = None

    # Helpers

    def _groups(self) -> dict[int, np.ndarray]:
        if self._by_size is None:
            self._by_size = self.clusters.by_size()
        return self._by_size

    def _number(self, entity_id: str) -> int:
        number = self.clusters.current(self.clusters.number_of(entity_id))
        if number not in self._groups():
            raise KeyError(Errors.E703.format(id=entity_id))
        return number

    def _named(self, entity: EntityOrId) -> int:
        """Number of the named entity. Merges are not followed."""
        entity_id = id_of_entity(entity)
        number = self._number(entity_id)
        now = self.clusters.ids[number]
        if now != entity_id:
            new_entity = self._describe(number)
            raise Errors.E715(
                id=entity_id,
                now=now,
                name=new_entity.name,
                count=len(new_entity.members),
            )
        return number

    def _describe(self, number: int) -> NewEntity:
        rows = self._groups()[number]
        records = take_rows(self.rows.records, rows)
        nearest = take_rows(self.rows.nearest, rows)
        vectors = self.rows.vectors[rows]
        entity_id = self.clusters.ids[number]
        return describe(entity_id, records, vectors, nearest, self.threshold)

    # Another encoder, and saving

    @locked
    def sync(
        self, encode: Callable[[SpanInputs], np.ndarray], fingerprint: str
    ) -> None:
        """Encode all mentions again if the encoder has changed.

        encode: Function from inputs to prepared vectors.
        """
        if self.fingerprint != fingerprint:
            self.rows.encode(encode)
            self.fingerprint = fingerprint

    @locked
    def to_bytes(self) -> bytes:
        """Everything, the log included."""
        settings = {name: getattr(self, name) for name in SETTINGS}
        return pack(self.rows, self.clusters, settings)

    @classmethod
    def from_bytes(cls, data: bytes) -> "NewEntities":
        """Load the result of ``to_bytes``; ValueError if invalid. The bytes are something else."""
        rows, clusters, settings = unpack(data)
        self = cls(settings["threshold"], settings["fingerprint"])
        self.documents = settings["documents"]
        self.history = DecisionLog(settings["log"])
        self.rows = rows
        self.clusters = clusters
        return self

    def to_disk(self, path: str | Path) -> None:
        """Write a file, all or nothing."""
        write_file(Path(path), self.to_bytes())

    @classmethod
    def from_disk(cls, path: str | Path) -> "NewEntities":
        """Read a file that ``to_disk`` wrote."""
        return cls.from_bytes(Path(path).read_bytes())
