"""Find the scales of 8-bit layers.

A few channels of a transformer are much larger than the others, and one scale for all would leave
the others a few steps. So inputs are divided by a factor per channel, and weights are multiplied by
it (SmoothQuant, Xiao et al. 2023). The factors that give the smallest error are taken, layer by
layer. Behind a GELU, a layer goes without them where that changes little, as it is faster then.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from .quantized import (
    SELF_ATTENTIONS,
    SIBLINGS,
    TINY,
    QuantizedLinear,
    Scales,
    feed_forward,
    linears_of,
    quantize,
)
from .word_pieces import WordPieceTokenizer

# Of several domains and languages, a text a line.
TEXTS = (
    Path(__file__)
    .with_name("quantization_texts.txt")
    .read_text(encoding="utf8")
    .splitlines()
)
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
# So much lower may the mean cosine of hidden states be for layers without factors, of which each so
# many passages are read.
FLAT_DIFFERENCE = 0.0015
SPARED = 6


@torch.no_grad()
def find_scales(
    transformer: nn.Module,
    tokenizer: WordPieceTokenizer,
    earlier: Scales | None = None,
) -> Scales:
    """The scales with which each linear layer's outputs change least. It takes a few seconds.

    earlier: The scales before some steps of training, whose factors are kept: one pass is enough.
    """
    linears = linears_of(transformer)
    passages = list(_passages(tokenizer))
    inputs = _inputs_of_layers(transformer, linears, passages)
    if earlier is not None and earlier.keys() == inputs.keys():
        return {
            name: _scales(r.low, r.high, earlier[name][:-2])
            for name, r in inputs.items()
        }
    scales_of: dict[str, Tensor] = {}
    for names in _siblings(transformer, list(inputs)):
        layers = [linears[name] for name in names]
        best = _best_scales(layers, inputs[names[0]])
        scales_of.update((name, best.clone()) for name in names)
    return {
        **scales_of,
        **_flat_scales(transformer, scales_of, inputs, passages[::SPARED]),
    }


def _siblings(transformer: nn.Module, names: list[str]) -> list[list[str]]:
    together: dict[str, list[str]] = {}
    for name in names:
        parent, _, child = name.rpartition(".")
        kind = type(transformer.get_submodule(parent)).__name__
        shares = kind in SELF_ATTENTIONS and child in SIBLINGS
        together.setdefault(parent if shares else name, []).append(name)
    return list(together.values())


def _best_scales(layers: Sequence[nn.Linear], inputs: "_Inputs") -> Tensor:
    """Scales that change the outputs of sibling layers least."""
    low = inputs.low
    high = inputs.high
    sample = torch.cat(inputs.sample)
    expected = [layer(sample) for layer in layers]

    def error(scales: Tensor) -> float:
        outputs = [QuantizedLinear(layer, scales)(sample) for layer in layers]
        return sum(float((a - b).square().mean()) for a, b in zip(outputs, expected))

    return min(
        (_scales(low, high, scales) for scales in _factors(layers, low, high)),
        key=error,
    )


def _flat_scales(
    transformer: nn.Module,
    best_scales: Scales,
    inputs: dict[str, "_Inputs"],
    passages: list[Tensor],
) -> Scales:
    """Scales without factors, of layers behind a GELU.

    They are of as many layers as keep the hidden states nearly unchanged.

    best_scales: The best scales of all layers.
    """
    name_of = {id(layer): name for name, layer in linears_of(transformer).items()}
    behind = (
        name_of.get(id(feed_forward(module)[1])) for module in transformer.modules()
    )
    names = [name for name in behind if name in inputs]
    if not names:
        return {}
    exact = _normalized(transformer, passages)
    least = _difference(
        _normalized(quantize(transformer, best_scales), passages), exact
    )
    # Large channels are in the first layers most of all.
    for n_skipped in sorted({len(names) * third // 3 for third in range(3)}):
        reads = {name: inputs[name] for name in names[n_skipped:]}
        flat = {
            n: _scales(r.low, r.high, torch.ones_like(r.low)) for n, r in reads.items()
        }
        changed = quantize(transformer, {**best_scales, **flat})
        if (
            _difference(_normalized(changed, passages), exact) - least
            <= FLAT_DIFFERENCE
        ):
            return flat
    return {}


def _normalized(transformer: nn.Module, passages: list[Tensor]) -> Tensor:
    states = [
        transformer(
            input_ids=ids, attention_mask=torch.ones_like(ids)
        ).last_hidden_state
        for ids in passages
    ]
    return nn.functional.normalize(
        torch.cat([state.flatten(0, 1) for state in states]), dim=-1
    )


def _difference(first: Tensor, second: Tensor) -> float:
    return 1 - float((first * second).sum(-1).mean())


def _scales(low: Tensor, high: Tensor, factors: Tensor) -> Tensor:
    least = (low / factors).min().clamp(max=0.0)
    most = (high / factors).max().clamp(min=0.0)
    return torch.cat([factors, torch.stack([least, most])])


def _factors(
    layers: Sequence[nn.Linear], low: Tensor, high: Tensor
) -> Iterator[Tensor]:
    largest = torch.maximum(low.abs(), high.abs()).clamp(min=TINY)
    for quantile in QUANTILES:
        yield (largest / largest.quantile(quantile)).clamp(min=1)
    for layer in layers:
        weights = layer.weight.detach().float().abs().amax(0).clamp(min=TINY)
        yield largest**SHARE / weights ** (1 - SHARE)


def _passages(tokenizer: WordPieceTokenizer) -> Iterator[Tensor]:
    """``TEXTS`` read as mentions and entities, those of a length together: (p, length) int64."""
    cls, sep, start, end, title = tokenizer.specials.tolist()
    read = tokenizer.read(TEXTS)
    by_length: dict[int, list[list[int]]] = {}
    for low, high in zip(read.bounds.tolist(), read.bounds[1:].tolist()):
        pieces = read.ids[low:high].tolist()
        passages = [
            [cls, *pieces[:NAME], title, sep],
            [cls, *pieces[:NAME], title, *pieces[NAME:LENGTH], sep],
        ]
        places = [(at, STRIDE) for at in range(0, len(pieces), STRIDE)]
        for at, side in (*places, (len(pieces) // 2, LONG_SIDE)):
            before = pieces[max(at - side, 0) : at]
            behind = pieces[at + NAME : at + side]
            mention = pieces[at : at + NAME]
            passages.append([cls, *before, start, *mention, end, *behind, sep])
        for passage in passages:
            by_length.setdefault(len(passage), []).append(passage)
    yield from (torch.tensor(passages) for passages in by_length.values())


class _Inputs:
    """Inputs of a linear layer, read in passages.

    size: The number of channels.
    stride: Each so many rows one is kept.
    low, high: (size,) float32, the range of each channel.
    sample: The kept rows, (n, size) float32 each.
    """

    def __init__(self, size: int, stride: int):
        self.low = torch.full((size,), torch.inf)
        self.high = torch.full((size,), -torch.inf)
        self.sample: list[Tensor] = []
        self._stride = stride
        self._rows = 0

    def add(self, rows: Tensor) -> None:
        self.low = torch.minimum(self.low, rows.amin(0))
        self.high = torch.maximum(self.high, rows.amax(0))
        self.sample.append(rows[-self._rows % self._stride :: self._stride].clone())
        self._rows += len(rows)


def _inputs_of_layers(
    transformer: nn.Module, linears: dict[str, nn.Linear], passages: list[Tensor]
) -> dict[str, _Inputs]:
    stride = max(sum(ids.numel() for ids in passages) // ROWS, 1)
    read: dict[str, _Inputs] = {}

    def watch(name: str, inputs: _Inputs) -> Any:
        def hook(layer: nn.Module, arguments: Any) -> None:
            read[name] = inputs
            inputs.add(arguments[0].flatten(0, -2))

        return hook

    hooks = [
        layer.register_forward_pre_hook(
            watch(name, _Inputs(layer.in_features, stride))
        )
        for name, layer in linears.items()
    ]
    try:
        for ids in passages:
            transformer(input_ids=ids, attention_mask=torch.ones_like(ids))
    finally:
        for hook in hooks:
            hook.remove()
    return read
