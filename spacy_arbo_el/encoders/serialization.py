"""A transformer and its tokenizer as bytes, and back. The bytes need not be trusted.

Nothing is unpickled, no code that comes with a model runs, and no file is written but those that a
tokenizer is made of, in a temporary folder.
"""

import json
import tempfile
import threading
from collections.abc import Mapping
from itertools import count
from pathlib import Path
from typing import Any

import safetensors.torch
import srsly
import torch
from torch.nn.modules.module import register_module_parameter_registration_hook
from transformers import (
    CONFIG_MAPPING,
    AutoModel,
    AutoTokenizer,
    PretrainedConfig,
    PreTrainedTokenizerBase,
)

from ..base.errors import ArboError, Errors
from .quantized import Scales

# The files that fast tokenizers are made of. Not among them: vocab.pkl, which is unpickled.
_FILES = """
added_tokens.json bpe.codes emoji.json merges.txt normalizer.json prophetnet.tokenizer
sentencepiece.bpe.model sentencepiece.model special_tokens_map.json spiece.model spm.model
tokenizer.json tokenizer.model tokenizer_config.json vocab.json vocab.txt
"""
TOKENIZER_FILES = frozenset(_FILES.split())
# A model may share weights between layers: by so much it may be larger than its weights.
SLACK = 16
_LARGER = "the configuration is of a larger model"
# Settings of a tokenizer that name code or files elsewhere.
_ELSEWHERE = ("auto_map", "custom_pipelines", "name_or_path", "_name_or_path")


def dump_transformer(
    tokenizer: PreTrainedTokenizerBase,
    transformer: torch.nn.Module,
    scales: Scales | None = None,
    earlier: Scales | None = None,
) -> bytes:
    """All as bytes. scales, earlier: As in ``EncoderShim.set_transformer``."""
    with tempfile.TemporaryDirectory() as folder:
        tokenizer.save_pretrained(folder)
        files = {
            path.name: path.read_bytes()
            for path in sorted(Path(folder).iterdir())
            if path.name in TOKENIZER_FILES
        }
    # Tied weights share memory, which safetensors refuses: each gets its own copy.
    state = {k: v.detach().cpu().clone() for k, v in transformer.state_dict().items()}
    config: Any = transformer.config
    message = {
        "config": config.to_dict(),
        "tokenizer": files,
        "state": safetensors.torch.save(state),
    }
    for key, tensors in (("scales", scales), ("earlier", earlier)):
        if tensors is not None:
            message[key] = safetensors.torch.save(dict(tensors))
    return srsly.msgpack_dumps(message)


def load_transformer(
    message: Mapping[str, Any], attention: str | None
) -> tuple[PreTrainedTokenizerBase, torch.nn.Module, Scales | None, Scales | None]:
    """Unpack what ``dump_transformer`` was given. ValueError where it is anything else."""
    config = _read_config(message["config"])
    try:
        state = safetensors.torch.load(message["state"])
        scales, earlier = (
            safetensors.torch.load(message[key]) if key in message else None
            for key in ("scales", "earlier")
        )
    except (safetensors.SafetensorError, TypeError, ValueError) as error:
        raise ArboError(Errors.E202.format(problem=error)) from None
    _check_size(config, state)
    tokenizer = _read_tokenizer(message["tokenizer"], config)
    transformer = AutoModel.from_config(
        config, attn_implementation=attention, trust_remote_code=False
    )
    try:
        transformer.load_state_dict(state)
    except RuntimeError as error:
        raise ArboError(Errors.E202.format(problem=error)) from None
    return tokenizer, transformer, scales, earlier


def _read_config(values: Any) -> PretrainedConfig:
    kind = values.get("model_type") if isinstance(values, dict) else None
    if not isinstance(kind, str) or kind not in CONFIG_MAPPING:
        raise ArboError(Errors.E060.format(problem=f"its model_type is {kind!r:.40}"))
    plain = {name: value for name, value in values.items() if name not in _ELSEWHERE}
    # What an architecture with quantized weights would import is not ours to choose.
    plain.pop("quantization_config", None)
    try:
        return CONFIG_MAPPING[kind].from_dict(plain)
    except Exception as error:  # each architecture checks its settings in its own way
        raise ArboError(Errors.E060.format(problem=f"its config is invalid: {error}")) from None


def _check_size(config: PretrainedConfig, state: Mapping[str, torch.Tensor]) -> None:
    """Raise ValueError for a config of another model than that of the weights.

    The model is built without memory for its weights. That ends as soon as it has many more.
    """
    _check_tables(config, SLACK * (sum(tensor.numel() for tensor in state.values()) + 1))
    numbers = count(1)
    thread = threading.get_ident()

    def check(*registered: Any) -> None:
        if threading.get_ident() == thread and next(numbers) > SLACK * (len(state) + 1):
            raise ArboError(Errors.E202.format(problem=_LARGER))

    handle = register_module_parameter_registration_hook(check)
    try:
        with torch.device("meta"):
            model = AutoModel.from_config(config, trust_remote_code=False)
    finally:
        handle.remove()
    for name, weight in model.state_dict().items():
        if name not in state or state[name].shape != weight.shape:
            raise ArboError(Errors.E202.format(problem=f"{name} has another shape, or is missing"))


def _check_tables(config: PretrainedConfig, limit: int) -> None:
    """Raise ValueError for large tables, some of which take memory before they are weights."""
    names = ("vocab_size", "max_position_embeddings", "intermediate_size", "hidden_size")
    rows = max(getattr(config, name, 0) or 0 for name in names)
    width = getattr(config, "embedding_size", 0) or getattr(config, "hidden_size", 0) or 0
    if rows * width > limit:
        raise ArboError(Errors.E202.format(problem=_LARGER))
    for part in vars(config).values():
        if isinstance(part, PretrainedConfig):
            _check_tables(part, limit)


def _read_tokenizer(
    files: Mapping[str, bytes], config: PretrainedConfig
) -> PreTrainedTokenizerBase:
    for name in files:
        if name not in TOKENIZER_FILES:
            raise ArboError(Errors.E059.format(name=name))
    with tempfile.TemporaryDirectory() as folder:
        for name, data in files.items():
            data = _without_elsewhere(data) if name == "tokenizer_config.json" else data
            Path(folder, name).write_bytes(data)
        try:
            return AutoTokenizer.from_pretrained(
                folder, config=config, use_fast=True, trust_remote_code=False, local_files_only=True
            )
        except Exception as error:  # so many kinds of tokenizers, so many errors
            raise ArboError(Errors.E060.format(problem=f"its tokenizer: {error}")) from None


def _without_elsewhere(data: bytes) -> bytes:
    settings: dict[str, Any] = json.loads(data)
    kept = {
        name: value
        for name, value in settings.items()
        if name not in _ELSEWHERE and not name.endswith("_file")
    }
    return json.dumps(kept).encode("utf8")
