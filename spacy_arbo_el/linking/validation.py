"""Validate untrusted serialized state."""

import gc
import warnings
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Iterator, List, Tuple

import numpy as np
from thinc.api import Model

from ..encoders.dual import TOWERS
from ..encoders.inputs import SpanInputs
from ..encoders.validation import check_inputs
from ..errors import ArboError, Errors, Warnings, code_of
from ..kb.vectors import check_vectors
from ..mentions.validation import check_key, check_records
from ..retrieval.exemplars import ExemplarStore
from .corrections import Corrections

if TYPE_CHECKING:
    from ..encoders.shim import EncoderShim


@contextmanager
def reading_part(name: str, part: str) -> Iterator[None]:
    """Convert errors of damaged bytes to one ValueError.

    name: What the linker is called.
    part: The part.
    """
    collects_garbage = gc.isenabled()
    try:
        yield
    # What msgpack, NumPy, thinc and transformers raise has no common base class.
    except Exception as error:
        if isinstance(error, ValueError) and code_of(error):
            raise
        problem = f"{type(error).__name__}: {error}"
        raise ArboError(Errors.E058.format(part=part, name=name, problem=problem)) from error
    finally:
        # srsly turns it off to unpack, and leaves it off where that fails.
        if collects_garbage:
            gc.enable()


def check_towers(model: Model, refs: Any) -> None:
    """Raise ValueError if model and config differ in structure.

    refs: The towers before the weights were read.
    """
    for tower in TOWERS:
        node = model.get_ref(tower)
        if node is not refs[tower]:
            raise ValueError(f"{tower} leads to another layer")
        for layer, shim in _loaded_shims(node):
            from ..encoders.pooling import pooled_width

            width = layer.get_dim("nO") if layer.has_dim("nO") else None
            found = pooled_width(layer.attrs.get("pooling"), shim.width)
            if width not in (None, found):
                raise ValueError(f"{tower} has vectors {found} wide and not {width}")


def check_exemplars(store: ExemplarStore, model: Model) -> None:
    """ValueError where exemplars can't be searched or encoded."""
    check_records(store.records)
    if len({record.key for record in store.records}) < len(store):
        raise ValueError("a mention is stored twice")
    check_inputs(store.inputs)
    check_word_pieces(store.inputs, model)
    if not isinstance(store.fingerprint, str):
        raise ValueError("the fingerprint of the encoder is no text")
    if store.vectors.dtype != np.float32:
        raise ValueError("the vectors are not of type float32")
    if len(store):
        check_vectors(store.vectors, len(store))


def check_word_pieces(inputs: SpanInputs, model: Model) -> None:
    """Raise ValueError if the mention encoder lacks word pieces."""
    largest = int(inputs.ids.max(initial=-1))
    shims = _loaded_shims(model.get_ref("mention"))
    if any(largest >= shim.vocabulary_size for _, shim in shims):
        raise ValueError("a word piece has a number that the encoder does not know")


def _loaded_shims(tower: Model) -> "List[Tuple[Model, EncoderShim]]":
    """Loaded shims of a tower, each with its layer."""
    if not any(layer.shims for layer in tower.walk()):
        return []
    # Only transformers have shims, and only they need torch.
    from ..encoders.shim import EncoderShim

    return [
        (layer, shim)
        for layer in tower.walk()
        for shim in layer.shims
        if isinstance(shim, EncoderShim) and shim.is_loaded
    ]


def check_corrections(corrections: Corrections) -> None:
    """Raise ValueError for a correction field of wrong type."""
    for key, correction in corrections.items.items():
        check_key(key)
        texts = [correction.kb_id or "", *correction.rejected, *(correction.before or ())]
        if not all(isinstance(text, str) for text in texts):
            raise ValueError(f"a correction has something else than texts: {correction!r:.80}")


def drop_orphans(corrections: Corrections, store: ExemplarStore, name: str) -> None:
    """Drop corrections of unstored mentions, with a warning.

    name: What the linker is called.
    """
    orphans = [key for key in corrections.items if store.row(key) < 0]
    for key in orphans:
        del corrections.items[key]
    if orphans:
        warnings.warn(Warnings.W515.format(count=len(orphans), name=name))
