"""The coverage of a list: the share of mentions whose entity it has, set or estimated.

The probability of a candidate is that of presence, that the list has the mention's entity at all,
times the candidate's share. A ranker's presence is for the share of mentions whose entity was there
where it was fitted. The shift to another share changes presence alone.

In other texts, or for another list, that share is another one. The likelihoods of the evidence
stay, so the share is estimated from mentions without labels by expectation maximization (Fellegi
and Sunter, 1969, for the linkage of records; Saerens, Latinne and Decaestecker, 2002, for the
output of classifiers), and the probabilities are moved to it.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from spacy.language import Language
from spacy.tokens import Doc
from spacy.util import registry

from ..base.arrays import take_rows
from ..base.calibration import probability
from ..base.errors import Errors
from ..base.settings import is_number
from ..mentions.record import MentionRecord
from ..ranking.ranking import RankedMentions, Ranking
from .by_label import OTHER_LABELS, ByLabel

# A share of all mentions, shares by label, "estimate", or None for that of the ranker's fit.
CoverageSetting = float | Mapping[str, float] | str | None
# A corpus that is linked as a whole has its coverage estimated first.
ESTIMATE = "estimate"
# Docs, texts, or the path of documents.
CoverageSource = Iterable[Doc | str] | str | Path
# Reads the documents of a path.
READER = "spacy-arbo-el.Documents.v1"
# Fewer mentions say too little of a share.
MIN_MENTIONS = 30
# The prior counts as so many mentions, of which half have their entity in the list. It keeps the
# share from 0 and 1.
PRIOR_MENTIONS = 4.0
MAX_STEPS = 1000
TOLERANCE = 1e-7


def check_coverage(value: CoverageSetting) -> CoverageSetting:
    """The setting, if it is valid; else ValueError. RETURNS: It with plain floats."""
    if value is None or value == ESTIMATE:
        return value
    if isinstance(value, Mapping) and value:
        return {str(label): _share(share) for label, share in value.items()}
    return _share(value)


def _share(value: Any) -> float:
    if not is_number(value) or not 0.0 < value < 1.0:
        raise Errors.E403(value=value)
    return float(value)


def with_coverage(
    ranking: Ranking,
    records: Sequence[MentionRecord],
    corrected: np.ndarray,
    shares: CoverageSetting,
    fitted: float,
) -> Ranking:
    """The ranking for other shares of mentions whose entity the list has.

    records: The m mentions.
    corrected: (m,) bool, mentions that a correction holds for; they stay unchanged.
    shares: As ``coverage``; nothing changes by None or "estimate".
    fitted: The coverage that the ranking is for.
    """
    if shares is None or isinstance(shares, str) or not len(records):
        return ranking
    share = ByLabel(shares, fitted)
    labels = [record.label for record in records]
    shifts = {label: shift_between(fitted, share.of(label)) for label in set(labels)}
    return ranking.shifted(
        np.where(corrected, 0.0, [shifts[label] for label in labels])
    )


class ShareEstimate(NamedTuple):
    """An estimated share.

    share: Between 0 and 1, both excluded.
    standard_error: Of the share, by documents: mentions of one document are alike.
    """

    share: float
    standard_error: float

    def __str__(self) -> str:
        return f"{self.share:.0%} ± {self.standard_error:.0%}"


def shift_between(fitted: float, target: float) -> float:
    """The shift of log-odds from one share of mentions in the list to another."""
    return float(np.log(target / (1 - target)) - np.log(fitted / (1 - fitted)))


def estimate_share(
    log_odds: np.ndarray, fitted: float, documents: np.ndarray
) -> ShareEstimate:
    """Estimate the share of mentions whose entity the list has.

    log_odds: (m,) float, that the list has each mention's entity, for the share ``fitted``.
    fitted: The share that the log-odds are for.
    documents: (m,) int64, the document of each mention.
    """
    # The log of how many times as likely the evidence is for a mention whose entity is there.
    ratios = log_odds.astype(np.float64) - np.log(fitted / (1 - fitted))
    share = 0.5
    for _ in range(MAX_STEPS):
        posterior = probability(ratios + np.log(share / (1 - share)))
        new = (posterior.sum() + PRIOR_MENTIONS / 2) / (len(ratios) + PRIOR_MENTIONS)
        change = abs(new - share)
        share = float(new)
        if change < TOLERANCE:
            break
    return ShareEstimate(share, _standard_error(ratios, share, documents))


def _standard_error(ratios: np.ndarray, share: float, documents: np.ndarray) -> float:
    """The standard error of a share: the sandwich over documents, with the prior's information."""
    posterior = probability(ratios + np.log(share / (1 - share)))
    # The derivative of each mention's log-likelihood by the share.
    slopes = posterior / share - (1 - posterior) / (1 - share)
    prior = PRIOR_MENTIONS / 2 * (1 / share**2 + 1 / (1 - share) ** 2)
    information = float((slopes**2).sum()) + prior
    _, number = np.unique(documents, return_inverse=True)
    by_document = np.bincount(number, weights=slopes)
    return float(np.sqrt((by_document**2).sum() + prior) / information)


@dataclass(frozen=True)
class CoverageEstimate:
    """An estimate of coverage from mentions without labels.

    share: The share of mentions whose entity the list has, and its standard error.
    mentions: How many mentions it is from.
    by_label: The same of each label with enough mentions, where there are several labels.
    nil_before, nil_after: The share of the mentions that are NIL before and with the estimate.
    """

    share: ShareEstimate
    mentions: int
    by_label: Mapping[str, ShareEstimate]
    nil_before: float
    nil_after: float

    @property
    def setting(self) -> float | dict[str, float]:
        """The estimate as a value of a linker's ``coverage``. Other labels have that of all."""
        if not self.by_label:
            return self.share.share
        shares = {label: estimate.share for label, estimate in self.by_label.items()}
        return {**shares, OTHER_LABELS: self.share.share}

    def __str__(self) -> str:
        lines = [
            f"coverage {self.share}, estimated from {self.mentions} mentions: the list has "
            "the entity of so many of them",
            *(f"  {label}: {share}" for label, share in self.by_label.items()),
            f"NIL {self.nil_before:.0%} → {self.nil_after:.0%}",
        ]
        return "\n".join(lines)


def estimate_coverage(
    ranked: RankedMentions, fitted: float, threshold: float, before: CoverageSetting
) -> CoverageEstimate:
    """Estimate coverage from ranked mentions, by label where there are several.

    ranked: Mentions with the presence of the ranker's fit, ``fitted``.
    threshold: The probability that a link must have.
    before: The setting that NIL is counted with before.

    Raises ValueError where there are fewer than ``MIN_MENTIONS`` mentions.
    """
    rows = np.flatnonzero(~ranked.corrected)
    if len(rows) < MIN_MENTIONS:
        raise Errors.E405(count=len(rows), least=MIN_MENTIONS)
    presence = ranked.ranking.presence[rows]
    documents = ranked.batch.documents[rows]
    records = take_rows(ranked.batch.records, rows)
    labels = np.array([record.label for record in records], dtype=object)
    counts = Counter(labels.tolist())
    by_label = {}
    for label in sorted(counts) if len(counts) > 1 else ():
        if counts[label] >= MIN_MENTIONS:
            has_label = labels == label
            by_label[label] = estimate_share(
                presence[has_label], fitted, documents[has_label]
            )
    overall = estimate_share(presence, fitted, documents)
    ranking = ranked.ranking.take(rows)
    none = np.zeros(len(rows), dtype=bool)
    needed = np.array(list(map(ByLabel(threshold).of, labels.tolist())))

    def unlinked(shares: CoverageSetting) -> float:
        shifted = with_coverage(ranking, records, none, shares, fitted)
        best = probability(shifted.candidates.resized(1).scores[:, 0])
        return float((best < needed).mean())

    estimate = CoverageEstimate(overall, len(rows), by_label, unlinked(before), 0.0)
    return replace(estimate, nil_after=unlinked(estimate.setting))


def documents_with_mentions(
    source: CoverageSource,
    component: Any,
    nlp: Language | None,
    has_mentions: Callable[[Doc], bool],
) -> Iterator[Doc]:
    """Docs with their mentions.

    source: Docs that have mentions are given unchanged. In the others, and in texts, the
        components of the pipeline before the linker find mentions.
    nlp: Its pipeline; None where it is in none.
    """
    if isinstance(source, (str, Path)):
        read = registry.readers.get(READER)(source)
        items: Iterable[Doc | str] = read(_known(nlp, component))
    else:
        items = source
    bare: list[Doc | str] = []
    for item in items:
        if isinstance(item, Doc) and has_mentions(item):
            yield item
        else:
            bare.append(item)
    if not bare:
        return
    nlp = _known(nlp, component)
    components = list(nlp.pipeline)
    before = list(takewhile(lambda named: named[1] is not component, components))
    later_components = [name for name, _ in components[len(before) :]]
    yield from nlp.pipe(bare, disable=later_components)


def _known(nlp: Language | None, component: Any) -> Language:
    if nlp is None:
        raise Errors.E406(name=component.name)
    return nlp
