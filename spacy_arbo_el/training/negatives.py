"""Which nodes each mention of a batch should move away from."""

from typing import Callable, Sequence

import numpy as np
from spacy.util import registry

from ..kb.texts import DistinctTexts
from ..retrieval.entities import fill, first_of_each
from ..retrieval.exact import Forbid, forbid_mask, forbid_pairs, nearest
from .cache import EmbeddingCache
from .positives import gold_texts
from .table import GoldTable

Negatives = Callable[[np.ndarray, GoldTable, EmbeddingCache], np.ndarray]


@registry.misc("spacy-arbo-el.HardNegatives.v1")
def hard_negatives(k: int = 10, mention_share: float = 0.5, same_type: bool = False) -> Negatives:
    """The nearest wrong entities and the nearest wrong mentions, by cached vectors (paper, §2.3).

    k: Negatives of a mention in all.
    mention_share: The share of mentions among them, the rest are entities; 0.5 in the paper,
        0.0 gives its k-NN negatives baseline.
    same_type: Only entities of the mention's type (its label), and mentions with the same label.

    RETURNS: Function (mentions (b,), table, cache) -> (b, k) int64 nodes, -1 for none.
    """
    from_mentions = int(round(k * mention_share))
    from_entities = k - from_mentions

    def choose(mentions: np.ndarray, table: GoldTable, cache: EmbeddingCache) -> np.ndarray:
        queries, metric = cache.mentions[mentions], cache.similarity.metric
        other_texts = [forbid_pairs(*table.own_texts(mentions))]
        # Mentions without a gold id could be of any entity.
        other_mentions = [
            forbid_pairs(*table.same_mentions(mentions)),
            forbid_mask(table.cluster < 0),
        ]
        if same_type:
            label = table.label[mentions]
            other_texts.append(forbid_mask(~table.text_types.T[label]))
            other_mentions.append(forbid_mask(table.label != label[:, None]))
        # Names of one entity are near each other: look further, then keep the best of each.
        wanted = from_entities * 4
        _, texts = nearest(queries, cache.device_texts, wanted, metric, _all_of(other_texts))
        entities = _one_text_each(cache.distinct, _filled_up(texts, wanted), from_entities)
        _, others = nearest(
            queries, cache.device_mentions, from_mentions, metric, _all_of(other_mentions)
        )
        others = _filled_up(others, from_mentions)
        others = np.where(others >= 0, others + table.texts, -1)
        return np.concatenate([entities, others], axis=1)

    return choose


def _all_of(forbidden: Sequence[Forbid]) -> Forbid:
    def forbid(scores, start: int) -> None:
        for one in forbidden:
            one(scores, start)

    return forbid


def _filled_up(rows: np.ndarray, k: int) -> np.ndarray:
    """(b, k') rows -> (b, k), with -1 for none."""
    return np.pad(rows, ((0, 0), (0, k - rows.shape[1])), constant_values=-1)


def _one_text_each(distinct: DistinctTexts, texts: np.ndarray, k: int) -> np.ndarray:
    """The nearest text of each of the k nearest entities, (b, k)."""
    there = texts >= 0
    mention = np.nonzero(there)[0]
    text = texts[there]
    owner = distinct.row_entities[distinct.row_offsets[:-1][text]]
    return fill(text, first_of_each(mention, owner, len(texts), k), -1)


@registry.misc("spacy-arbo-el.InBatchNegatives.v1")
def in_batch_negatives() -> Negatives:
    """The gold entities of the batch's other mentions (the baseline of the paper's §3.2).

    Entities that are gold for a mention as well are left out for it, and none comes twice.

    RETURNS: Function (mentions (b,), table, cache) -> (b, k) int64 nodes, -1 for none; k is the
        number of different gold texts in the batch.
    """

    def choose(mentions: np.ndarray, table: GoldTable, cache: EmbeddingCache) -> np.ndarray:
        texts = gold_texts(mentions, table, cache)
        texts = np.unique(texts[texts >= 0])
        nodes = np.tile(texts, (len(mentions), 1))
        mention, own = table.own_texts(mentions)
        at = np.searchsorted(texts, own)
        there = at < len(texts)
        there[there] = texts[at[there]] == own[there]
        nodes[mention[there], at[there]] = -1
        return nodes

    return choose
