"""The knowledge base: entities, their texts, the vectors of these, on disk and in memory."""

from collections import defaultdict
from contextlib import contextmanager
from pathlib import Path
from typing import Callable, Dict, Iterable, Iterator, List, Optional, Union
from zipfile import BadZipFile

import numpy as np
import srsly
from spacy.kb import Candidate, KnowledgeBase
from spacy.tokens import Span
from spacy.util import SimpleFrozenList
from spacy.vocab import Vocab

from ..errors import Errors
from ..io import pack_arrays, read_folder, unpack_arrays, write_folder
from .entity import Entity
from .store import MemoryStore
from .vectors import Encode, TextVectors
from .verbalizations import Verbalization

FORMAT = "spacy-arbo-el.kb"
VERSION = 1


class ArboKB(KnowledgeBase):
    """A spaCy knowledge base whose vectors come from an encoder.

    Entities are added, updated and removed at any time; ``sync`` then encodes the texts that
    are new, and only these. The linker that owns the knowledge base calls it before it links.

    What spaCy's users know works as they expect: ``get_candidates`` finds entities by alias
    (whatever the case), ``get_vector`` gives the vector of an entity's first text.

    vocab: The pipeline's vocabulary.
    entities: Entities to begin with.
    """

    def __init__(self, vocab: Vocab, entities: Iterable[Entity] = ()):
        super().__init__(vocab, 0)
        self.entities = MemoryStore(entities)
        self.rows = TextVectors()
        self.fingerprint = ""
        self._dirty = len(self.entities) > 0
        self._aliases: Optional[Dict[str, List[int]]] = None
        self._ids: Optional[np.ndarray] = None

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
        """The entity of that id; KeyError where there is none."""
        return self.entities.get(entity_id)

    def add(self, entity: Entity) -> None:
        """Add an entity; ValueError where its id is taken."""
        self.entities.add(entity)
        self._changed()

    def update(self, entity: Entity) -> None:
        """Put an entity in the place of the one with the same id; KeyError where there is none."""
        self.entities.update(entity)
        self._changed()

    def remove(self, entity_id: str) -> None:
        """Take an entity out; KeyError where there is none."""
        self.entities.remove(entity_id)
        self._changed()

    def _changed(self) -> None:
        self._dirty = True
        self._aliases = self._ids = None

    def touch(self) -> None:
        """Have the next ``sync`` look at all texts again; those it knows are not encoded."""
        self._dirty = True

    @property
    def ids(self) -> np.ndarray:
        """(entities,) object, the ids in the order of the KB."""
        if self._ids is None:
            self._ids = np.array([entity.id for entity in self.entities], dtype=object)
        return self._ids

    # Vectors

    @property
    def entity_vector_length(self) -> int:
        return int(self.rows.vectors.shape[1])

    @property
    def in_sync(self) -> bool:
        """Whether every entity has the vectors of its present texts."""
        return not self._dirty

    def sync(self, verbalize: Verbalization, encode: Encode, fingerprint: str) -> int:
        """Encode what has changed since the last time.

        fingerprint: Names the encoder. Vectors of another encoder are all encoded again.
        RETURNS: The number of texts encoded.
        """
        # Where the encoder fails, what was there stays.
        rows = self.rows if self.fingerprint == fingerprint else TextVectors()
        count = rows.rebuild((verbalize(entity) for entity in self.entities), encode)
        self.rows, self.fingerprint = rows, fingerprint
        self._dirty = False
        return count

    def get_vector(self, entity: str) -> np.ndarray:
        """(width,) float32, the vector of the entity's first text."""
        position = self.entities.position(entity)
        if position < 0:
            raise KeyError(Errors.E003.format(id=entity))
        if not self.in_sync:
            raise ValueError(Errors.E006.format(id=entity))
        return self.rows.of_entity(position)[0]

    # Aliases, as spaCy's own knowledge base has them

    def get_candidates(self, mention: Span) -> List[Candidate]:
        """Entities with a name equal to the mention's text, whatever the case, in KB order."""
        return self.get_alias_candidates(mention.text)

    def get_alias_candidates(self, alias: str) -> List[Candidate]:
        """Entities that have the alias, equally likely a priori."""
        positions = self._alias_index().get(alias.casefold(), [])
        strings = self.vocab.strings
        return [
            Candidate(
                kb=self,
                entity_hash=strings.add(self.entities.at(position).id),
                entity_freq=0.0,
                entity_vector=self.get_vector(self.entities.at(position).id),
                alias_hash=strings.add(alias),
                prior_prob=1.0 / len(positions),
            )
            for position in positions
        ]

    def get_prior_prob(self, entity: str, alias: str) -> float:
        positions = self._alias_index().get(alias.casefold(), [])
        return 1.0 / len(positions) if self.entities.position(entity) in positions else 0.0

    def contains_entity(self, entity: str) -> bool:
        return entity in self.entities

    def contains_alias(self, alias: str) -> bool:
        return alias.casefold() in self._alias_index()

    def get_entity_strings(self) -> List[str]:
        return [entity.id for entity in self.entities]

    def get_alias_strings(self) -> List[str]:
        return list(dict.fromkeys(name for entity in self.entities for name in entity.names))

    def get_size_entities(self) -> int:
        return len(self.entities)

    def get_size_aliases(self) -> int:
        return len(self.get_alias_strings())

    def _alias_index(self) -> Dict[str, List[int]]:
        if self._aliases is None:
            index: Dict[str, List[int]] = defaultdict(list)
            for position, entity in enumerate(self.entities):
                for name in dict.fromkeys(name.casefold() for name in entity.names):
                    index[name].append(position)
            self._aliases = dict(index)
        return self._aliases

    # Serialisation

    def _files(self) -> Dict[str, Callable[[], bytes]]:
        return {
            "manifest.json": lambda: srsly.json_dumps(self._manifest(), indent=2).encode("utf8"),
            "entities.jsonl": lambda: b"".join(
                srsly.json_dumps(entity.to_dict()).encode("utf8") + b"\n" for entity in self
            ),
            "texts.msgpack": lambda: srsly.msgpack_dumps([list(text) for text in self.rows.texts]),
            "vectors.npz": lambda: pack_arrays(
                {
                    "vectors": self.rows.vectors,
                    "entity_offsets": self.rows.entity_offsets,
                    "entity_rows": self.rows.entity_rows,
                }
            ),
        }

    def _manifest(self) -> Dict[str, Union[str, int, bool]]:
        return {
            "format": FORMAT,
            "version": VERSION,
            "encoder": self.fingerprint,
            "entities": len(self),
            "texts": len(self.rows),
            "width": self.entity_vector_length,
            "in_sync": self.in_sync,
        }

    def _load(self, files: Dict[str, bytes], where: str) -> "ArboKB":
        with _reading(where):
            manifest = dict(srsly.json_loads(files["manifest.json"]))
        if manifest.get("format") != FORMAT or manifest.get("version", 0) > VERSION:
            raise ValueError(Errors.E008.format(where=where, found=manifest.get("version")))
        with _reading(where):
            lines = files["entities.jsonl"].splitlines()
            entities = MemoryStore(Entity(**srsly.json_loads(line)) for line in lines)
            arrays = unpack_arrays(files["vectors.npz"])
            rows = TextVectors()
            texts = srsly.msgpack_loads(files["texts.msgpack"])
            rows.texts = [(title, rest) for title, rest in texts]
            rows.vectors = arrays["vectors"]
            bounds, flat = arrays["entity_offsets"], arrays["entity_rows"].tolist()
            rows._set_links([flat[a:b] for a, b in zip(bounds[:-1], bounds[1:])])
        counts = (len(entities), len(rows.texts), len(rows.vectors))
        fits = len(bounds) == len(entities) + 1 or not manifest["in_sync"]
        fits &= max(flat, default=-1) < len(rows.texts)
        if not fits or counts != (manifest["entities"], manifest["texts"], manifest["texts"]):
            raise ValueError(Errors.E009.format(where=where, manifest=manifest, counts=counts))
        self.entities, self.rows = entities, rows
        self.fingerprint = manifest["encoder"]
        self._dirty = not manifest["in_sync"]
        self._aliases = self._ids = None
        return self

    def to_disk(self, path: Union[str, Path], exclude: Iterable[str] = SimpleFrozenList()) -> None:
        """Write the folder ``path``; an older one is replaced in one step."""
        write_folder(Path(path), {k: v for k, v in self._files().items() if k not in exclude})

    def from_disk(
        self, path: Union[str, Path], exclude: Iterable[str] = SimpleFrozenList()
    ) -> "ArboKB":
        """Read a folder that ``to_disk`` wrote."""
        return self._load(read_folder(Path(path), list(self._files())), str(path))

    def to_bytes(self, **kwargs) -> bytes:
        return srsly.msgpack_dumps({name: make() for name, make in self._files().items()})

    def from_bytes(
        self, bytes_data: bytes, *, exclude: Iterable[str] = SimpleFrozenList()
    ) -> "ArboKB":
        where = "the bytes given"
        with _reading(where):
            files = dict(srsly.msgpack_loads(bytes_data))
        return self._load(files, where)


@contextmanager
def _reading(where: str) -> Iterator[None]:
    """Say where it was that something could not be read."""
    try:
        yield
    except (ValueError, KeyError, TypeError, EOFError, BadZipFile) as error:
        raise ValueError(Errors.E013.format(where=where, problem=error)) from error
