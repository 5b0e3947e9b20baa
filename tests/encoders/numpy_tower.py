"""A tower in NumPy: a text is a passage, a span the mean of its words, and of its context."""

import re
from dataclasses import dataclass
from zlib import crc32

import numpy as np
from spacy.util import registry
from thinc.api import Model

from spacy_arbo_el import SpanInputs
from spacy_arbo_el.base.arrays import offsets_of


@dataclass(frozen=True)
class HashedWords:
    rows: int

    def read_mentions(self, model, texts, text_of, offsets):
        words = [list(re.finditer(r"\w+", text)) for text in texts]
        # Word 0 of a passage stands for spans without words.
        ids = [[0, *(crc32(w[0].lower().encode()) % self.rows for w in group)] for group in words]
        places = []
        for n, (start, end) in zip(text_of, offsets.tolist()):
            inside = [i for i, w in enumerate(words[n], 1) if w.start() < end and w.end() > start]
            places.append((inside[0], inside[-1]) if inside else (0, 0))
        first, last = np.array(places, dtype=np.int32).reshape(-1, 2).T.copy()
        flat = np.array(sum(ids, []), dtype=np.int32)
        bounds = offsets_of(np.array([len(passage) for passage in ids], dtype=np.int64))
        return SpanInputs(flat, bounds, np.asarray(text_of, dtype=np.int64), first, last, first)

    def read_texts(self, model, texts):
        titles = np.array([(0, len(title)) for title, _ in texts]).reshape(-1, 2)
        return self.read_mentions(model, [*map(" ".join, texts)], np.arange(len(texts)), titles)


@registry.architectures("test.HashedEncoder.v1")
def build_hashed_encoder(width: int = 32, rows: int = 4096, context: float = 0.0) -> Model:
    """context: Weight of the mean of all words of the passage; that of the span's is 1."""
    attrs = {"reader": HashedWords(rows), "context": context}
    return Model("hashed", forward, init=init, attrs=attrs, dims={"nO": width}, params={"E": None})


def init(model, X=None, Y=None):
    shape = model.attrs["reader"].rows, model.get_dim("nO")
    weights = np.random.default_rng(0).normal(size=shape)
    model.set_param("E", model.ops.asarray2f(weights))


def forward(model, X, is_train):
    vectors = model.ops.to_numpy(model.get_param("E"))
    parts = []
    for passage, first, last in zip(X.passage, X.first, X.last):
        ids = X.ids[X.offsets[passage] : X.offsets[passage + 1]]
        weights = np.full(len(ids), model.attrs["context"] / max(len(ids) - 1, 1))
        weights[0] = 0.0
        weights[first : last + 1] += 1 / (last - first + 1)
        parts.append((ids, weights.astype(np.float32)))
    means = [weights @ vectors[ids] for ids, weights in parts]

    def backprop(d_means):
        gradient = np.zeros_like(vectors)
        for (ids, weights), d_mean in zip(parts, model.ops.to_numpy(d_means)):
            np.add.at(gradient, ids, np.outer(weights, d_mean))
        model.inc_grad("E", model.ops.asarray2f(gradient))

    means = np.array(means, dtype=np.float32).reshape(-1, vectors.shape[1])
    return model.ops.asarray2f(means), backprop
