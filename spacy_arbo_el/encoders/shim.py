"""The Hugging Face model inside a thinc model, its precision, memory and safe serialization."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, cast

import srsly
import torch
from spacy_transformers.data_classes import HFObjects
from spacy_transformers.layers.hf_shim import HFShim
from thinc.api import Model, get_torch_default_device, xp2torch
from thinc.types import ArgsKwargs
from transformers import PreTrainedTokenizerBase

from ..base.errors import Errors
from ..base.settings import check_choice
from ..storage.locks import ForkableLock
from .loading import release_weights
from .quantization import find_scales
from .quantized import Scales, linears_of, quantize, scales_fit
from .serialization import dump_transformer, load_transformer
from .word_pieces import WordPieceTokenizer

PRECISIONS = ("auto", "float32", "bfloat16", "int8")


class EncoderShim(HFShim):
    """spacy-transformers' shim, with four changes.

    - Lower precisions work on CPUs too, see ``precision_kind``. Linear layers of 8 bits predict
      with weights as they were loaded, or since ``end_training``: weights that are in training
      predict as they train.
    - ``forward_in_training`` may keep no activations, for a second pass that does.
    - Weights are stored as safetensors, so that loading never unpickles.
    - ``use_params`` takes the averages of thinc's optimizers, whose keys differ from those that
      the base class expects.

    precision: One of ``PRECISIONS``.
    position_limit: The longest passage that the transformer reads, 0 where it does not say.
    """

    def __init__(self, hf_model: HFObjects, precision: str):
        super().__init__(hf_model, grad_scaler_config={"enabled": False})
        check_choice("precision", precision, PRECISIONS)
        self.precision = precision
        self.position_limit = 0
        self._is_trained = False
        self._quantized = _Quantized()
        self._word_pieces: WordPieceTokenizer | None = None
        self._reading_tokenizer = ForkableLock()

    @property
    def is_loaded(self) -> bool:
        """Return whether there are weights."""
        return self._model is not None

    @property
    def width(self) -> int:
        """The width of the hidden states."""
        return self._model.config.hidden_size

    @property
    def token_types(self) -> int:
        """Number of token types; 0 if the transformer has none."""
        return int(getattr(self._model.config, "type_vocab_size", 0))

    @property
    def vocabulary_size(self) -> int:
        """The number of word pieces that the weights are for."""
        return int(self._model.get_input_embeddings().num_embeddings)

    @property
    def tokenizer(self) -> PreTrainedTokenizerBase:
        return self._hfmodel.tokenizer

    @property
    def word_pieces(self) -> WordPieceTokenizer:
        """The tokenizer as passages are read with it."""
        with self._reading_tokenizer:
            if self._word_pieces is None:
                # This changes the tokenizer: no other thread may use it meanwhile.
                self._word_pieces = WordPieceTokenizer(self.tokenizer)
            return self._word_pieces

    def set_transformer(
        self,
        tokenizer: PreTrainedTokenizerBase,
        transformer: torch.nn.Module,
        scales: Scales | None = None,
        earlier: Scales | None = None,
    ) -> None:
        """Set tokenizer and weights, on thinc's current device.

        scales: Of 8-bit layers, if they are known.
        earlier: Those before training, where the present ones are not known.
        """
        for known_scales in (scales, earlier):
            if not scales_fit(transformer, known_scales or {}):
                raise Errors.E202(problem="the scales of its 8-bit layers")
        self._hfmodel = HFObjects(tokenizer, transformer, None)
        self._model = transformer.to(get_torch_default_device())
        self._word_pieces = None
        self._is_trained = False
        self._quantized = _Quantized(scales, earlier)
        self.position_limit = find_position_limit(transformer)

    def autocast(self, training: bool = False) -> torch.autocast:
        enabled = self._precision_kind(training) == "bfloat16"
        return torch.autocast(self.device.type, dtype=torch.bfloat16, enabled=enabled)

    def _precision_kind(self, training: bool) -> str:
        allows_int8 = not training and not self._is_trained
        return precision_kind(self.precision, self.device, training, allows_int8)

    @property
    def allows_padding(self) -> bool:
        """Return whether padding changes vectors by less than 1e-5."""
        return (
            self.device.type == "cpu"
            and self._precision_kind(training=False) != "bfloat16"
        )

    def predict(self, inputs: ArgsKwargs) -> Any:
        # Not inference_mode: autocast would cast the weights anew at each call.
        with torch.no_grad(), self.autocast():
            return self.for_predicting()(*inputs.args, **inputs.kwargs)

    def for_predicting(self) -> torch.nn.Module:
        """The transformer in prediction mode, with 8-bit layers where these are used."""
        self._set_training(False)
        if self._precision_kind(training=False) == "int8":
            return self._quantized.of(self._model, self.word_pieces)
        return self._model

    def forward_in_training(self, inputs: ArgsKwargs, *, graph: bool) -> Any:
        """Run a training pass, with dropout. graph: Whether activations are kept for gradients."""
        self._set_training(True)
        self._is_trained |= graph
        with torch.set_grad_enabled(graph), self.autocast(training=True):
            return self._model(*inputs.args, **inputs.kwargs)

    def end_training(self) -> None:
        """Predict with 8-bit layers again, until the next update."""
        if self._is_trained:
            self._is_trained = False
            self._quantized = self._quantized.after_training()

    def _set_training(self, training: bool) -> None:
        # Walking through all modules takes a millisecond: not for every batch.
        if self._model.training != training:
            self._model.train(training)

    @contextmanager
    def use_params(self, params: dict[Any, Any]) -> Iterator[None]:
        """Use other weights temporarily, such as an optimizer's averages."""
        replaced = {
            weights: params[self.id, name]
            for name, weights in self._model.named_parameters()
            if (self.id, name) in params
        }
        backup = {weights: weights.data for weights in replaced}
        for weights, value in replaced.items():
            weights.data = xp2torch(value, device=weights.device).reshape(
                weights.shape
            )
        self._is_trained |= bool(replaced)
        try:
            yield
        finally:
            for weights, value in backup.items():
                weights.data = value
            self._is_trained |= bool(replaced)

    def set_dropout(self, rate: float) -> None:
        for module in self._model.modules():
            if isinstance(module, torch.nn.Dropout):
                module.p = rate
            # Fused attention reads the rate from here, not from its Dropout module.
            if isinstance(getattr(module, "dropout_prob", None), float):
                module.dropout_prob = rate

    def to_bytes(self) -> bytes:
        if not self.is_loaded:
            return srsly.msgpack_dumps({"config": {}})
        quantized = self._quantized
        if self._is_trained:
            quantized = quantized.after_training()
        earlier = None if quantized.scales else quantized.earlier
        return dump_transformer(self.tokenizer, self._model, quantized.scales, earlier)

    def from_bytes(self, bytes_data: bytes) -> "EncoderShim":
        message = srsly.msgpack_loads(bytes_data)
        if message["config"]:
            self.set_transformer(*load_transformer(message, attention_kind()))
        return self


class _Quantized:
    """The 8-bit copy of a transformer, made on first use. Pickles are without it.

    scales: Of its layers, None until they are found.
    earlier: The scales before training.
    """

    def __init__(
        self, scales: Scales | None = None, earlier: Scales | None = None
    ) -> None:
        self.scales = scales
        self.earlier = earlier
        self._module: torch.nn.Module | None = None
        self._making = ForkableLock()

    def after_training(self) -> "_Quantized":
        return _Quantized(earlier=self.scales or self.earlier)

    def of(
        self, transformer: torch.nn.Module, tokenizer: WordPieceTokenizer
    ) -> torch.nn.Module:
        with self._making:
            if self.scales is None:
                self.scales = find_scales(transformer, tokenizer, self.earlier)
            if self._module is None:
                self._module = quantize(transformer, self.scales)
                linears = linears_of(transformer)
                for name in self.scales:
                    # Predicting no longer reads them.
                    release_weights(linears[name].weight)
            return self._module

    def __reduce__(self) -> tuple[Any, ...]:
        return _Quantized, (self.scales, self.earlier)


def shim_of(tower: Model) -> EncoderShim:
    return cast(EncoderShim, tower.shims[0])


def loaded_shim(tower: Model) -> EncoderShim:
    """The shim of a transformer tower. An error where it has no weights yet."""
    shim = shim_of(tower)
    if not shim.is_loaded:
        raise Errors.E200(name=tower.attrs["name"])
    return shim


def attention_kind() -> str | None:
    """The fast attention for the device. On CPUs, the fused one has a slow backward pass.

    None takes the fused one where the architecture has it; MPNet and DeBERTa refuse "sdpa".
    """
    if get_torch_default_device().type == "cuda":
        return None
    return "eager"


def has_fast_bfloat16(device: torch.device) -> bool:
    """Return whether bfloat16 is fast. GPUs may have it, and CPUs with AVX512-BF16 or AMX."""
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    return device.type == "cpu" and (_cpu_has("avx512_bf16") or _cpu_has("amx_tile"))


def has_fast_int8(device: torch.device) -> bool:
    """True on CPUs with AVX2, with a torch that has 8-bit layers."""
    supported = _cpu_has("avx2") and torch.backends.mkldnn.is_available()
    return (
        device.type == "cpu"
        and supported
        and hasattr(torch.ops.onednn, "qlinear_pointwise")
    )


def precision_kind(
    precision: str,
    device: torch.device,
    training: bool = False,
    allows_int8: bool = True,
) -> str:
    """The precision of a forward pass: "float32", "bfloat16" or "int8".

    "auto" takes bfloat16 where the machine is fast at it, but not to predict where vectors would
    depend on the batch. Otherwise it takes "int8" to predict where that is fast, and float32.
    "int8" takes 8 bits to predict where that is fast, and is as "auto" elsewhere.

    precision: One of ``PRECISIONS``.
    allows_int8: Whether the weights may be quantized.
    """
    if precision in ("float32", "bfloat16"):
        return precision
    int8 = allows_int8 and has_fast_int8(device)
    if precision == "int8" and int8:
        return "int8"
    if has_fast_bfloat16(device) and (training or not depends_on_batch(device)):
        return "bfloat16"
    return "int8" if int8 else "float32"


def depends_on_batch(device: torch.device) -> bool:
    """True on CPUs with AMX, where oneDNN's bfloat16 depends on the number of rows."""
    return device.type == "cpu" and _cpu_has("amx_tile")


@cache
def _cpu_has(feature: str) -> bool:
    # Versions of torch differ in what they can check.
    return getattr(torch.cpu, f"_is_{feature}_supported", bool)()


def find_position_limit(transformer: Any) -> int:
    """The longest passage that a transformer reads. 0 where it does not say."""
    limit = getattr(transformer.config, "max_position_embeddings", 0)
    for name, module in transformer.named_modules():
        padding = getattr(module, "padding_idx", None)
        if name.endswith("position_embeddings") and padding is not None:
            # Some (RoBERTa, MPNet) count positions from after the padding id, and lose those.
            return limit - padding - 1
    return limit
