"""The Hugging Face model inside a thinc model: precision, memory and safe serialisation."""

from contextlib import contextmanager
from typing import Any, Callable, Dict, Iterator, Tuple, cast

import safetensors.torch
import srsly
import torch
from spacy_transformers.data_classes import HFObjects
from spacy_transformers.layers.hf_shim import HFShim
from spacy_transformers.util import make_tempdir
from thinc.api import Model, get_torch_default_device, xp2torch
from thinc.types import ArgsKwargs
from transformers import AutoConfig, AutoModel, AutoTokenizer

from ..errors import Errors

PRECISIONS = ("auto", "float32", "bfloat16")


def has_fast_bfloat16(device: torch.device) -> bool:
    """Whether bfloat16 pays on the device: a GPU that has it, or a CPU with AVX512-BF16 or AMX."""
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    if device.type == "cpu":
        checks = ("_is_avx512_bf16_supported", "_is_amx_tile_supported")
        return any(getattr(torch.cpu, name, bool)() for name in checks)
    return False


def attention_kind() -> str:
    """The attention that is fast where we run: on CPUs, backward through the fused one is slow."""
    return "sdpa" if get_torch_default_device().type == "cuda" else "eager"


class EncoderShim(HFShim):
    """spacy-transformers' shim, with four changes.

    - bfloat16 autocast works on CPUs too, and is chosen by ``precision``: "auto" takes it where
      the machine is fast at it, "float32" never, "bfloat16" always.
    - ``begin_update_recomputed`` trades a second forward pass for memory.
    - Weights are stored as safetensors, so that loading never unpickles.
    - ``use_params`` finds the averages that thinc's optimizers keep, by the keys they keep them by.
    """

    def __init__(self, hf_model: HFObjects, precision: str = "auto"):
        super().__init__(hf_model, grad_scaler_config={"enabled": False})
        if precision not in PRECISIONS:
            raise ValueError(Errors.E207.format(value=precision, choices=", ".join(PRECISIONS)))
        self.precision = precision

    @property
    def tokenizer(self):
        return self._hfmodel.tokenizer

    def autocast(self) -> torch.autocast:
        device = self.device
        wanted = self.precision == "bfloat16" or (
            self.precision == "auto" and has_fast_bfloat16(device)
        )
        return torch.autocast(device.type, dtype=torch.bfloat16, enabled=wanted)

    def predict(self, inputs: ArgsKwargs) -> Any:
        self._set_training(False)
        # Not inference_mode: autocast would cast the weights anew at each call.
        with torch.no_grad(), self.autocast():
            return self._model(*inputs.args, **inputs.kwargs)

    def begin_update(self, inputs: ArgsKwargs) -> Tuple[Any, Callable]:
        self._set_training(True)
        with self.autocast():
            outputs = self._model(*inputs.args, **inputs.kwargs)

        def backprop(grads: ArgsKwargs) -> None:
            torch.autograd.backward(*grads.args, **grads.kwargs)

        return outputs, backprop

    def forward_without_graph(self, inputs: ArgsKwargs) -> Any:
        """A training-mode forward pass (dropout on) that keeps no activations."""
        self._set_training(True)
        with torch.no_grad(), self.autocast():
            return self._model(*inputs.args, **inputs.kwargs)

    def _set_training(self, on: bool) -> None:
        # Walking through all modules takes a millisecond: not for every batch.
        if self._model.training != on:
            self._model.train(on)

    @contextmanager
    def use_params(self, params: Dict[Any, Any]) -> Iterator[None]:
        """Use other weights for a while, such as an optimizer's averages."""
        own = {
            weights: params[self.id, name]
            for name, weights in self._model.named_parameters()
            if (self.id, name) in params
        }
        backup = {weights: weights.data for weights in own}
        for weights, value in own.items():
            weights.data = xp2torch(value, device=weights.device).reshape(weights.shape)
        try:
            yield
        finally:
            for weights, value in backup.items():
                weights.data = value

    def set_dropout(self, rate: float) -> None:
        for module in self._model.modules():
            if isinstance(module, torch.nn.Dropout):
                module.p = rate
            # Fused attention reads the rate from here, not from its Dropout module.
            if isinstance(getattr(module, "dropout_prob", None), float):
                module.dropout_prob = rate

    def to_bytes(self) -> bytes:
        if self._hfmodel.transformer is None:
            return srsly.msgpack_dumps({"config": {}})
        with make_tempdir() as folder:
            self.tokenizer.save_pretrained(str(folder))
            files = {p.name: p.read_bytes() for p in folder.iterdir() if p.is_file()}
        # Tied weights share memory, which safetensors refuses: a copy each.
        state = {k: v.detach().cpu().clone() for k, v in self._model.state_dict().items()}
        return srsly.msgpack_dumps(
            {
                "config": self._model.config.to_dict(),
                "tokenizer": files,
                "state": safetensors.torch.save(state),
            }
        )

    def from_bytes(self, bytes_data: bytes) -> "EncoderShim":
        msg = srsly.msgpack_loads(bytes_data)
        if not msg["config"]:
            return self
        with make_tempdir() as folder:
            srsly.write_json(folder / "config.json", msg["config"])
            for name, data in msg["tokenizer"].items():
                (folder / name).write_bytes(data)
            config = AutoConfig.from_pretrained(str(folder))
            tokenizer = AutoTokenizer.from_pretrained(str(folder), use_fast=True)
        transformer = AutoModel.from_config(config, attn_implementation=attention_kind())
        try:
            transformer.load_state_dict(safetensors.torch.load(msg["state"]))
        except (RuntimeError, safetensors.SafetensorError) as error:
            raise ValueError(Errors.E202.format(problem=error)) from None
        self.set_transformer(tokenizer, transformer)
        return self

    def set_transformer(self, tokenizer, transformer: torch.nn.Module) -> None:
        """Put tokenizer and weights in place, on thinc's current device."""
        self._hfmodel = HFObjects(tokenizer, transformer, None)
        self._model = transformer.to(get_torch_default_device())


def shim_of(tower: Model) -> EncoderShim:
    """The shim of a transformer tower."""
    return cast(EncoderShim, tower.shims[0])
