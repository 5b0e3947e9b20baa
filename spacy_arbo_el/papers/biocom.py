"""BioCoM (Ujiie et al. 2021): linking by contexts, learned from raw text and a dictionary.

The corpus is that of ``arbo silver``, entities have no text (``NoText.v1``), a mention is its
marker's vector, and negatives are ``InBatchMentionNegatives.v1`` of ``moleman.py``. Here: batches
by concept, the other mentions of the concept as positives, the multi-similarity loss with its
mining (§3.2), and the vote of the nearest contexts (§3.3).

Other than in the paper, the text is some megabytes in place of 100 million sentences, and the
encoder is not PubMedBERT.
"""

import random
from bisect import bisect_right
from collections import defaultdict
from dataclasses import dataclass
from itertools import chain, groupby
from typing import Dict, Iterable, Iterator, List, Optional, Sequence, Tuple

import numpy as np
from spacy.pipeline import Sentencizer
from spacy.training import Example
from spacy.util import registry

from ..arrays import TopK, resized_table
from ..calibration import Calibration
from ..errors import ArboError, Errors
from ..inference.decisions import Decisions, Paths, Step, start_of_path
from ..mentions.getters import SpanGetter
from ..reranking.protocol import RankedMentions
from ..retrieval.neighbours import Neighbours
from ..settings import check_count, check_number, check_positive
from ..training.batchers import Batcher, CorpusMention, examples_of, labelled_mentions
from ..training.cache import EmbeddingCache
from ..training.losses import LossAndGradient, softmax
from ..training.positives import mentions_of
from ..training.table import GoldTable

# Mentions whose votes are counted at a time, to bound memory.
BLOCK = 4096


@registry.batchers("spacy-arbo-el.batch_by_concept.v1")
def batch_by_concept(
    n_concepts: int,
    n_mentions: int,
    getter: Optional[SpanGetter] = None,
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

    def batches(examples: Iterable[Example]) -> Iterator[List[Example]]:
        corpus = list(examples)
        mentions = labelled_mentions(corpus, getter)
        beside = _of_sentences(mentions, corpus) if sentences else {}
        groups = _groups(mentions, n_mentions)
        if len(groups) < n_concepts:
            raise ArboError(Errors.E615.format(count=len(groups), wanted=n_concepts))
        rng = np.random.default_rng(random.getrandbits(63))
        left = np.array([len(of_concept) for of_concept in groups])
        while left.any():
            count = min(n_concepts, int((left > 0).sum()))
            concepts = rng.choice(len(left), count, replace=False, p=left / left.sum())
            left[concepts] -= 1
            chosen = [mention for c in concepts for mention in groups[c][left[c]]]
            batch = chain.from_iterable(beside.get(mention, [mention]) for mention in chosen)
            yield examples_of(list(dict.fromkeys(batch)), corpus)

    return batches


def _of_sentences(
    mentions: Sequence[CorpusMention], corpus: Sequence[Example]
) -> Dict[CorpusMention, List[CorpusMention]]:
    """All mentions of the sentence that each mention begins in."""
    groups: Dict[Tuple[int, int], List[CorpusMention]] = defaultdict(list)
    for number, of_example in groupby(mentions, lambda mention: mention.example):
        doc = corpus[number].reference
        with_sentences = doc if doc.has_annotation("SENT_START") else Sentencizer()(doc.copy())
        starts = [sentence.start_char for sentence in with_sentences.sents]
        for mention in of_example:
            groups[number, bisect_right(starts, mention.offsets[0])].append(mention)
    return {mention: group for group in groups.values() for mention in group}


def _groups(mentions: List[CorpusMention], size: int) -> List[List[List[CorpusMention]]]:
    """Divide each concept's mentions at random into groups. The last may be smaller."""
    random.shuffle(mentions)
    by_concept: Dict[Tuple[str, ...], List[CorpusMention]] = defaultdict(list)
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

    def __call__(self, queries: np.ndarray, table: GoldTable, cache: EmbeddingCache) -> np.ndarray:
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
    margin: Optional[float] = None

    scale = 1.0
    offset = 0.0
    learned = False

    def __post_init__(self) -> None:
        check_positive("loss.alpha", self.alpha)
        check_positive("loss.beta", self.beta)
        check_number("loss.base", self.base)
        if self.margin is not None:
            check_number("loss.margin", self.margin)

    def __call__(
        self, logits: np.ndarray, positive: np.ndarray, valid: np.ndarray
    ) -> LossAndGradient:
        if self.margin is not None:
            valid = valid & mined_pairs(logits, positive, valid, self.margin)
        distances = logits.astype(np.float64) - self.base
        pull, d_pull = _log_one_plus_sum(-self.alpha * distances, positive & valid)
        push, d_push = _log_one_plus_sum(self.beta * distances, ~positive & valid)
        return pull / self.alpha + push / self.beta, d_push - d_pull


def mined_pairs(
    similarity: np.ndarray, positive: np.ndarray, valid: np.ndarray, margin: float
) -> np.ndarray:
    """The pair mining of the multi-similarity loss (Wang et al. 2019, §3.2).

    RETURNS: (b, n) bool, which targets count. A query without negatives has no positives, and the
        other way round.
    """
    is_positive, is_negative = positive & valid, ~positive & valid
    largest = np.where(is_negative, similarity, -np.inf).max(axis=1, keepdims=True, initial=-np.inf)
    least = np.where(is_positive, similarity, np.inf).min(axis=1, keepdims=True, initial=np.inf)
    hard_positive = is_positive & (similarity - margin < largest)
    hard_negative = is_negative & (similarity + margin > least)
    return hard_positive | hard_negative


def _log_one_plus_sum(values: np.ndarray, keep: np.ndarray) -> LossAndGradient:
    """``log(1 + sum exp(values))`` over kept values, with gradient. (b,), and (b, n)."""
    kept = np.where(keep, values, -np.inf)
    with_one = np.concatenate([kept, np.zeros((len(kept), 1))], axis=1)
    total, shares = softmax(with_one)
    return total, shares[:, :-1]


@registry.misc("spacy-arbo-el.ExemplarVote.v1")
@dataclass(frozen=True)
class ExemplarVote:
    """Links mentions by vote of their nearest exemplars. BioCoM, §3.3.

    The probability of the link is that of the entity's likeliest voter. By default, texts of
    entities do not vote, so use it where most entities have exemplars::

        [components.arbo_linker.inference]
        @misc = "spacy-arbo-el.ExemplarVote.v1"
        n_exemplars = 15

    n_exemplars: How many exemplars vote. The paper's best number is 15.
    temperature: A vote has the weight exp(log-odds / temperature), by the log-odds that the voter
        is right. 1.0 weighs votes by their odds; None gives equal weights, as in the papers.
    texts: Whether texts of entities vote as well, as if they were exemplars (MOLEMAN, §3.2.3). The
        ``n_exemplars`` of both with the largest log-odds vote. All texts of an entity count as one
        vote.
    """

    n_exemplars: int = 15
    temperature: Optional[float] = None
    texts: bool = False

    def __post_init__(self) -> None:
        check_count("inference.n_exemplars", self.n_exemplars, least=1)
        if self.temperature is not None:
            check_positive("inference.temperature", self.temperature)

    @property
    def n_mentions(self) -> int:
        return 0

    def decide(
        self, ranked: RankedMentions, calibration: Calibration, min_logit: float
    ) -> Decisions:
        voters, rows = self.voters(ranked.neighbours, calibration)
        count = len(ranked.neighbours)
        # A last column for mentions without voters.
        voters = voters.resized(voters.width + 1)
        owners, log_odds = voters.ids, voters.scores
        rows = resized_table(rows, voters.width, -1)
        parts = [slice(start, start + BLOCK) for start in range(0, count, BLOCK)]
        blocks = [self.votes(owners[part], log_odds[part]) for part in parts]
        votes = np.concatenate(blocks) if blocks else np.zeros(owners.shape)
        # Of equal numbers of votes the first counts, which is that of the likeliest voter.
        chosen = votes.argmax(axis=1)[:, None]
        first, row, logits = (
            np.take_along_axis(values, chosen, axis=1)[:, 0] for values in (owners, rows, log_odds)
        )
        linked = (first >= 0) & (logits >= min_logit)

        def path(mention: int) -> List[Step]:
            if not linked[mention]:
                return []
            last = Step("mention", mention, float(logits[mention]))
            return [*start_of_path(int(first[mention]), int(row[mention])), last]

        return Decisions(
            np.where(linked, first, -1),
            np.where(linked, logits, -np.inf).astype(np.float32),
            Paths(path, count),
        )

    def voters(self, neighbours: Neighbours, calibration: Calibration) -> Tuple[TopK, np.ndarray]:
        """Entities of each mention's voters, by voters' log-odds.

        RETURNS: Positions in the KB (m, k), and the row of each voter in the exemplar store, -1 for
            a text.
        """
        exemplars = neighbours.exemplars.first(self.n_exemplars)
        entities = neighbours.exemplar_entities[:, : exemplars.width]
        log_odds = calibration.logits("exemplar", exemplars.scores)
        if not self.texts:
            return TopK(entities, log_odds), exemplars.ids
        texts = neighbours.entities.first(self.n_exemplars)
        log_odds = np.concatenate([log_odds, calibration.logits("entity", texts.scores)], axis=1)
        # Exemplars before texts where they are equally likely.
        order = np.argsort(-log_odds, axis=1, kind="stable")[:, : self.n_exemplars]
        columns = (
            np.concatenate([entities, texts.ids], axis=1),
            log_odds,
            np.concatenate([exemplars.ids, np.full_like(texts.ids, -1)], axis=1),
        )
        owners, log_odds, rows = (np.take_along_axis(column, order, axis=1) for column in columns)
        return TopK(owners, log_odds), rows

    def votes(self, owners: np.ndarray, log_odds: np.ndarray) -> np.ndarray:
        """Votes for each voter's entity: (m, k) float64. They are in its first column.

        The other columns of an entity, and those without one, have -inf.

        owners: (m, k) int64, the entity of each voter, -1 for none.
        log_odds: (m, k) float32, largest first; +inf for a voter that is certain.
        """
        valid = owners >= 0
        weight = valid.astype(np.float64)
        if self.temperature is not None:
            best = np.where(valid, log_odds, -np.inf).max(axis=1, keepdims=True)
            # The best has a difference of 0, also where its log-odds are infinite.
            is_best = ~valid | (log_odds == best)
            below = np.where(is_best, 0.0, log_odds) - np.where(is_best, 0.0, best)
            weight = np.where(valid, np.exp(below / self.temperature), 0.0)
        same = (owners[:, :, None] == owners[:, None, :]) & valid[:, None, :]
        votes = (same * weight[:, None, :]).sum(axis=2)
        earlier = np.tril(np.ones((owners.shape[1],) * 2, dtype=bool), -1)
        return np.where(valid & ~(same & earlier).any(axis=2), votes, -np.inf)
