"""8-bit linear layers for CPUs.

They run on integer instructions (AVX2, VNNI, AMX) through oneDNN. Weights have one scale per
output, and 7 bits: a CPU without VNNI sums two products in 16 bits, which 8 bits would overflow. So
sums are equal on all CPUs. Inputs have fixed scales, found once (``quantization.py``) and saved
with the weights: a vector depends neither on threads nor, but for rounding, on the batch that its
passage is in.
"""

from collections.abc import Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any, cast

import safetensors.torch
import torch
from torch import Tensor, nn
from transformers.activations import GELUActivation

TINY = 1e-5
# The largest rounded weight. Two products with inputs of up to 255 are below 2 ** 15.
MOST_WEIGHT = 63
# Attention whose query, key and value are all that reads its inputs.
SELF_ATTENTIONS = (
    "BertSelfAttention",
    "RobertaSelfAttention",
    "XLMRobertaSelfAttention",
)
SIBLINGS = ("query", "key", "value")
GELUS = (GELUActivation, nn.GELU)
# The scales of the bundled encoder, by experiments/bundled_scales.py.
BUNDLED_SCALES = Path(__file__).with_name("bundled_scales.safetensors")

# By the name of a linear layer: (inputs + 2,) float32, the factors that inputs are divided by, and
# the lowest and the highest input after that.
Scales = Mapping[str, Tensor]


def quantize(transformer: nn.Module, scales: Scales) -> nn.Module:
    """Copy a transformer on a CPU, with 8-bit linear layers where it has scales for them."""
    shared = {
        id(tensor): tensor
        for tensor in (*transformer.parameters(), *transformer.buffers())
    }
    copied: Any = deepcopy(transformer, shared)
    for name, linear in linears_of(transformer).items():
        if name in scales:
            parent, _, child = name.rpartition(".")
            setattr(
                copied.get_submodule(parent),
                child,
                QuantizedLinear(linear, scales[name]),
            )
    for module in copied.modules():
        _round_once(module)
    if copied._supports_sdpa:
        # Its backward pass alone is slower than that of eager attention.
        copied.config._attn_implementation = "sdpa"
    return copied.eval()


def scales_fit(transformer: nn.Module, scales: Scales) -> bool:
    """True where scales are finite and fit the transformer's layers."""
    linears = linears_of(transformer)
    return all(
        name in linears
        and layer_scales.shape == (linears[name].in_features + 2,)
        and layer_scales.dtype == torch.float32
        and bool(layer_scales.isfinite().all() and (layer_scales[:-2] > 0).all())
        for name, layer_scales in scales.items()
    )


def bundled_scales() -> Scales:
    return safetensors.torch.load(BUNDLED_SCALES.read_bytes())


def linears_of(transformer: nn.Module) -> dict[str, nn.Linear]:
    return {
        name: module
        for name, module in transformer.named_modules()
        if isinstance(module, nn.Linear)
    }


class QuantizedLinear(nn.Module):
    """A linear layer whose inputs have 8 bits, and whose weights have 7.

    Inputs are float32, or uint8 where ``rounded`` gave them before.

    scales: (inputs + 2,) float32, see ``Scales``.
    """

    def __init__(self, linear: nn.Linear, scales: Tensor):
        super().__init__()
        self.factors, (least, most) = scales[:-2], scales[-2:].tolist()
        self.step = max((most - least) / 255, TINY)
        self.zero = round(-least / self.step)
        self.scaling = 1 / (self.factors * self.step)
        # Rounded to the nearest, by truncation.
        self.offset = torch.full_like(self.scaling, self.zero + 0.5)
        weights = linear.weight.detach().float() * self.factors
        self.scales = weights.abs().amax(1).clamp(min=TINY) / MOST_WEIGHT
        rounded = (weights / self.scales[:, None]).round_().to(torch.int8)
        self.weights = torch.ops.onednn.qlinear_prepack(rounded, None)
        self.zeros = torch.zeros(len(weights), dtype=torch.int64)
        self.bias = None if linear.bias is None else linear.bias.detach().float()
        self._outputs: tuple[Any, ...] = (1.0, 0, torch.float32, "none", [], "")

    @property
    def is_flat(self) -> bool:
        """True where inputs have one scale for all channels."""
        return bool((self.factors == 1).all())

    def reads_as(self, layer: nn.Module) -> bool:
        """True where another layer rounds inputs in the same way."""
        return (
            isinstance(layer, QuantizedLinear)
            and torch.equal(self.offset, layer.offset)
            and torch.equal(self.scaling, layer.scaling)
        )

    def rounded(self, inputs: Tensor) -> Tensor:
        """Inputs as uint8."""
        return (
            torch.addcmul(self.offset, inputs, self.scaling)
            .clamp_(0, 255)
            .to(torch.uint8)
        )

    def give_gelu(self, following: nn.Module | None) -> None:
        """Apply GELU to the outputs, rounded for a following layer without factors."""
        output = self._outputs[:3]
        if isinstance(following, QuantizedLinear) and following.is_flat:
            output = following.step, following.zero, torch.uint8
        self._outputs = (*output, "gelu", [], "none")

    def forward(self, inputs: Tensor) -> Tensor:
        steps = inputs if inputs.dtype == torch.uint8 else self.rounded(inputs)
        outputs = torch.ops.onednn.qlinear_pointwise(
            *(steps.view(-1, steps.shape[-1]), self.step, self.zero),
            *(self.weights, self.scales, self.zeros, self.bias, *self._outputs),
        )
        return outputs.view(*inputs.shape[:-1], -1)


def _round_once(module: nn.Module) -> None:
    """Spare 8-bit layers of BERT and its relatives some rounding: query, key and value read the
    same inputs, and between the layers of a feed-forward network nothing becomes float32.
    """
    if type(module).__name__ in SELF_ATTENTIONS:
        query, *siblings = (getattr(module, name) for name in SIBLINGS)
        if isinstance(query, QuantizedLinear) and all(
            query.reads_as(sibling) for sibling in siblings
        ):

            def hook(module: nn.Module, args: Any, settings: Any) -> Any:
                return (query.rounded(args[0]), *args[1:]), settings

            module.register_forward_pre_hook(hook, with_kwargs=True)
    before, after = feed_forward(module)
    if isinstance(before, QuantizedLinear):
        before.give_gelu(after)
        cast(Any, module).intermediate.intermediate_act_fn = nn.Identity()


def feed_forward(module: nn.Module) -> tuple[nn.Module | None, nn.Module | None]:
    """The layers before and after a GELU in a layer of BERT's kind; None elsewhere."""
    layer: Any = module
    between = getattr(layer, "intermediate", None)
    if not isinstance(getattr(between, "intermediate_act_fn", None), GELUS):
        return None, None
    return cast(Any, between).dense, layer.output.dense
