"""The knowledge base: entities, their texts' vectors, and spaCy's view of them."""

import json
import os
import tempfile
import uuid
import weakref
from contextlib import contextmanager
from pathlib import Path
from typing import (
    Any,
    Callable,
    Dict,
    Iterable,
    Iterator,
    List,
    Mapping,
    Optional,
    Sequence,
    Tuple,
    Union,
)

import numpy as np
from filelock import FileLock
from spacy.kb import Candidate, KnowledgeBase
from spacy.tokens import Span
from spacy.util import SimpleFrozenList
from spacy.vocab import Vocab

from ..errors import Errors
from . import encoding, folder
from .database import Database
from .entity import Entity
from .saving import AttachedIndex, dump, restore, write
from .store import EntityStore
from .texts import DistinctTexts
from .vectors import BLOCK, RowFiles, VectorRows, block_checksums
from .verbalizations import Verbalization

# A database up to this size is copied into memory where edits must not change the file.
IN_MEMORY = 1 << 28

Entities = Union[Entity, Iterable[Entity]]


class ArboKB(KnowledgeBase):
    """A spaCy knowledge base whose vectors come from an encoder.

    It lives in memory, or in a folder: ``from_disk`` opens one for reading, and what is changed
    then stays in memory until ``to_disk``; ``open`` opens one for writing, and each change is in
    the folder when the call returns, or not at all. Entities lie in SQLite, vectors in a mapped
    file, so that a large one opens at once.

    Entities are added, updated, merged and removed at any time; ``sync`` then encodes the texts
    that are new, and only these. The linker that owns the knowledge base calls it before it links.

    What spaCy's users know works as they expect: ``get_candidates`` finds entities by alias
    (whatever the case), ``get_vector`` gives the vector of an entity's first text.

    vocab: The pipeline's vocabulary.
    entities: Entities to begin with.
    dtype: "float32", or "float16" for vectors of half the size.

    The attribute ``entities`` is the ``EntityStore``, ``rows`` are the ``VectorRows``; ``layout``
    grows whenever rows get other numbers, ``edits`` whenever anything has changed.
    """

    def __init__(self, vocab: Vocab, entities: Iterable[Entity] = (), *, dtype: str = "float32"):
        super().__init__(vocab, 0)
        self.path: Optional[Path] = None
        self.layout = self.edits = 0
        self.index: Optional[AttachedIndex] = None
        self._lock: Optional[FileLock] = None
        self._take(Database(), VectorRows(dtype=dtype))
        with self.database.transaction():
            self.database.set(
                format=folder.FORMAT,
                version=folder.VERSION,
                uuid=uuid.uuid4().hex,
                generation=0,
                entities=0,
                positions=0,
                rows=0,
                width=0,
                dtype=dtype,
                files=0,
                encoder="",
                index="",
            )
            self.entities.add(entities)

    def _take(self, database: Database, rows: VectorRows) -> None:
        self.database, self.rows = database, rows
        self.entities = EntityStore(database)
        self._ids: Dict[int, str] = {}
        self._touched = False
        self.edits += 1
        self._generation = database.rows("PRAGMA data_version")

    @classmethod
    def open(cls, path: Union[str, Path], vocab: Optional[Vocab] = None) -> "ArboKB":
        """Open a folder for writing; ValueError where another program has. ``close`` it, or use
        it in a ``with`` statement."""
        path = Path(path)
        if not path.is_dir():
            raise ValueError(Errors.E010.format(path=path, missing=folder.MANIFEST))
        kb = cls(vocab or Vocab())
        kb._lock = folder.lock(path)
        try:
            return kb._read_folder(path, writable=True)
        except BaseException:
            kb.close()
            raise

    @classmethod
    def for_reading(cls, path: Union[str, Path]) -> "ArboKB":
        """Open a folder for reading, with a vocabulary of its own."""
        return cls(Vocab()).from_disk(path)

    @classmethod
    def create(
        cls, path: Union[str, Path], vocab: Optional[Vocab] = None, *, dtype: str = "float32"
    ) -> "ArboKB":
        """An empty folder of a knowledge base, opened for writing; an older one is replaced."""
        cls(Vocab(), dtype=dtype).to_disk(path)
        return cls.open(path, vocab)

    def close(self) -> None:
        """Give up the folder; what was changed is in it already."""
        if self._lock is not None and self.path is not None:
            folder.show_manifest(self.path, self.database, limit=folder.CHECKED)
        self.database.close()
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def __enter__(self) -> "ArboKB":
        return self

    def __exit__(self, *_) -> None:
        self.close()

    # Entities

    def __len__(self) -> int:
        return len(self.entities)

    def __contains__(self, entity_id: str) -> bool:
        return entity_id in self.entities

    def __iter__(self) -> Iterator[Entity]:
        return iter(self.entities)

    def is_empty(self) -> bool:
        return len(self) == 0

    def get(self, entity_id: str) -> Entity:
        """The entity of that id, or of the one it was merged into; KeyError where there is none."""
        return self.entities.get(entity_id)

    def add(self, entities: Entities) -> int:
        """Add one or many, all or none; ValueError where an id is taken. RETURNS: How many."""
        return self._edit("add", _stream(entities))

    def update(self, entities: Entities) -> int:
        """Put entities in the place of those with the same ids, all or none; KeyError where there
        is none. RETURNS: How many."""
        return self._edit("update", _stream(entities))

    def upsert(self, entities: Entities) -> int:
        """Update what is there and add the rest, all or nothing. RETURNS: How many."""
        return self._edit("upsert", _stream(entities))

    def remove(self, ids: Union[str, Iterable[str]]) -> int:
        """Take entities out, all or none; KeyError where there is none. RETURNS: How many."""
        return self._edit("remove", [ids] if isinstance(ids, str) else ids)

    def redirect(self, leads: Mapping[str, str]) -> int:
        """Let other ids lead to entities, all or none. RETURNS: How many."""
        return self._edit("redirect", leads)

    def merge(self, old: str, new: str) -> Entity:
        """Make one entity of two. ``old`` leads to ``new`` from now on, and its names are aliases.

        RETURNS: The entity that is left, which has the title of ``new``, the description of ``new``
            if it has one, and what else the two have.
        """
        left, right = self.get(old), self.get(new)
        if left.id == right.id:
            raise ValueError(Errors.E021.format(id=left.id))
        merged = Entity(
            right.id,
            right.title,
            right.description or left.description,
            tuple(name for name in dict.fromkeys([*right.names, *left.names]))[1:],
            tuple(dict.fromkeys([*right.types, *left.types])),
            left.frequency + right.frequency,
            {**left.meta, **right.meta},
        )
        self._edit("merge", left.id, right.id, merged)
        return merged

    def _edit(self, edit: str, *values) -> Any:
        with self.transaction():  # which may have given the knowledge base another store
            return getattr(self.entities, edit)(*values)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Several edits, of which all are kept or none."""
        self._own()
        with self.database.transaction():
            yield
            self.database.many(
                "UPDATE manifest SET value = value + ? WHERE key = 'generation'", [(1,)]
            )
        self.edits += 1
        if self.path is not None:
            folder.show_manifest(self.path, self.database)

    def _own(self) -> None:
        """Edits of what was opened for reading go to a copy."""
        if self.path is None or self._lock is not None:
            return
        target = None
        if (self.path / folder.DATABASE).stat().st_size > IN_MEMORY:
            handle, name = tempfile.mkstemp(suffix=".sqlite")
            os.close(handle)
            target = Path(name)
            weakref.finalize(self, target.unlink, missing_ok=True)
            target.unlink()
        database = self.database.copy(target)
        self.database.close()
        self.path, touched = None, self._touched
        self._take(database, self.rows)
        self._touched = touched

    def touch(self) -> None:
        """Have the next ``sync`` look at all texts again; those it knows are not encoded."""
        self._touched = True

    def ids_of(self, positions: np.ndarray) -> np.ndarray:
        """The ids of entities, in the shape of ``positions``; "" for -1."""
        wanted = np.unique(positions[positions >= 0])
        missing = [position for position in wanted.tolist() if position not in self._ids]
        if missing:
            self._ids.update(self.entities.ids_at(missing))
        names = [*(self._ids.get(position, "") for position in wanted.tolist()), ""]
        found = np.where(positions >= 0, np.searchsorted(wanted, positions), len(wanted))
        return np.array(names, dtype=object)[found]

    # Vectors

    @property
    def fingerprint(self) -> str:
        """Names the encoder that the vectors come from; "" where there are none."""
        return self.database.value("SELECT value FROM manifest WHERE key = 'encoder'") or ""

    @property
    def entity_vector_length(self) -> int:
        return self.rows.width

    @property
    def in_sync(self) -> bool:
        """Whether every entity has the vectors of its present texts."""
        return not self._touched and not self.database.rows("SELECT 1 FROM dirty LIMIT 1")

    def owners(self) -> np.ndarray:
        """(rows,) int64, the position of the entity that owns each row, -1 where none does."""
        owners = self.rows.owners.copy()
        for first, count in self.database.rows("SELECT first, count FROM dead"):
            owners[first : first + count] = -1
        return owners

    def distinct_texts(self, verbalize: Verbalization) -> DistinctTexts:
        """All texts, each once; only where the vectors are in sync."""
        return DistinctTexts.read(self.entities, verbalize, self.database)

    def renew(self) -> bool:
        """Take in what another program has written to the folder. RETURNS: Whether it has."""
        if self.path is None or self._lock is not None:
            return False
        if self.database.rows("PRAGMA data_version") == self._generation:
            return False
        self._take(self.database, self._map_rows(self.path))
        self.layout += 1
        return True

    def sync(self, verbalize: Verbalization, encode: encoding.Encode, fingerprint: str) -> int:
        """Encode what has changed since the last time.

        fingerprint: Names the encoder. Vectors of another encoder are all encoded again.
        RETURNS: The number of texts encoded.
        """
        # Where the encoder fails, what was there stays.
        if len(self.rows) and self.fingerprint != fingerprint:
            return self._encode_all(verbalize, encode, fingerprint)
        if self._touched and len(self):
            changed = encoding.find_changed(self.entities, verbalize)
            if changed:
                with self.transaction():
                    self.database.many(
                        "INSERT OR IGNORE INTO dirty VALUES (?)", ((p,) for p in changed)
                    )
        self._touched = False
        return self._encode_dirty(verbalize, encode, fingerprint)

    def _encode_dirty(self, verbalize, encode, fingerprint: str) -> int:
        count = 0
        while dirty := encoding.next_dirty(self.entities):
            encoder = encoding.Encoder(encode, self.rows, self.entities)
            try:
                part = encoding.encode_changed(self.entities, dirty, verbalize, encoder)
            except BaseException:
                self._touched = self._touched or not self.in_sync
                raise
            with self.transaction():
                self.entities.bury(part.positions.tolist())
                put = self._put(part)
                self.database.many("DELETE FROM dirty WHERE position = ?", [(p,) for p in dirty])
                self.database.set(encoder=fingerprint)
            put()
            count += encoder.count
        if self.fingerprint != fingerprint:
            with self.transaction():
                self.database.set(encoder=fingerprint)
        return count

    def _put(self, part: encoding.Encoded) -> Callable[[], None]:
        """Add rows within a transaction; the function given back takes them over after it."""
        vectors, owners = encoding.as_stored(part.vectors, self.rows.dtype), part.owners
        start = self.database.value("SELECT value FROM manifest WHERE key = 'rows'")
        encoding.store_layout(self.database, start, part)
        self.database.set(rows=start + len(owners), width=vectors.shape[1] or self.rows.width)
        self.layout += 1
        if not len(owners):
            return lambda: None
        if self.path is None:
            return lambda: self.rows.append(vectors, owners)
        files = self._row_files()
        if files is None:
            files = self._new_files(vectors.shape[1])
            self.database.set(files=files.number)
        files.write(start, vectors, owners)
        last = self.database.rows(
            "SELECT vectors, owners FROM block WHERE number = ?", (start // BLOCK,)
        )
        self.database.many(
            "INSERT OR REPLACE INTO block VALUES (?, ?, ?)",
            block_checksums(start, vectors, owners, last[0] if last else (0, 0)),
        )
        return lambda: setattr(self, "rows", files.map(start + len(owners)))

    def _encode_all(self, verbalize, encode, fingerprint: str) -> int:
        """Fresh vectors for everything, from another encoder."""
        new = VectorRows(dtype=self.rows.dtype)
        files = None if self.path is None or self._lock is None else self._row_files()
        number = files.number + 1 if files else 0
        encoder = encoding.Encoder(encode, new, None)
        parts, blocks = [], []
        target: Optional[RowFiles] = None
        for chunk in encoding.chunks(self.entities.items()):
            part = encoding.encode_chunk(chunk, verbalize, encoder)
            vectors = encoding.as_stored(part.vectors, new.dtype)
            start = len(new)
            if files:
                target = target or self._new_files(vectors.shape[1], number)
                target.write(start, vectors, part.owners)
                before = blocks[-1][1:] if blocks else (0, 0)
                blocks += block_checksums(start, vectors, part.owners, before)
                new = encoder.rows = target.map(start + len(part.owners))
            else:
                new.append(vectors, part.owners)
            parts.append(part)
        layout = encoding.joined(parts)
        with self.transaction():
            moved = encoding.replace_layout(self.database, layout)
            self.database.set(encoder=fingerprint, rows=len(new), width=new.width, index="")
            if files:
                self.database.set(files=number)
                self.database.many("INSERT OR REPLACE INTO block VALUES (?, ?, ?)", blocks)
        self.rows, self.index, self._touched = new, None, False
        self.layout += moved
        if files:
            files.remove()
        return encoder.count

    def keep_index(self, index: AttachedIndex) -> None:
        """Keep a search index over the rows beside them, in place of an older one."""
        if self.path is not None and self._lock is not None:
            old = json.loads(self.database.manifest()["index"] or "null")
            number = int(old["file"].split("-")[1].split(".")[0]) + 1 if old else 1
            path = self.path / f"index-{number}{index.about['suffix']}"
            index.write(path)
            with self.transaction():
                self.database.set(index=json.dumps(index.described(path)))
            if old:
                (self.path / old["file"]).unlink(missing_ok=True)
            index = AttachedIndex(index.about, path)
        self.index = index

    def _row_files(self) -> Optional[RowFiles]:
        return folder.row_files(self.path, self.database.manifest()) if self.path else None

    def _new_files(self, width: int, number: int = 1) -> RowFiles:
        assert self.path is not None
        manifest = self.database.manifest()
        return RowFiles(self.path, number, manifest["uuid"], width, self.rows.dtype).create()

    def get_vector(self, entity: str) -> np.ndarray:
        """(width,) float32, the vector of the entity's first text."""
        position = self.entities.require(entity)
        dirty = self.database.rows("SELECT 1 FROM dirty WHERE position = ?", (position,))
        row = self.database.value(
            "SELECT first FROM owned WHERE position = ? AND count", (position,)
        )
        if dirty or row is None:
            raise ValueError(Errors.E006.format(id=entity))
        return self.rows.take(np.array([row]))[0]

    def get_vectors(self, entities: Iterable[str]) -> List[np.ndarray]:
        return [self.get_vector(entity) for entity in entities]

    # Aliases, as spaCy's own knowledge base has them

    def get_candidates(self, mention: Span) -> List[Candidate]:
        """Entities with a name equal to the mention's text, whatever the case, in KB order."""
        return self.get_alias_candidates(mention.text)

    def get_candidates_batch(self, mentions: Iterable[Span]) -> List[List[Candidate]]:
        """``get_candidates`` of each mention."""
        found: Dict[str, List[Candidate]] = {}
        texts = [mention.text for mention in mentions]
        for text in dict.fromkeys(texts):
            found[text] = self.get_alias_candidates(text)
        return [found[text] for text in texts]

    def get_alias_candidates(self, alias: str) -> List[Candidate]:
        """Entities that have the alias. Prior probabilities are shares of their frequencies."""
        return self.candidates(self._priors(alias), alias)

    def candidates(self, found: Sequence[Tuple[int, float]], alias: str) -> List[Candidate]:
        """Entities, by position and prior probability, as spaCy's candidates for an alias.

        An entity whose vector is not up to date has an empty one.
        """
        entities = self.entities.at_all([position for position, _ in found])
        strings = self.vocab.strings
        return [
            Candidate(
                kb=self,
                entity_hash=strings.add(entities[position].id),
                entity_freq=entities[position].frequency,
                entity_vector=self._vector_if_any(entities[position].id),
                alias_hash=strings.add(alias),
                prior_prob=prior,
            )
            for position, prior in found
        ]

    def _vector_if_any(self, entity_id: str) -> Sequence[float]:
        try:
            return self.get_vector(entity_id).tolist()
        except ValueError:
            return []

    def _priors(self, alias: str) -> List[Tuple[int, float]]:
        entities = self.entities.at_all(self.entities.named(alias.casefold()))
        total = sum(entity.frequency for entity in entities.values())
        share = 1.0 / max(len(entities), 1)
        return [(p, e.frequency / total if total else share) for p, e in sorted(entities.items())]

    def get_prior_prob(self, entity: str, alias: str) -> float:
        return dict(self._priors(alias)).get(self.entities.position(entity), 0.0)

    def contains_entity(self, entity: str) -> bool:
        return entity in self.entities

    def contains_alias(self, alias: str) -> bool:
        return bool(self.entities.named(alias.casefold()))

    def get_entity_strings(self) -> List[str]:
        return [entity.id for entity in self.entities]

    def get_alias_strings(self) -> List[str]:
        return list(dict.fromkeys(name for entity in self.entities for name in entity.names))

    def get_size_entities(self) -> int:
        return len(self.entities)

    def get_size_aliases(self) -> int:
        return self.entities.count_names()

    # Serialisation

    def to_disk(self, path: Union[str, Path], exclude: Iterable[str] = SimpleFrozenList()) -> None:
        """Write the folder ``path``; an older one is replaced in one step."""
        path = Path(path)
        if self._lock is not None and self.path and path.exists() and path.samefile(self.path):
            return  # Every change is there already.
        write(self.database, self.rows, self.index, path)

    def from_disk(
        self, path: Union[str, Path], exclude: Iterable[str] = SimpleFrozenList()
    ) -> "ArboKB":
        """Open a folder that ``to_disk`` wrote, for reading. Changes stay in memory."""
        self.close()
        return self._read_folder(Path(path), writable=False)

    def _read_folder(self, path: Path, *, writable: bool) -> "ArboKB":
        database = folder.open_database(path, writable=writable)
        self.database.close()
        self.database, self.path = database, path
        self._take(database, self._map_rows(path))
        index = json.loads(database.manifest().get("index") or "null")
        self.index = AttachedIndex(index, path / index["file"]) if index else None
        self.layout += 1
        return self

    def _map_rows(self, path: Path) -> VectorRows:
        manifest = self.database.manifest()
        files = folder.row_files(path, manifest)
        return files.map(manifest["rows"]) if files else VectorRows(dtype=manifest["dtype"])

    def to_bytes(self, **kwargs) -> bytes:
        return dump(self.database, self.rows)

    def from_bytes(
        self, bytes_data: bytes, *, exclude: Iterable[str] = SimpleFrozenList()
    ) -> "ArboKB":
        database, rows = restore(bytes_data)
        self.close()
        self.path, self.index = None, None
        self._take(database, rows)
        self.layout += 1
        return self


def _stream(entities: Entities) -> Iterable[Entity]:
    return [entities] if isinstance(entities, Entity) else entities
