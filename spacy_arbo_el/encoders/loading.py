"""Sources of transformers: bundled, a folder, or Hugging Face."""

import contextlib
from pathlib import Path

import huggingface_hub
import torch
from huggingface_hub import constants
from safetensors import SafetensorError
from thinc.util import get_torch_default_device
from transformers import AutoConfig, AutoTokenizer, PreTrainedTokenizerBase

from ..base.bundled import resolve_name
from ..base.errors import Errors, code_of
from ..base.memory import release_mapped
from .serialization import class_of
from .word_pieces import MARKERS

# Seconds to wait for the hub, before a name is looked up there, with many tries.
HUB_TIMEOUT = 5.0


def from_hub(name: str) -> str:
    """Choose what ``from_pretrained`` loads for a hub name. It does not wait for an answer that
    cannot come.

    Where the hub does not answer, it is the folder of an earlier download. Raises ValueError if
    there is none.
    """
    if constants.HF_HUB_OFFLINE:
        return name
    # Of requests or httpx, by the client's version.
    with contextlib.suppress(Exception):
        huggingface_hub.utils.get_session().head(
            constants.ENDPOINT, timeout=HUB_TIMEOUT
        )
        return name
    config = huggingface_hub.try_to_load_from_cache(name, "config.json")
    if isinstance(config, str):
        return str(Path(config).parent)
    problem = "there is no such folder, and the Hugging Face hub does not answer"
    raise Errors.E201(name=name, problem=problem)


def load_pretrained(
    name: str, attention: str | None
) -> tuple[PreTrainedTokenizerBase, torch.nn.Module]:
    """A tokenizer and a transformer, with the marker tokens added.

    A new marker starts as the mean of all word-piece vectors, the same on every machine.

    attention: The implementation of attention, such as "eager"; None for the architecture's own.
    """
    source = resolve_name(name)
    is_folder = Path(source).exists()
    if is_folder and not (Path(source) / "config.json").exists():
        raise Errors.E201(name=name, problem="the folder has no config.json")
    try:
        if not is_folder:
            source = from_hub(source)
        # spacy-transformers' function reads the file of a slow tokenizer too, which a folder with
        # tokenizer.json alone does not have.
        tokenizer = AutoTokenizer.from_pretrained(source, use_fast=True)
        config = AutoConfig.from_pretrained(
            source, attn_implementation=attention, return_dict=True
        )
        transformer = class_of(config).from_pretrained(source, config=config)
    except (KeyError, OSError, ValueError, SafetensorError) as error:
        if code_of(error):
            raise
        problem = str(error).splitlines()[0]
        raise Errors.E201(name=name, problem=problem) from None
    transformer.to(get_torch_default_device())
    size = len(tokenizer)
    tokenizer.add_special_tokens({"additional_special_tokens": list(MARKERS)})
    if len(tokenizer) > size:
        read = transformer.get_input_embeddings().weight.data
        resized = transformer.resize_token_embeddings(
            len(tokenizer), mean_resizing=False
        )
        # The vectors were copied.
        release_weights(read)
        weights = resized.weight.data
        # Computed on the CPU: all devices have one fingerprint.
        weights[size:] = weights[:size].cpu().double().mean(0)
    return tokenizer, transformer


def release_weights(weights: torch.Tensor) -> None:
    """Return weights that are not read any more to the file that they were mapped from.

    Those that are on a GPU, or that were changed since, stay.
    """
    if weights.device.type == "cpu":
        release_mapped(weights.data_ptr(), weights.nbytes)
