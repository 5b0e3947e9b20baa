"""Explain a mention's link. The data that text and HTML show."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from ..base.display import shown_probability
from .annotations import Evidence, Link

# Candidates that are shown.
SHOWN = 5


@dataclass(frozen=True)
class Explanation:
    """An explanation of a mention's link, or of NIL. ``str()`` gives a few lines of text.

    mention: The surface form; "" for a link that is NIL and does not know it.
    link: What the mention was linked to, with candidates and evidence; None where the linker
        leaves the mention out.
    outcome: The decision and its reason in words; empty where only the link is known.
    titles: Titles of entities by id.
    expected: The entity that was asked about, "" for none.
    reason: Why the mention is not linked to ``expected``.
    compared: The first candidate, and what it is compared with: ``expected``, or the second. Empty
        where candidates are not ranked by features.
    contributions: How much each feature of the ranker puts the first before the other, in log-odds.
        ``examples/figures.py`` draws them.
    words: The same in words.
    context: How well the mention's context fits the descriptions of the entities whose name could
        be the mention; empty where it was not compared, since names leave no doubt or there is no
        description.
    coverage: The share of mentions whose entity the knowledge base has, as it was set, estimated or
        fitted; empty where the ranker has none.
    """

    mention: str
    link: Link | None
    outcome: str = ""
    titles: Mapping[str, str] = field(default_factory=dict)
    expected: str = ""
    reason: str = ""
    compared: tuple[str, ...] = ()
    contributions: Mapping[str, float] = field(default_factory=dict)
    words: str = ""
    context: str = ""
    coverage: str = ""

    def __str__(self) -> str:
        return "\n".join(self._lines())

    @property
    def presence(self) -> str:
        """The probability that any entity of the knowledge base is meant, in words."""
        if self.link is None or not self.link.ids:
            return ""
        coverage = f" ({self.coverage})" if self.coverage else ""
        return (
            f"in the knowledge base: {shown_probability(self.link.presence)}{coverage}; if so, "
            f"the first with a share of {shown_probability(self.link.shares[0])}"
        )

    def candidate_rows(self) -> Iterator[tuple[int, str, str, str, str]]:
        """The first candidates: rank, title, id, probability and share."""
        if self.link is None:
            return
        pairs = zip(self.link.candidates[:SHOWN], self.link.shares)
        for rank, (candidate, share) in enumerate(pairs, 1):
            title = self.titles.get(candidate.kb_id, candidate.title)
            yield (
                rank,
                title,
                candidate.kb_id,
                shown_probability(candidate.score),
                shown_probability(share),
            )

    @property
    def numbers(self) -> str:
        """The contributions of features, the largest first; empty where there are none."""
        largest = sorted(self.contributions.items(), key=lambda item: -abs(item[1]))
        return ", ".join(
            f"{name} {value:+.2f}" for name, value in largest if round(value, 2)
        )

    def _lines(self) -> Iterator[str]:
        yield f'"{self.mention}": {self.outcome}' if self.mention else self.outcome
        if self.link is not None:
            yield from map(_step, self.link.evidence)
            shown = [
                f"{_titled(kb_id, title)} {probability}"
                for _, title, kb_id, probability, _ in self.candidate_rows()
            ]
            if shown:
                yield f"  candidates: {'; '.join(shown)}"
                yield f"  {self.presence}"
        if self.words:
            yield f"  {self.words}"
        if self.context:
            yield f"  context fits: {self.context}"
        if self.reason:
            yield f"{self.expected}: {self.reason}"


def _step(step: Evidence) -> str:
    context = f" … {step.context} …" if step.context else ""
    if step.document and step.document not in step.id:
        context = f" in {step.document}{context}"
    return f'  {step.kind} {step.id} "{step.text}" ({shown_probability(step.weight)}){context}'


def outcome_of(link: Link, title: str, threshold: float | None = None) -> str:
    """Describe the decision on a mention, with its reason.

    title: Of the entity.
    threshold: The probability that a link must have; None where it is not known.
    """
    if not link.is_nil:
        return f"{_titled(link.kb_id, title)}, probability {shown_probability(link.score)}"
    if not link.ids:
        return "NIL: it has no candidates"
    if link.undecided:
        names = " and ".join(
            _titled(candidate.kb_id, candidate.title)
            for candidate in link.undecided[:SHOWN]
        )
        return f"NIL: undecided between {names}, which nothing tells apart"
    best = link.candidates[0]
    reason = (
        f"NIL: the most probable candidate, {_titled(best.kb_id, best.title)}, has a probability "
        f"of {shown_probability(best.score)}"
    )
    if threshold is None:
        return reason
    if link.score < threshold:
        return f"{reason}, below the threshold of {threshold:g}"
    return "NIL: by a correction, or no entity reaches it"


def _titled(kb_id: str, title: str) -> str:
    return f"{kb_id} ({title})" if title else kb_id
