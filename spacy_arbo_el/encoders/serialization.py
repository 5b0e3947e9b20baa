"""A transformer and its tokenizer as bytes, and back. The bytes need not be trusted.

Nothing is unpickled, no code that comes with a model runs, and no file is written but those that a
tokenizer is made of, in a temporary folder.
"""

import json
import tempfile
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.torch
import srsly
import torch
from torch.nn.modules.module import register_module_parameter_registration_hook
from transformers import (
    MODEL_MAPPING,
    AutoConfig,
    AutoTokenizer,
    PretrainedConfig,
    PreTrainedTokenizerBase,
)
from transformers.modeling_utils import no_init_weights
from transformers.models.auto.auto_factory import _get_model_class

from ..base.errors import Errors
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
# Settings of a model or a tokenizer that name code or files elsewhere, among them what an
# architecture with quantized weights would import; and labels, of which an encoder has none.
_UNUSED = frozenset(
    [
        "auto_map",
        "custom_pipelines",
        "name_or_path",
        "_name_or_path",
        "quantization_config",
        "num_labels",
        "id2label",
        "label2id",
    ]
)
# Configurations make lists as long as some of their numbers, before there is a model. These are
# no lengths, and above it.
LONGEST = 2**20
_NO_LENGTHS = ("model_max_length", "theta", "base")


def dump_transformer(
    tokenizer: PreTrainedTokenizerBase,
    transformer: torch.nn.Module,
    scales: Scales | None,
    earlier: Scales | None,
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
    state = {k: v.cpu().clone() for k, v in transformer.state_dict().items()}
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
        state = _read_state(message["state"])
        scales, earlier = (
            safetensors.torch.load(message[key]) if key in message else None
            for key in ("scales", "earlier")
        )
    except (safetensors.SafetensorError, TypeError, ValueError) as error:
        raise Errors.E202(problem=error) from None
    _check_size(config, state)
    tokenizer = _read_tokenizer(message["tokenizer"], config)
    with no_init_weights():
        transformer = class_of(config)._from_config(
            config, attn_implementation=attention
        )
    transformer.load_state_dict(state, assign=True)
    transformer.tie_weights()
    return tokenizer, transformer, scales, earlier


def _read_state(data: bytes) -> dict[str, torch.Tensor]:
    """Weights, mapped from a file if possible: memory then holds those that are read."""
    try:
        # Windows does not delete a mapped file.
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            path = Path(folder, "state")
            path.write_bytes(data)
            state = safetensors.torch.load_file(path)
            # Reading a bias would bring weights beside it back, which are not read.
            return {k: v.clone() if v.ndim == 1 else v for k, v in state.items()}
    except OSError:
        return safetensors.torch.load(data)


def _read_config(values: Any) -> PretrainedConfig:
    plain = _without_unused(values)
    try:
        config = AutoConfig.for_model(**plain)
        class_of(config)
    except Exception as error:  # each architecture checks its settings in its own way
        raise Errors.E060(problem=f"its config is invalid: {error!s:.200}") from None
    return config


def class_of(config: PretrainedConfig) -> Any:
    """The class of a configuration's model, which AutoModel seeks by importing all others."""
    return _get_model_class(config, MODEL_MAPPING)


def _check_size(config: PretrainedConfig, state: Mapping[str, torch.Tensor]) -> None:
    """Raise ValueError for a config of another model than that of the weights.

    The model is built without memory for its weights. That ends where they get many more or much
    larger, before a table is computed for one.
    """
    thread = threading.get_ident()
    room = (
        np.array([len(state) + 1, sum(map(torch.numel, state.values())) + 1]) * SLACK
    )

    def check(module: Any, name: str, weight: torch.Tensor | None) -> None:
        if weight is None or threading.get_ident() != thread:
            return
        room[:] -= 1, weight.numel()
        if room.min() < 0:
            raise Errors.E202(problem="the configuration is of a larger model")

    handle = register_module_parameter_registration_hook(check)
    try:
        with torch.device("meta"), no_init_weights():
            model = class_of(config)._from_config(config)
    finally:
        handle.remove()
    saved, built = (
        {(name, weight.shape) for name, weight in weights.items()}
        for weights in (state, model.state_dict())
    )
    if saved != built:
        raise Errors.E202(
            problem=f"{min(saved ^ built)[0]} has another shape, or is missing"
        )


def _read_tokenizer(
    files: Mapping[str, bytes], config: PretrainedConfig
) -> PreTrainedTokenizerBase:
    with tempfile.TemporaryDirectory() as folder:
        for name, data in files.items():
            if name not in TOKENIZER_FILES:
                raise Errors.E059(name=name)
            if name == "tokenizer_config.json":
                data = json.dumps(_without_unused(json.loads(data))).encode("utf8")
            Path(folder, name).write_bytes(data)
        try:
            return AutoTokenizer.from_pretrained(
                folder,
                config=config,
                use_fast=True,
                trust_remote_code=False,
                local_files_only=True,
            )
        except Exception as error:  # so many kinds of tokenizers, so many errors
            raise Errors.E060(problem=f"its tokenizer: {error}") from None


def _without_unused(settings: Any, name: str = "") -> Any:
    """Settings without what leads elsewhere; ValueError for a number that takes much memory."""
    if isinstance(settings, dict):
        return {
            key: _without_unused(value, str(key))
            for key, value in settings.items()
            if key not in _UNUSED and not str(key).endswith("_file")
        }
    if isinstance(settings, list):
        return [_without_unused(value, name) for value in settings]
    if (
        isinstance(settings, int)
        and settings > LONGEST
        and not name.endswith(_NO_LENGTHS)
    ):
        raise Errors.E060(problem=f"{name} is {settings:,}")
    return settings
