"""A tower without torch: a text is a passage, a span is the mean of its words' vectors."""

import re
from dataclasses import dataclass
from zlib import crc32

import numpy as np
from spacy.util import registry
from thinc.api import Model

from spacy_arbo_el.arrays import offsets_of
from spacy_arbo_el.encoders.inputs import SpanInputs


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
def build_hashed_encoder(width: int = 32, rows: int = 4096) -> Model:
    attrs = {"reader": HashedWords(rows)}
    return Model("hashed", forward, init=init, attrs=attrs, dims={"nO": width}, params={"E": None})


def init(model, X=None, Y=None):
    shape = model.attrs["reader"].rows, model.get_dim("nO")
    model.set_param("E", np.random.default_rng(0).normal(size=shape).astype(np.float32))


def forward(model, X, is_train):
    vectors, starts = model.get_param("E"), X.offsets[X.passage]
    spans = [X.ids[s + first : s + last + 1] for s, first, last in zip(starts, X.first, X.last)]
    means = [vectors[ids].mean(axis=0) for ids in spans]

    def backprop(d_means):
        gradient = np.zeros_like(vectors)
        for ids, d_mean in zip(spans, d_means):
            np.add.at(gradient, ids, d_mean / len(ids))
        model.inc_grad("E", gradient)

    return np.array(means, dtype=np.float32).reshape(-1, vectors.shape[1]), backprop
