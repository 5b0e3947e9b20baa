"""8-bit linear layers, with which a transformer is faster on CPUs.

They run on integer instructions (VNNI, AMX) through oneDNN. Weights have one scale per output.
Inputs have fixed scales, found once on ``TEXTS`` and saved with the weights: they depend on the
weights alone, and a vector depends neither on threads nor, but for rounding, on the batch that its
passage is in.

A few channels of a transformer are much larger than the others, and one scale for all would leave
the others a few steps. So inputs are divided by a factor per channel, and weights are multiplied by
it (SmoothQuant, Xiao et al. 2023). The factors that give the smallest error are taken, layer by
layer.
"""

from copy import deepcopy
from pathlib import Path
from typing import Any, Dict, Iterator, List, Mapping

import safetensors.torch
import torch
from torch import Tensor, nn

from .quantization_texts import TEXTS
from .word_pieces import WordPieceTokenizer

# Word pieces of a text, of a name in it, from one mention to the next, and of each side of the one
# long window.
LENGTH = 32
LONG_SIDE = 20
NAME = 3
STRIDE = 6
# Rows of a layer's inputs that factors are compared on.
ROWS = 256
# Channels below these quantiles keep their size; larger ones are brought down to it.
QUANTILES = (0.3, 0.6, 0.9, 0.99)
# The share of the range that moves from the inputs to the weights, of all channels.
SHARE = 0.7
TINY = 1e-5
# The scales of the bundled encoder, by experiments/bundled_scales.py.
BUNDLED_SCALES = Path(__file__).with_name("bundled_scales.safetensors")

# By the name of a linear layer: (inputs + 2,) float32, the factors that inputs are divided by, and
# the lowest and the highest input after that.
Scales = Mapping[str, Tensor]


def has_fast_int8(device: torch.device) -> bool:
    """Whether 8-bit layers are fast: on CPUs with VNNI, where this torch has the operation."""
    supported = (
        getattr(torch.cpu, "_is_vnni_supported", bool)() and torch.backends.mkldnn.is_available()
    )
    return device.type == "cpu" and supported and hasattr(torch.ops.onednn, "qlinear_pointwise")


def quantize(transformer: nn.Module, scales: Scales) -> nn.Module:
    """A copy with 8-bit linear layers; the other weights are shared.

    transformer: A Hugging Face model on a CPU.
    scales: Of its linear layers. A layer without any stays.
    """
    shared = {id(tensor): tensor for tensor in (*transformer.parameters(), *transformer.buffers())}
    copied = deepcopy(transformer, shared)
    for name, linear in _linears(transformer).items():
        if name in scales:
            parent, _, child = name.rpartition(".")
            setattr(copied.get_submodule(parent), child, QuantizedLinear(linear, scales[name]))
    return copied.eval()


@torch.no_grad()
def find_scales(transformer: nn.Module, tokenizer: WordPieceTokenizer) -> Scales:
    """The scales with which each linear layer's outputs change least. It takes a second or two.

    transformer: A Hugging Face model on a CPU.
    tokenizer: Its tokenizer.
    """
    linears = _linears(transformer)
    inputs = _inputs_of_layers(transformer, linears, list(_passages(tokenizer)))
    return {name: _best_scales(linears[name], read) for name, read in inputs.items()}


def scales_fit(transformer: nn.Module, scales: Scales) -> bool:
    """Whether all scales are finite, and for linear layers that the transformer has."""
    linears = _linears(transformer)
    return all(
        name in linears
        and one.shape == (linears[name].in_features + 2,)
        and one.dtype == torch.float32
        and bool(one.isfinite().all() and (one[:-2] > 0).all())
        for name, one in scales.items()
    )


def bundled_scales() -> Scales:
    """The scales of the bundled encoder."""
    return safetensors.torch.load(BUNDLED_SCALES.read_bytes())


def _linears(transformer: nn.Module) -> Dict[str, nn.Linear]:
    return {name: one for name, one in transformer.named_modules() if isinstance(one, nn.Linear)}


class QuantizedLinear(nn.Module):
    """A linear layer whose inputs and weights have 8 bits.

    linear: The layer.
    scales: (inputs + 2,) float32, see ``Scales``.
    """

    def __init__(self, linear: nn.Linear, scales: Tensor):
        super().__init__()
        factors, (least, most) = scales[:-2], scales[-2:].tolist()
        self.step = max((most - least) / 255, TINY)
        self.zero = round(-least / self.step)
        self.scaling = 1 / (factors * self.step)
        weights = linear.weight.detach().float() * factors
        self.scales = weights.abs().amax(1).clamp(min=TINY) / 127
        rounded = (weights / self.scales[:, None]).round_().to(torch.int8)
        self.weights = torch.ops.onednn.qlinear_prepack(rounded, None)
        self.zeros = torch.zeros(len(weights), dtype=torch.int64)
        self.bias = None if linear.bias is None else linear.bias.detach().float()

    def forward(self, inputs: Tensor) -> Tensor:
        # Rounded to the nearest, by truncation.
        steps = (inputs * self.scaling).add_(self.zero + 0.5).clamp_(0, 255).to(torch.uint8)
        outputs = torch.ops.onednn.qlinear_pointwise(
            *(steps.view(-1, steps.shape[-1]), self.step, self.zero),
            *(self.weights, self.scales, self.zeros, self.bias),
            *(1.0, 0, torch.float32, "none", [], ""),
        )
        return outputs.view(*inputs.shape[:-1], -1)


def _best_scales(linear: nn.Linear, inputs: "_Inputs") -> Tensor:
    """The scales with which the outputs of a layer change least."""
    low, high, sample = inputs.low, inputs.high, torch.cat(inputs.sample)
    expected = linear(sample)

    def error(scales: Tensor) -> float:
        return float((QuantizedLinear(linear, scales)(sample) - expected).square().mean())

    return min((_scales(low, high, one) for one in _factors(linear, low, high)), key=error)


def _scales(low: Tensor, high: Tensor, factors: Tensor) -> Tensor:
    """The scales of a layer whose inputs lie between ``low`` and ``high``."""
    least = (low / factors).min().clamp(max=0.0)
    most = (high / factors).max().clamp(min=0.0)
    return torch.cat([factors, torch.stack([least, most])])


def _factors(linear: nn.Linear, low: Tensor, high: Tensor) -> Iterator[Tensor]:
    """Factors of the channels of a layer's inputs, to choose from."""
    largest = torch.maximum(low.abs(), high.abs()).clamp(min=TINY)
    for quantile in QUANTILES:
        yield (largest / largest.quantile(quantile)).clamp(min=1)
    weights = linear.weight.detach().float().abs().amax(0).clamp(min=TINY)
    yield largest**SHARE / weights ** (1 - SHARE)


def _passages(tokenizer: WordPieceTokenizer) -> Iterator[Tensor]:
    """``TEXTS`` as mentions and entities are read, (p, length) int64, those of a length at once."""
    cls, sep, start, end, title = tokenizer.specials.tolist()
    read = tokenizer.read(TEXTS)
    by_length: Dict[int, List[List[int]]] = {}
    for low, high in zip(read.bounds.tolist(), read.bounds[1:].tolist()):
        pieces = read.ids[low:high].tolist()
        passages = [
            [cls, *pieces[:NAME], title, sep],
            [cls, *pieces[:NAME], title, *pieces[NAME:LENGTH], sep],
        ]
        places = [(at, STRIDE) for at in range(0, len(pieces), STRIDE)]
        for at, side in (*places, (len(pieces) // 2, LONG_SIDE)):
            left, right = pieces[max(at - side, 0) : at], pieces[at + NAME : at + side]
            mention = pieces[at : at + NAME]
            passages.append([cls, *left, start, *mention, end, *right, sep])
        for passage in passages:
            by_length.setdefault(len(passage), []).append(passage)
    yield from (torch.tensor(passages) for passages in by_length.values())


class _Inputs:
    """What a linear layer reads in passages.

    size: The number of channels.
    stride: Each so many rows one is kept.
    low, high: (size,) float32, the range of each channel.
    sample: The kept rows, (n, size) float32 each.
    """

    def __init__(self, size: int, stride: int):
        self.low, self.high = torch.full((size,), torch.inf), torch.full((size,), -torch.inf)
        self.sample: List[Tensor] = []
        self._stride, self._rows = stride, 0

    def add(self, rows: Tensor) -> None:
        self.low = torch.minimum(self.low, rows.amin(0))
        self.high = torch.maximum(self.high, rows.amax(0))
        self.sample.append(rows[-self._rows % self._stride :: self._stride].clone())
        self._rows += len(rows)


def _inputs_of_layers(
    transformer: nn.Module, linears: Dict[str, nn.Linear], passages: List[Tensor]
) -> Dict[str, _Inputs]:
    """What each linear layer reads in passages, by the layer's name."""
    stride = max(sum(ids.numel() for ids in passages) // ROWS, 1)
    read: Dict[str, _Inputs] = {}

    def watch(name: str, inputs: _Inputs) -> Any:
        def hook(layer: nn.Module, arguments: Any) -> None:
            read[name] = inputs
            inputs.add(arguments[0].flatten(0, -2))

        return hook

    hooks = [
        one.register_forward_pre_hook(watch(name, _Inputs(one.in_features, stride)))
        for name, one in linears.items()
    ]
    try:
        for ids in passages:
            transformer(input_ids=ids, attention_mask=torch.ones_like(ids))
    finally:
        for hook in hooks:
            hook.remove()
    return read
