"""Sources of transformers: bundled, a folder, or Hugging Face."""

from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from thinc.util import get_torch_default_device
from transformers import (
    MODEL_MAPPING,
    AutoConfig,
    AutoModel,
    AutoTokenizer,
    PretrainedConfig,
    PreTrainedTokenizerBase,
)

from ..base.errors import ArboError, Errors
from ..base.memory import release_mapped
from .sources import resolve_name
from .word_pieces import MARKERS


def load_pretrained(
    name: str, attention: str | None
) -> tuple[PreTrainedTokenizerBase, torch.nn.Module]:
    """A tokenizer and a transformer, with the marker tokens added.

    A new marker starts as the mean of all word-piece vectors, the same on every machine.

    attention: The implementation of attention, such as "eager"; None for the architecture's own.
    """
    source = resolve_name(name)
    if Path(source).exists() and not (Path(source) / "config.json").exists():
        raise ArboError(Errors.E201.format(name=name, problem="the folder has no config.json"))
    try:
        # spacy-transformers' function reads the file of a slow tokenizer too, which a folder with
        # tokenizer.json alone does not have.
        tokenizer = AutoTokenizer.from_pretrained(source, use_fast=True)
        config = AutoConfig.from_pretrained(source, attn_implementation=attention, return_dict=True)
        transformer = _model_class(config).from_pretrained(source, config=config)
    except (OSError, ValueError, SafetensorError) as error:
        problem = str(error).splitlines()[0]
        raise ArboError(Errors.E201.format(name=name, problem=problem)) from None
    transformer.to(get_torch_default_device())
    size = len(tokenizer)
    tokenizer.add_special_tokens({"additional_special_tokens": list(MARKERS)})
    if len(tokenizer) > size:
        read = transformer.get_input_embeddings().weight.data
        transformer.resize_token_embeddings(len(tokenizer), mean_resizing=False)
        # The vectors were copied.
        release_weights(read)
        weights = transformer.get_input_embeddings().weight.data
        # Computed on the CPU: all devices have one fingerprint.
        weights[size:] = weights[:size].cpu().double().mean(0)
    return tokenizer, transformer


def _model_class(config: PretrainedConfig) -> Any:
    """The class for a configuration."""
    # AutoModel looks for it among all classes, for whose configurations it imports each model.
    found = MODEL_MAPPING.get(type(config), AutoModel)
    return AutoModel if isinstance(found, tuple) else found


def release_weights(weights: torch.Tensor) -> None:
    """Return unread and unchanged weights on a CPU to the file that they were mapped from."""
    if weights.device.type == "cpu":
        release_mapped(weights.data_ptr(), weights.nbytes)
