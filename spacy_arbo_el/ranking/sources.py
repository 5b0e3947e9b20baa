"""What a ranking reads beside the mentions: the strings of entities, and their descriptions."""

from collections.abc import Callable, Hashable
from contextlib import AbstractContextManager
from typing import Any, Protocol

import numpy as np

from ..encoders.dual import DualEncoder
from ..kb.knowledge_base import ArboKB
from ..kb.vector_cache import VectorCache
from ..mentions.normalization.text import Normalizer
from ..mentions.record import MentionBatch
from ..retrieval.exemplars import ExemplarStore
from ..retrieval.neighbours import AllowedEntities
from ..retrieval.retriever import Retriever
from ..retrieval.settings import RetrieverSettings


class StringSource(Protocol):
    """Entities and exemplars with names and surface forms."""

    kb: ArboKB
    exemplars: ExemplarStore
    normalizer: Normalizer | None

    def derived(self, name: Hashable, build: Callable, update: Callable) -> Any:
        """A cached value of entities and exemplars."""
        ...


class SearchedEntities(StringSource, Protocol):
    """Entities and exemplars in the state that a ranking sees, with vectors."""

    encoder: DualEncoder
    settings: RetrieverSettings

    def vector_cache(self, kind: str, keys: np.ndarray) -> VectorCache:
        """Vectors of further texts by the encoder, such as descriptions."""
        ...

    def allowed_entities(self, batch: MentionBatch) -> AllowedEntities | None:
        """Entities that each mention may be linked to."""
        ...

    def reading(self) -> AbstractContextManager[Retriever]:
        """The search over them, for a fit that looks again."""
        ...
