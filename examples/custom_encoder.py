"""An encoder of your own, without a transformer: the mean vector of hashed n-grams and words."""

import re
from dataclasses import dataclass
from zlib import crc32

import numpy as np
import spacy
from thinc.api import Model

from spacy_arbo_el import SpanInputs
from spacy_arbo_el.base.arrays import offsets_of


@dataclass(frozen=True)
class FeatureReader:
    """Reads names as n-grams, and the text around them as words. Each span is a passage."""

    rows: int

    def read_mentions(self, model, texts, text_of, offsets):
        spans = [
            (texts[i], start, end)
            for i, (start, end) in zip(text_of, offsets.tolist())
        ]
        around = [text[max(a - 60, 0) : a] + text[b : b + 60] for text, a, b in spans]
        return self.read_texts(
            model, [(t[a:b], words) for (t, a, b), words in zip(spans, around)]
        )

    def read_texts(self, model, texts):
        passages = [
            self.ids_of(name.lower(), around.lower()) for name, around in texts
        ]
        lengths = np.array([len(passage) for passage in passages], dtype=np.int64)
        ids = np.array([i for passage in passages for i in passage], dtype=np.int32)
        first = np.zeros(len(passages), dtype=np.int32)
        return SpanInputs.one_span_each(
            ids, offsets_of(lengths), first, lengths - 1, first
        )

    def ids_of(self, name, around):
        ngrams = [f" {name} "[i : i + 3] for i in range(len(name))]
        features = ngrams + re.findall(r"\w{4,}", around)
        return [crc32(feature.encode("utf8")) % self.rows for feature in features]


@spacy.registry.architectures("HashedFeatures.v1")
def build_hashed_features(width: int, rows: int) -> Model:
    tower = Model(
        "hashed_features", forward, init=init, dims={"nO": width}, params={"E": None}
    )
    tower.attrs["reader"] = FeatureReader(rows)
    return tower


def init(model, X=None, Y=None):
    shape = model.attrs["reader"].rows, model.get_dim("nO")
    model.set_param(
        "E", model.ops.asarray2f(np.random.default_rng(0).normal(size=shape))
    )


def forward(model, X, is_train):
    table, lengths = model.get_param("E"), model.ops.asarray1i(X.lengths)

    def backprop(d_vectors):
        gradient = model.ops.alloc2f(*table.shape)
        model.ops.scatter_add(
            gradient, X.ids, model.ops.backprop_reduce_mean(d_vectors, lengths)
        )
        model.inc_grad("E", gradient)

    return model.ops.reduce_mean(table[X.ids], lengths), backprop
