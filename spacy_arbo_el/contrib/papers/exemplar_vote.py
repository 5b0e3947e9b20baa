"""The vote of exemplars, by which BioCoM and MOLEMAN link."""

from dataclasses import dataclass

import numpy as np
from spacy.util import registry

from ...base.arrays import TopK, resized_table
from ...base.calibration import Calibration
from ...base.settings import check_count, check_positive
from ...ranking.decisions import Decisions, decide_each
from ...ranking.ranking import RankedMentions
from ...retrieval.neighbours import Neighbours

# Mentions whose votes are counted at a time, to bound memory.
BLOCK = 4096


@registry.misc("spacy-arbo-el.ExemplarVote.v1")
@dataclass(frozen=True)
class ExemplarVote:
    """Links mentions by vote of their nearest exemplars (BioCoM, §3.3).

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
    temperature: float | None = None
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
        owners = voters.ids
        log_odds = voters.scores
        rows = resized_table(rows, voters.width, -1)
        slices = [slice(start, start + BLOCK) for start in range(0, count, BLOCK)]
        blocks = [
            self.votes(owners[rows_of_slice], log_odds[rows_of_slice])
            for rows_of_slice in slices
        ]
        votes = np.concatenate(blocks) if blocks else np.zeros(owners.shape)
        # Of equal numbers of votes the first counts, which is that of the likeliest voter.
        chosen = votes.argmax(axis=1)[:, None]
        first, row, logits = (
            np.take_along_axis(values, chosen, axis=1)[:, 0]
            for values in (owners, rows, log_odds)
        )
        return decide_each(first, logits, row, min_logit)

    def voters(
        self, neighbours: Neighbours, calibration: Calibration
    ) -> tuple[TopK, np.ndarray]:
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
        log_odds = np.concatenate(
            [log_odds, calibration.logits("entity", texts.scores)], axis=1
        )
        # Exemplars before texts where they are equally likely.
        order = np.argsort(-log_odds, axis=1, kind="stable")[:, : self.n_exemplars]
        columns = (
            np.concatenate([entities, texts.ids], axis=1),
            log_odds,
            np.concatenate([exemplars.ids, np.full_like(texts.ids, -1)], axis=1),
        )
        owners, log_odds, rows = (
            np.take_along_axis(column, order, axis=1) for column in columns
        )
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
