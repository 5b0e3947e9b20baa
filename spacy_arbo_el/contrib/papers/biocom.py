"""BioCoM (Ujiie and others, 2021): linking by contexts, learned from raw text and a dictionary.

The corpus is that of ``arbo silver``, entities have no text (``NoText.v1``), a mention is its
marker's vector, negatives are ``InBatchMentionNegatives.v1``, and the nearest contexts vote
(``ExemplarVote.v1``, §3.3). Here: batches by concept, the other mentions of the concept as
positives, and the multi-similarity loss with its mining (§3.2).

Other than in the paper, the text is some megabytes in place of 100 million sentences, and the
encoder is not PubMedBERT.
"""

import random
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, groupby

import numpy as np
import torch
from spacy.pipeline import Sentencizer
from spacy.training import Example
from spacy.util import registry
from torch import Tensor
from torch.nn.functional import pad

from ...base.settings import check_count, check_number, check_positive
from ...mentions.getters import SpanGetter
from ...training.batchers import Batcher, CorpusMention, examples_of, labelled_mentions
from ...training.cache import EmbeddingCache
from ...training.losses import LEAST
from ...training.positives import mentions_of
from ...training.table import GoldTable
from .errors import PaperMessages


@registry.batchers("spacy-arbo-el.batch_by_concept.v1")
def batch_by_concept(
    n_concepts: int,
    n_mentions: int,
    getter: SpanGetter | None = None,
    sentences: bool = False,
) -> Batcher:
    """Batches of different concepts with some mentions each. They are drawn from all documents.

    Use it where positives are mentions, and with in-batch negatives. A concept is a set of gold
    ids::

        [training.batcher]
        @batchers = "spacy-arbo-el.batch_by_concept.v1"
        n_concepts = 16
        n_mentions = 2
        sentences = true

    The corpus is read into memory. In an epoch, each labelled mention occurs once. Concepts are
    drawn by how many of their mentions are left, and the last batches have fewer. A corpus with
    fewer concepts is an error.

    n_concepts: The number of concepts in a batch.
    n_mentions: The number of mentions of each. Concepts with fewer give all.
    getter: Where mentions are, as in the component's ``mentions.getter``; None for ``doc.ents``.
    sentences: Whether the other mentions of their sentences take part too (appendix E, "all").
    """
    check_count("batcher.n_concepts", n_concepts, least=1)
    check_count("batcher.n_mentions", n_mentions, least=1)

    def batches(examples: Iterable[Example]) -> Iterator[list[Example]]:
        corpus = list(examples)
        mentions = labelled_mentions(corpus, getter)
        beside = _of_sentences(mentions, corpus) if sentences else {}
        groups = _groups(mentions, n_mentions)
        if len(groups) < n_concepts:
            raise PaperMessages.E615(count=len(groups), wanted=n_concepts)
        rng = np.random.default_rng(random.getrandbits(63))
        unused = np.array([len(of_concept) for of_concept in groups])
        while unused.any():
            count = min(n_concepts, int((unused > 0).sum()))
            concepts = rng.choice(
                len(unused), count, replace=False, p=unused / unused.sum()
            )
            unused[concepts] -= 1
            chosen = [mention for c in concepts for mention in groups[c][unused[c]]]
            batch = chain.from_iterable(
                beside.get(mention, [mention]) for mention in chosen
            )
            yield examples_of(list(dict.fromkeys(batch)), corpus)

    return batches


def _of_sentences(
    mentions: Sequence[CorpusMention], corpus: Sequence[Example]
) -> dict[CorpusMention, list[CorpusMention]]:
    """All mentions of the sentence that each mention begins in."""
    groups: dict[tuple[int, int], list[CorpusMention]] = defaultdict(list)
    for number, of_example in groupby(mentions, lambda mention: mention.example):
        doc = corpus[number].reference
        with_sentences = (
            doc if doc.has_annotation("SENT_START") else Sentencizer()(doc.copy())
        )
        starts = [sentence.start_char for sentence in with_sentences.sents]
        for mention in of_example:
            groups[number, bisect_right(starts, mention.offsets[0])].append(mention)
    return {mention: group for group in groups.values() for mention in group}


def _groups(
    mentions: list[CorpusMention], size: int
) -> list[list[list[CorpusMention]]]:
    """Divide each concept's mentions at random into groups. The last may be smaller."""
    random.shuffle(mentions)
    by_concept: dict[tuple[str, ...], list[CorpusMention]] = defaultdict(list)
    for mention in mentions:
        by_concept[mention.concept].append(mention)
    return [
        [members[start : start + size] for start in range(0, len(members), size)]
        for members in by_concept.values()
    ]


@registry.misc("spacy-arbo-el.InBatchPositives.v1")
@dataclass(frozen=True)
class InBatchPositives:
    """The step's other mentions of the query's entity (BioCoM, §3.2).

    Use it with ``batch_by_concept.v1``, which gives several mentions of each entity, and with
    ``InBatchMentionNegatives.v1``::

        [components.arbo_linker.objective.positives]
        @misc = "spacy-arbo-el.InBatchPositives.v1"

    Queries without another mention of their entity are left out.
    """

    def __call__(
        self, queries: np.ndarray, table: GoldTable, cache: EmbeddingCache
    ) -> np.ndarray:
        same = table.same_entity(mentions_of(queries, table))
        np.fill_diagonal(same, False)
        nodes = np.where(same, queries, -1)
        width = int(same.sum(axis=1).max(initial=0))
        # Those that there are come first.
        return -np.sort(-nodes, axis=1)[:, :width]


@registry.losses("spacy-arbo-el.MultiSimilarity.v1")
@dataclass(frozen=True)
class MultiSimilarity:
    """Multi-similarity loss of SapBERT (§2) and BioCoM (§3.2). Similarities are raw.

    Use it for names and synonyms, and for contexts, with cosine similarity::

        [components.arbo_linker.objective.loss]
        @losses = "spacy-arbo-el.MultiSimilarity.v1"
        margin = 0.1

    The gradient is largest for the least similar positives and the most similar negatives.

    alpha: How much the least similar positives dominate.
    beta: How much the most similar negatives dominate.
    base: The similarity that positives should be above, and negatives below.
    margin: Of pair mining: only positives count that are not this much more similar than the most
        similar negative, and negatives that are not this much less similar than the least similar
        positive. None for no mining: all count.
    """

    alpha: float = 2.0
    beta: float = 50.0
    base: float = 0.5
    margin: float | None = None

    scale = 1.0
    offset = 0.0

    def __post_init__(self) -> None:
        check_positive("loss.alpha", self.alpha)
        check_positive("loss.beta", self.beta)
        check_number("loss.base", self.base)
        if self.margin is not None:
            check_number("loss.margin", self.margin)

    def __call__(self, logits: Tensor, positive: Tensor, valid: Tensor) -> Tensor:
        if self.margin is not None:
            valid = valid & mined_pairs(logits, positive, valid, self.margin)
        distances = logits - self.base
        pull = _log_one_plus_sum(-self.alpha * distances, positive & valid)
        push = _log_one_plus_sum(self.beta * distances, ~positive & valid)
        return pull / self.alpha + push / self.beta


def mined_pairs(
    similarity: Tensor, positive: Tensor, valid: Tensor, margin: float
) -> Tensor:
    """The pair mining of the multi-similarity loss (Wang and others, 2019, §3.2).

    RETURNS: (b, n) bool, which targets count. A query without negatives has no positives, and the
        other way round.
    """
    is_positive = positive & valid
    is_negative = ~positive & valid
    largest = torch.where(is_negative, similarity, -torch.inf).amax(1, keepdim=True)
    least = torch.where(is_positive, similarity, torch.inf).amin(1, keepdim=True)
    hard_positive = is_positive & (similarity - margin < largest)
    hard_negative = is_negative & (similarity + margin > least)
    return hard_positive | hard_negative


def _log_one_plus_sum(values: Tensor, keep: Tensor) -> Tensor:
    """``log(1 + sum exp(values))`` over kept values, (b,)."""
    return pad(torch.where(keep, values, LEAST), (0, 1)).logsumexp(1)
