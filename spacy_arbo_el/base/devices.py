"""The device of searches and of spaCy's vectors."""

from contextlib import AbstractContextManager

from spacy.vocab import Vocab
from thinc.api import get_torch_default_device, use_ops
from thinc.backends import get_array_ops


def on_gpu() -> bool:
    return get_torch_default_device().type == "cuda"


def device_of_vectors(vocab: Vocab) -> AbstractContextManager:
    """Makes thinc's device that of a vocabulary's vectors, through which spaCy saves them.

    A thread has the CPU, whatever device its program has chosen, and could not save those of a GPU.
    """
    return use_ops(get_array_ops(vocab.vectors.data).name)
