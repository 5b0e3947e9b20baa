"""Annotations of a Doc after linking.

- ``kb_id_`` of the spans that were linked, and for ``doc.ents`` of their tokens: the entity's id,
  or "NIL", as in spaCy.
- ``span._.arbo``: a ``Link``, with the ranked candidates, the score, the evidence and the id of
  the new entity. (The name is a setting of the component.)

A ``Link`` is kept as plain values in ``doc.user_data``, so it survives ``doc.to_bytes``,
``DocBin(store_user_data=True)``, ``span.as_doc(copy_user_data=True)`` and ``n_process``. A DocBin
without user data keeps only ``kb_id_``. A link belongs to its span's character offsets and label.
One with a label that was not linked has the link of the first label over the same text. A
retokenization that moves the span's borders loses it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import starmap, zip_longest
from typing import TYPE_CHECKING, Any, NamedTuple

from spacy.tokens import Doc, Span
from spacy.tokens.underscore import Underscore

from ..base.display import shortened, shown_probability
from ..base.errors import Errors
from ..kb.entity import NIL
from .getters import (
    FOUND_AS,
    Offsets,
    Place,
    SpanGetter,
    check_doc,
    find_mentions,
    place_of,
)

if TYPE_CHECKING:
    from .explanation import Explanation

# The first of two candidates must be so many times as probable as the second to be linked.
LEAST_RATIO = 1.25
# The largest share that one of two equal candidates can have.
MOST_OF_EQUALS = 0.6
# From this probability on, the knowledge base has a mention's entity rather than not.
LIKELY = 0.5
SHOWN_EQUALS = 3


class Candidate(NamedTuple):
    """A considered entity with its probability of being correct.

    title: Its title, "" where it is not known.
    """

    kb_id: str
    score: float
    title: str = ""

    def __repr__(self) -> str:
        return f"Candidate({named(self.kb_id, self.title)}, {shown_probability(self.score)})"


class Evidence(NamedTuple):
    """A step on the path from entity to mention.

    kind: "entity", "exemplar" or "mention".
    id: The entity's id, the exemplar's id, or the mention's "start:end" in the document. The id of
        a mention or exemplar of another document begins with a fingerprint of that document.
    text: The entity's title, or the surface form of the exemplar or mention.
    context: The text around an exemplar, or around a mention of another document; else empty.
    weight: The probability that the step is correct. 1.0 for the start of the path, and for an
        exemplar, which hangs under its own entity by its label.
    document: The other document's ``doc_id``, or the fingerprint where it has none; else empty.
    """

    kind: str
    id: str
    text: str
    context: str
    weight: float
    document: str = ""


@dataclass(frozen=True, repr=False)
class Link:
    """The link of one mention.

    kb_id: The entity's id, or "NIL".
    score: The probability that the link is correct: that of the weakest step of its path. For NIL,
        the probability of the best candidate, 0.0 if there is none.
    ids: The ranked candidates, best first; ``candidates`` has them with their scores.
    scores: The probability of each candidate.
    evidence: The path that supports the link, from the entity to the mention; empty for NIL.
    cluster: For NIL, the id of the new entity: mentions with the same id are the same entity. It is
        "new-1" and so on within a document. Where a corpus is linked in one graph, ids are stable
        ("NEW-5a0c…"). Empty for linked mentions.
    titles: The title of each candidate.
    presence: The probability that the knowledge base has the mention's entity. That of a candidate
        is this, times its share among the candidates.
    read_as: The name that a part of a coordination is read as, such as "breast cancer" for the
        "breast" of "breast and ovarian cancer"; empty for other mentions.
    mention: Its text, label, start and end in the document, where the link is that of a span.
    """

    kb_id: str
    score: float
    ids: Sequence[str] = ()
    scores: Sequence[float] = ()
    evidence: Sequence[Evidence] = ()
    cluster: str = ""
    titles: Sequence[str] = ()
    presence: float = 0.0
    read_as: str = ""
    mention: Mapping[str, str | int] = field(default_factory=dict, compare=False)

    @property
    def shares(self) -> list[float]:
        """The probability of each candidate, given that the knowledge base has the entity."""
        if self.presence <= 0.0:
            return [0.0] * len(self.scores)
        return [min(score / self.presence, 1.0) for score in self.scores]

    @property
    def undecided(self) -> list[Candidate]:
        """The first candidates where a mention is NIL because nothing tells them apart.

        Empty for a link, and where the knowledge base probably lacks the entity.
        """
        if not self.is_nil or self.presence < LIKELY or not self.scores:
            return []
        if self.shares[0] >= MOST_OF_EQUALS:
            return []
        equals = [c for c in self.candidates if c.score * LEAST_RATIO > self.scores[0]]
        return equals if len(equals) > 1 else []

    @property
    def candidates(self) -> list[Candidate]:
        """The ranked candidates, best first."""
        rows = zip_longest(self.ids, self.scores, self.titles, fillvalue="")
        return list(starmap(Candidate, rows))

    @property
    def title(self) -> str:
        """The title of the entity, "" for NIL."""
        return self.evidence[0].text if self.evidence else ""

    def __repr__(self) -> str:
        if not self.is_nil:
            return f"Link({named(self.kb_id, self.title)}, {shown_probability(self.score)})"
        details = [NIL]
        if self.cluster:
            details.append(f"new entity {self.cluster}")
        if self.undecided:
            details.append(f"undecided between {_shown_ids(self.undecided)}")
        for best in self.candidates[:1]:
            name = named(best.kb_id, best.title)
            details.append(f"best candidate {name}, {shown_probability(best.score)}")
        return f"Link({', '.join(details)})"

    def to_dict(self) -> dict[str, Any]:
        """JSON-serialisable, with names for everything."""
        return {
            **self.mention,
            "kb_id": self.kb_id,
            "title": self.title,
            "score": self.score,
            "presence": self.presence,
            "cluster": self.cluster,
            "undecided": [candidate.kb_id for candidate in self.undecided],
            "candidates": [
                {**candidate._asdict(), "share": round(share, 4)}
                for candidate, share in zip(self.candidates, self.shares)
            ],
            "evidence": [step._asdict() for step in self.evidence],
        }

    @property
    def is_nil(self) -> bool:
        return self.kb_id == NIL

    def explain(self) -> "Explanation":
        """Explain the link as ``linker.explain`` does, by what it holds itself.

        ``print`` it for a few lines of text. The linker, which has the document, adds how much each
        feature and the context said, and can be asked about another entity.
        """
        # That module needs this class.
        from .explanation import Explanation, outcome_of

        mention = self.evidence[-1].text if self.evidence else ""
        titles = {
            candidate.kb_id: candidate.title
            for candidate in self.candidates
            if candidate.title
        }
        if self.title:
            titles[self.kb_id] = self.title
        return Explanation(mention, self, outcome_of(self, self.title), titles)

    @property
    def path(self) -> str:
        """The evidence in a line: ``entity "X" ← exemplar "x" (1.00) ← mention "x" (0.93)``."""
        if not self.evidence:
            return f"NIL, new entity {self.cluster}" if self.cluster else "NIL"
        first, *further_steps = self.evidence
        steps = [f'{first.kind} {first.id} "{first.text}"']
        steps += [
            f'{step.kind} "{step.text}" ({step.weight:.2f})' for step in further_steps
        ]
        return " ← ".join(steps)

    def to_data(self) -> dict[str, Any]:
        """Plain values that msgpack can carry."""
        data = vars(self) | {"evidence": [list(step) for step in self.evidence]}
        data.update((name, list(data[name])) for name in LISTS)
        del data["mention"]
        return data

    @classmethod
    def from_data(cls, data: dict[str, Any], span: Span) -> "Link":
        """Load the output of ``to_data``. span: The mention."""
        evidence = [Evidence(*step) for step in data["evidence"]]
        values = {**data, "evidence": evidence, "mention": _mention_of(span)}
        values.pop(BY_LABEL, None)
        # A DocBin makes tuples of lists.
        values.update((name, list(data[name])) for name in LISTS)
        return cls(**values)


def _mention_of(span: Span) -> dict[str, str | int]:
    place = {"start": span.start_char, "end": span.end_char}
    return {"text": span.text, "label": span.label_, **place}


def _shown_ids(candidates: Sequence[Candidate]) -> str:
    shown = [
        named(candidate.kb_id, candidate.title)
        for candidate in candidates[:SHOWN_EQUALS]
    ]
    more = len(candidates) - len(shown)
    return " and ".join(shown) + (f" and {more} more" if more else "")


def named(entity_id: str, title: str) -> str:
    """An id with a title, for people: ``D1 "Mercury"``."""
    return f'{entity_id} "{shortened(title, 40)}"' if title else entity_id


# The name of the extension, unless a linker's config gives another one.
DEFAULT_EXTENSION = "arbo"
# The links of a Doc by the places of their mentions.
DocLinks = dict[Place, Link]
# The key of the links of further labels over the same text, among the values of the first.
BY_LABEL = "by_label"
# The parts of a link that are lists of plain values.
LISTS = ("ids", "scores", "titles")
# Which existing kb ids a linker replaces: all, none, or "nil" for "NIL" alone.
Overwrite = bool | str
ONLY_NIL = "nil"


class _LinkGetter:
    """The getter behind ``span._.arbo``, whose type distinguishes our extensions from others."""

    def __init__(self, storage: str):
        self.storage = storage

    def __call__(self, span: Span) -> Link | None:
        data = span._.get(self.storage)
        if data is None:
            return None
        return Link.from_data(data.get(BY_LABEL, {}).get(span.label_, data), span)


def register_extension(name: str) -> None:
    """Make ``span._.<name>`` available. Raises ValueError where another package has that name."""
    if Span.has_extension(name):
        if not isinstance(Span.get_extension(name)[2], _LinkGetter):
            raise Errors.E501(name=name)
        return
    storage = f"{name}_data"
    Span.set_extension(name, getter=_LinkGetter(storage))
    Span.set_extension(storage, default=None)


def annotate(
    doc: Doc,
    links: Mapping[Place, Link],
    get_spans: SpanGetter,
    name: str,
    overwrite: Overwrite,
) -> None:
    """Write links onto a Doc. Its spans stay the same.

    links: By character offsets and labels.
    overwrite: Which existing kb ids are replaced, see ``Overwrite``.
    """
    check_doc(doc)
    if not isinstance(links, Mapping):
        raise Errors.E514(value=shortened(repr(links), 60))
    for (start, end), data in _data_by_offsets(links).items():
        # Where spaCy keeps span extensions. Setting them on a Span takes as long as all the rest.
        doc.user_data[("._.", f"{name}_data", start, end)] = data  # type: ignore[index]
    if get_spans.spans_key is None:
        _annotate_ents(doc, links, overwrite)
    else:
        _annotate_group(doc, get_spans.spans_key, links, overwrite)


def _data_by_offsets(links: Mapping[Place, Link]) -> dict[Offsets, dict[str, Any]]:
    """The stored values of links, see ``_LinkGetter``."""
    stored: dict[Offsets, dict[str, Any]] = {}
    for (start, end, label), link in links.items():
        data = link.to_data()
        first = stored.setdefault((start, end), data)
        if first is not data:
            first.setdefault(BY_LABEL, {})[label] = data
    return stored


def _annotate_ents(
    doc: Doc, links: Mapping[Place, Link], overwrite: Overwrite
) -> None:
    for ent in doc.ents:
        link = links.get(place_of(ent))
        if link is None or not _is_open(ent.kb_id_, overwrite):
            continue
        for token in ent:
            token.ent_kb_id_ = link.kb_id


def _annotate_group(
    doc: Doc, key: str, links: Mapping[Place, Link], overwrite: Overwrite
) -> None:
    group = doc.spans.get(key, [])
    for i, span in enumerate(group):
        link = links.get(place_of(span))
        if link is None or not _is_open(span.kb_id_, overwrite):
            continue
        group[i] = Span(
            doc,
            span.start,
            span.end,
            label=span.label,
            kb_id=link.kb_id,
            span_id=span.id,
        )


def _is_open(kb_id: str, overwrite: Overwrite) -> bool:
    return not kb_id or (kb_id == NIL if overwrite == ONLY_NIL else bool(overwrite))


def annotate_new_entities(
    doc: Doc, links: Mapping[Place, Link], get_spans: SpanGetter, key: str
) -> None:
    """Write mentions of new entities to ``doc.spans[key]``; their ``id_`` is the new entity's."""
    new = []
    for span in find_mentions(doc, get_spans):
        link = links.get(place_of(span))
        if link is not None and link.cluster:
            new.append(
                Span(
                    doc,
                    span.start,
                    span.end,
                    span.label,
                    kb_id=NIL,
                    span_id=link.cluster,
                )
            )
    doc.spans[key] = new


def annotate_parts(doc: Doc, links: Mapping[Place, Link], key: str | None) -> None:
    """Write the parts of coordinations to ``doc.spans[key]``; no group where there are none."""
    parts = []
    for (start, end, label), link in links.items():
        span = doc.char_span(start, end, label, link.kb_id) if link.read_as else None
        if span is not None:
            span._.set(FOUND_AS, link.read_as)
            parts.append(span)
    if key and (parts or key in doc.spans):
        doc.spans[key] = parts


def links_of(
    doc: Doc, spans: Sequence[Span], name: str, with_annotated: bool = False
) -> list[Link | None]:
    """Links of spans as the document has them now; None for a span without a link.

    Whoever edits a linked document has the last word. Where a ``kb_id_`` is another linker's, that
    linker's link is given; one that no linker gave has the score 1.0, and no path.

    with_annotated: Whether ids count in a document without any link of a linker: one that was
        annotated, or stored without its user data.
    """
    getters = (
        (extension, getter)
        for extension, (*_, getter, _) in Underscore.span_extensions.items()
    )
    names = [
        extension for extension, getter in getters if isinstance(getter, _LinkGetter)
    ]
    names.sort(key=lambda extension: extension != name)
    stored = {(f"{extension}_data",) for extension in names}
    is_linked = any(
        isinstance(key, tuple) and key[1:2] in stored for key in doc.user_data
    )
    if not is_linked and not with_annotated:
        return [None] * len(spans)
    return [_link_now(span, names) for span in spans]


def _link_now(span: Span, names: Sequence[str]) -> Link | None:
    links = [link for link in map(span._.get, names) if link is not None]
    if not span.kb_id_:
        return None
    agreeing = (link for link in links if link.kb_id == span.kb_id_)
    return next(agreeing, None) or _given(span, links[0] if links else None)


def _given(span: Span, link: Link | None) -> Link:
    """The link to an id that was set manually. link: What the linker said instead."""
    link = link or Link(NIL, 0.0, mention=_mention_of(span))
    kb_id = span.kb_id_
    if kb_id == NIL:
        return replace(link, kb_id=NIL, score=0.0, evidence=(), cluster="")
    title = dict(zip(link.ids, link.titles)).get(kb_id) or kb_id
    path = [Evidence("entity", kb_id, title, "", 1.0)]
    return replace(link, kb_id=kb_id, score=1.0, evidence=path, cluster="")
