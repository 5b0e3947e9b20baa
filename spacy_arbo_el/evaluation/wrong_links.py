"""Wrong links on annotated mentions, by cause."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from ..base.display import counted, shown_probability
from ..kb.entity import NIL
from ..linker import ArboLinker
from ..mentions.annotations import Link, named
from ..mentions.explanation import SHOWN
from ..mentions.getters import offsets_of_span
from ..mentions.record import ID_SEPARATOR, document_id, text_fingerprint
from ..mentions.sentences import sentence_of
from ..names.spellings import folded
from ..records.cells import csv_text
from .outcomes import Outcome
from .report import seen_by

# Where a link went wrong. Each wrong link has one of these kinds.
ABSENT = "not in the knowledge base"
NOT_NIL = "linked where NIL is correct"
LEFT_OUT = "left out by label"
NOT_RETRIEVED = "not retrieved"
NOT_LINKED = "best candidate but not linked"
BEHIND = "retrieved but behind"
# What makes a mention hard. A wrong link may have several of these traits.
ABBREVIATION = "abbreviation"
UNSEEN = "entity without a training mention"
AMBIGUOUS = "name of another entity too"
TRAITS = (ABBREVIATION, UNSEEN, AMBIGUOUS)

_ABBREVIATION = re.compile(r"\w[\w/-]{0,8}\w")
# The columns of a table of wrong links.
COLUMNS = (
    *("kind", "traits", "confidence", "document", "start", "end", "text", "label"),
    *("gold", "gold_title", "gold_rank", "predicted", "predicted_title"),
    *("sentence", "candidates", "path"),
)


@dataclass(frozen=True)
class WrongLink:
    """A gold mention whose link is wrong.

    document: The ``doc_id`` of its document, or the fingerprint where it has none.
    start, end: Its characters in the document.
    before, text, after: Its sentence.
    gold: The correct ids, empty for NIL.
    predicted: The id that it was linked to, or "NIL".
    titles: The titles of both, by id.
    link: What the linker said.
    kind: Where it went wrong: one of the kinds of this module.
    traits: What makes it hard, of ``TRAITS``.
    rank: The place of the correct entity among the candidates, from 1; 0 where it is none.
    """

    document: str
    start: int
    end: int
    before: str
    text: str
    after: str
    label: str
    gold: tuple[str, ...]
    predicted: str
    titles: Mapping[str, str]
    link: Link
    kind: str
    traits: tuple[str, ...]
    rank: int

    @property
    def confidence(self) -> float:
        """The linker's confidence in its error. For NIL, that no candidate is right."""
        return 1.0 - self.link.score if self.predicted == NIL else self.link.score

    def row(self) -> tuple[object, ...]:
        """The values of ``COLUMNS``."""
        best = (
            f"{named(candidate.kb_id, candidate.title)} {shown_probability(candidate.score)}"
            for candidate in self.link.candidates[:SHOWN]
        )
        return (
            self.kind,
            "; ".join(self.traits),
            round(self.confidence, 4),
            self.document,
            self.start,
            self.end,
            self.text,
            self.label,
            ID_SEPARATOR.join(self.gold) or NIL,
            ID_SEPARATOR.join(self.titles.get(kb_id, "") for kb_id in self.gold),
            self.rank or "",
            self.predicted,
            self.titles.get(self.predicted, ""),
            f"{self.before}{self.text}{self.after}",
            "; ".join(best),
            self.link.path,
        )


def wrong_links(linker: ArboLinker, results: Iterable[Outcome]) -> list[WrongLink]:
    """Gold mentions with wrong links, the most confident first.

    linker: What linked them. Its knowledge base is as it was.
    results: Outcomes with their spans.
    """
    wrong = [
        outcome
        for outcome in results
        if outcome.gold is not None and not outcome.is_correct
    ]
    titles = _titles(linker, wrong)
    seen = seen_by(linker).ids
    owners = _owners(
        linker, [outcome.span.text for outcome in wrong if outcome.span is not None]
    )
    links = [_wrong_link(linker, outcome, titles, seen, owners) for outcome in wrong]
    return sorted(links, key=lambda link: -link.confidence)


def _titles(linker: ArboLinker, wrong: Sequence[Outcome]) -> dict[str, str]:
    """The titles of gold and predicted entities by id. Ids without an entity are left out."""
    ids = sorted(
        {
            kb_id
            for outcome in wrong
            for kb_id in (*(outcome.gold or ()), outcome.predicted or NIL)
        }
    )
    positions = linker.kb.entities.positions_of(ids).tolist()
    entities = linker.kb.entities.at_all(p for p in positions if p >= 0)
    return {i: entities[p].title for i, p in zip(ids, positions) if p in entities}


def _owners(linker: ArboLinker, texts: Iterable[str]) -> dict[str, AbstractSet[str]]:
    names = linker.kb.entities.with_names(sorted({folded(text) for text in texts}))
    ids = linker.kb.entities.ids_at(
        sorted({p for group in names.values() for p in group})
    )
    return {name: {ids[p] for p in group} for name, group in names.items()}


def _wrong_link(
    linker: ArboLinker,
    outcome: Outcome,
    titles: Mapping[str, str],
    seen: AbstractSet[str],
    owners: Mapping[str, AbstractSet[str]],
) -> WrongLink:
    assert outcome.span is not None and outcome.gold is not None
    link = outcome.link or Link(NIL, 0.0)
    predicted = outcome.predicted or NIL
    ranks = [
        list(link.ids).index(kb_id) + 1 for kb_id in outcome.gold if kb_id in link.ids
    ]
    rank = min(ranks, default=0)
    present = [kb_id for kb_id in outcome.gold if kb_id in titles]
    text = outcome.span.text
    other_owners = owners.get(folded(text), set()) - set(outcome.gold)
    traits = {
        ABBREVIATION: bool(_ABBREVIATION.fullmatch(text))
        and sum(map(str.isupper, text)) > 1,
        UNSEEN: bool(seen and present and not seen & set(present)),
        AMBIGUOUS: bool(other_owners and outcome.gold),
    }
    if not outcome.gold:
        kind = NOT_NIL
    elif not present:
        kind = ABSENT
    elif linker.reader.is_discarded(outcome.label):
        kind = LEFT_OUT
    elif not rank:
        kind = NOT_RETRIEVED
    else:
        kind = NOT_LINKED if rank == 1 and predicted == NIL else BEHIND
    return WrongLink(
        document_id(outcome.span.doc) or text_fingerprint(outcome.span.doc.text),
        *offsets_of_span(outcome.span),
        *sentence_of(outcome.span, outcome.span.doc.text),
        outcome.label,
        outcome.gold,
        predicted,
        {
            kb_id: titles[kb_id]
            for kb_id in (*outcome.gold, predicted)
            if kb_id in titles
        },
        link,
        kind,
        tuple(trait for trait in TRAITS if traits[trait]),
        rank,
    )


def summary(wrong: Sequence[WrongLink], total: int) -> str:
    """Count wrong links per kind and trait, as text. total: The number of gold mentions."""
    text = f"{counted(len(wrong), 'wrong link')} on {counted(total, 'mention')}"
    if not wrong:
        return text
    counts = Counter(link.kind for link in wrong).most_common()
    kinds = ", ".join(f"{kind} {count}" for kind, count in counts)
    traits = Counter(trait for link in wrong for trait in link.traits)
    hard = ", ".join(f"{trait} {traits[trait]}" for trait in TRAITS if traits[trait])
    return f"{text}: {kinds}" + (f".\nAmong them: {hard}" if hard else "")


def as_csv(wrong: Iterable[WrongLink]) -> str:
    """Format wrong links as CSV in the order given. There is a header."""
    return csv_text(COLUMNS, (link.row() for link in wrong))
