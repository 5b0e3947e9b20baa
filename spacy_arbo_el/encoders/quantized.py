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
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

import safetensors.torch
import torch
from torch import Tensor, nn
from transformers.activations import GELUActivation

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
# So much lower may the mean cosine of hidden states be for layers without factors, of which each so
# many passages are read.
FLAT_DIFFERENCE = 0.0015
SPARED = 6
# Attention whose query, key and value are all that reads its inputs.
SELF_ATTENTIONS = ("BertSelfAttention", "RobertaSelfAttention", "XLMRobertaSelfAttention")
SIBLINGS = ("query", "key", "value")
GELUS = (GELUActivation, nn.GELU)
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
    for module in copied.modules():
        _round_once(module)
    return copied.eval()


@torch.no_grad()
def find_scales(transformer: nn.Module, tokenizer: WordPieceTokenizer) -> Scales:
    """The scales with which each linear layer's outputs change least. It takes a few seconds.

    transformer: A Hugging Face model on a CPU.
    tokenizer: Its tokenizer.
    """
    linears, passages = _linears(transformer), list(_passages(tokenizer))
    inputs = _inputs_of_layers(transformer, linears, passages)
    found: Dict[str, Tensor] = {}
    for names in _siblings(transformer, list(inputs)):
        layers = [linears[name] for name in names]
        best = _best_scales(layers, inputs[names[0]])
        found.update((name, best.clone()) for name in names)
    return {**found, **_flat_scales(transformer, found, inputs, passages[::SPARED])}


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

    Inputs are float32, or uint8 where ``rounded`` gave them before.

    linear: The layer.
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
        self.scales = weights.abs().amax(1).clamp(min=TINY) / 127
        rounded = (weights / self.scales[:, None]).round_().to(torch.int8)
        self.weights = torch.ops.onednn.qlinear_prepack(rounded, None)
        self.zeros = torch.zeros(len(weights), dtype=torch.int64)
        self.bias = None if linear.bias is None else linear.bias.detach().float()
        self._outputs: Tuple[Any, ...] = (1.0, 0, torch.float32, "none", [], "")

    def rounded(self, inputs: Tensor) -> Tensor:
        """Inputs as uint8."""
        return torch.addcmul(self.offset, inputs, self.scaling).clamp_(0, 255).to(torch.uint8)

    def give_gelu(self, following: "QuantizedLinear") -> None:
        """Give the GELU of the outputs, as inputs of another layer without factors."""
        self._outputs = (following.step, following.zero, torch.uint8, "gelu", [], "none")

    def forward(self, inputs: Tensor) -> Tensor:
        steps = inputs if inputs.dtype == torch.uint8 else self.rounded(inputs)
        outputs = torch.ops.onednn.qlinear_pointwise(
            *(steps.view(-1, steps.shape[-1]), self.step, self.zero),
            *(self.weights, self.scales, self.zeros, self.bias, *self._outputs),
        )
        return outputs.view(*inputs.shape[:-1], -1)


def _round_once(module: nn.Module) -> None:
    """Where BERT and its relatives allow it, spare a module's 8-bit layers some rounding.

    Query, key and value read the same inputs. What lies between two layers of a feed-forward
    network need not become float32.
    """
    parts = [getattr(module, name, None) for name in SIBLINGS]
    query = parts[0]
    if type(module).__name__ in SELF_ATTENTIONS and isinstance(query, QuantizedLinear):
        if all(torch.equal(query.scaling, part.scaling) for part in parts[1:]):

            def hook(module: nn.Module, args: Any, settings: Any) -> Any:
                return (query.rounded(args[0]), *args[1:]), settings

            module.register_forward_pre_hook(hook, with_kwargs=True)
    before, after = _feed_forward(module)
    if isinstance(before, QuantizedLinear) and isinstance(after, QuantizedLinear):
        if bool((after.factors == 1).all()):
            before.give_gelu(after)
            module.intermediate.intermediate_act_fn = nn.Identity()


def _feed_forward(module: nn.Module) -> Tuple[Optional[nn.Module], Optional[nn.Module]]:
    """The layers before and after a GELU in a layer of BERT and its relatives; else None."""
    between = getattr(module, "intermediate", None)
    if not isinstance(getattr(between, "intermediate_act_fn", None), GELUS):
        return None, None
    return between.dense, module.output.dense


def _siblings(transformer: nn.Module, names: List[str]) -> List[List[str]]:
    """The names of linear layers, those that read the same inputs together."""
    together: Dict[str, List[str]] = {}
    for name in names:
        parent, _, child = name.rpartition(".")
        kind = type(transformer.get_submodule(parent)).__name__
        shares = kind in SELF_ATTENTIONS and child in SIBLINGS
        together.setdefault(parent if shares else name, []).append(name)
    return list(together.values())


def _best_scales(layers: Sequence[nn.Linear], inputs: "_Inputs") -> Tensor:
    """The scales with which the outputs of layers that read the same inputs change least."""
    low, high, sample = inputs.low, inputs.high, torch.cat(inputs.sample)
    expected = [layer(sample) for layer in layers]

    def error(scales: Tensor) -> float:
        outputs = [QuantizedLinear(layer, scales)(sample) for layer in layers]
        return sum(float((a - b).square().mean()) for a, b in zip(outputs, expected))

    return min((_scales(low, high, one) for one in _factors(layers, low, high)), key=error)


def _flat_scales(
    transformer: nn.Module, found: Scales, inputs: Dict[str, "_Inputs"], passages: List[Tensor]
) -> Scales:
    """Scales without factors, of layers behind a GELU, where hidden states hardly change.

    found: The best scales of all layers.
    """
    exact = _normalized(transformer, passages)
    least = _difference(_normalized(quantize(transformer, found), passages), exact)
    differences = {}
    names = {id(layer): name for name, layer in _linears(transformer).items()}
    for module in transformer.modules():
        name = names.get(id(_feed_forward(module)[1]), "")
        if name in inputs:
            read = inputs[name]
            flat = {name: _scales(read.low, read.high, torch.ones_like(read.low))}
            changed = quantize(transformer, {**found, **flat})
            differences[name] = _difference(_normalized(changed, passages), exact) - least, flat
    taken: Dict[str, Tensor] = {}
    total = 0.0
    for difference, flat in sorted(differences.values(), key=lambda one: one[0]):
        total += max(difference, 0.0)
        if total <= FLAT_DIFFERENCE:
            taken.update(flat)
    return taken


def _normalized(transformer: nn.Module, passages: List[Tensor]) -> Tensor:
    """The hidden states of all word pieces, each of length 1."""
    states = [
        transformer(input_ids=ids, attention_mask=torch.ones_like(ids)).last_hidden_state
        for ids in passages
    ]
    return nn.functional.normalize(torch.cat([one.flatten(0, 1) for one in states]), dim=-1)


def _difference(first: Tensor, second: Tensor) -> float:
    """1 minus the mean cosine."""
    return 1 - float((first * second).sum(-1).mean())


def _scales(low: Tensor, high: Tensor, factors: Tensor) -> Tensor:
    """The scales of a layer whose inputs lie between ``low`` and ``high``."""
    least = (low / factors).min().clamp(max=0.0)
    most = (high / factors).max().clamp(min=0.0)
    return torch.cat([factors, torch.stack([least, most])])


def _factors(layers: Sequence[nn.Linear], low: Tensor, high: Tensor) -> Iterator[Tensor]:
    """Factors of the channels of the inputs of some layers, to choose from."""
    largest = torch.maximum(low.abs(), high.abs()).clamp(min=TINY)
    for quantile in QUANTILES:
        yield (largest / largest.quantile(quantile)).clamp(min=1)
    for layer in layers:
        weights = layer.weight.detach().float().abs().amax(0).clamp(min=TINY)
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
