"""What a Doc carries after linking.

- ``kb_id_`` of the spans that were linked, and of their tokens for ``doc.ents``: the entity's id,
  or "NIL", as spaCy has it.
- ``span._.arbo``: a ``Link``, with the ranked candidates, the score, the evidence and the id of
  the new-entity cluster. (The name is a setting of the component.)

A ``Link`` is kept as plain values in ``doc.user_data``, so it survives ``doc.to_bytes``,
``DocBin(store_user_data=True)``, ``span.as_doc(copy_user_data=True)`` and ``n_process``. What does
not survive: a DocBin without user data keeps only ``kb_id_``; and a link is found by its span's
character offsets, so a retokenization that moves a span's borders loses it.
"""

from dataclasses import dataclass
from typing import Any, Dict, List, NamedTuple, Optional, Sequence

from spacy.tokens import Doc, Span

from .errors import Errors
from .kb.entity import NIL
from .mentions import Offsets, SpanGetter, find_mentions, offsets_of_span


class Candidate(NamedTuple):
    """An entity that was considered, and the chance that it is the right one."""

    kb_id: str
    score: float


class Evidence(NamedTuple):
    """One stop on the path from an entity to a mention.

    kind: "entity", "exemplar" or "mention".
    id: The entity's id, the exemplar's id, or the mention's "start:end" in the document.
    text: The entity's title, or the exemplar's or the mention's text.
    context: Text round an exemplar; empty for the others.
    weight: The chance that the step to here is right; 1.0 for the start of the path and for an
        exemplar, which hangs under its own entity by its label.
    document: For a mention or exemplar of another document, what that is called: its ``doc_id``, or
        a fingerprint of its text. The id then begins with the fingerprint.
    """

    kind: str
    id: str
    text: str
    context: str
    weight: float
    document: str = ""


@dataclass(frozen=True)
class Link:
    """What the linker found for one mention.

    kb_id: The entity's id, or "NIL".
    score: The chance that the link is right, that of the weakest step of its path; for NIL, the
        chance of the best candidate that was refused (0.0 where there was none).
    ids, scores: The ranked candidates, best first, and the chance of each; ``candidates`` has them
        as pairs.
    evidence: The path that carried the link, entity first, the mention itself last; empty for NIL.
    cluster: For NIL, the id of the new entity: mentions with one id are the same. "new-1" and so
        on within a document; where documents are linked together, ids that stay ("NEW-5a0c…").
        Empty for linked mentions.
    """

    kb_id: str
    score: float
    ids: Sequence[str] = ()
    scores: Sequence[float] = ()
    evidence: Sequence[Evidence] = ()
    cluster: str = ""

    @property
    def candidates(self) -> List[Candidate]:
        """The ranked candidates, best first."""
        return list(map(Candidate, self.ids, self.scores))

    @property
    def is_nil(self) -> bool:
        return self.kb_id == NIL

    def explain(self) -> str:
        """The evidence in a line: ``entity "X" ← exemplar "x" (1.00) ← mention "x" (0.93)``."""
        if not self.evidence:
            return f"NIL, new entity {self.cluster}" if self.cluster else "NIL"
        first, *rest = self.evidence
        steps = [f'{first.kind} {first.id} "{first.text}"']
        steps += [f'{step.kind} "{step.text}" ({step.weight:.2f})' for step in rest]
        return " ← ".join(steps)

    def to_data(self) -> Dict[str, Any]:
        """Plain values that msgpack can carry."""
        return {
            "kb_id": self.kb_id,
            "score": self.score,
            "ids": list(self.ids),
            "scores": list(self.scores),
            "evidence": [list(step) for step in self.evidence],
            "cluster": self.cluster,
        }

    @classmethod
    def from_data(cls, data: Dict[str, Any]) -> "Link":
        return cls(
            data["kb_id"],
            data["score"],
            list(data["ids"]),
            list(data["scores"]),
            [Evidence(*step) for step in data["evidence"]],
            data["cluster"],
        )


class _LinkGetter:
    """The getter behind ``span._.arbo``; its type tells our extensions from others'."""

    def __init__(self, storage: str):
        self.storage = storage

    def __call__(self, span: Span) -> Optional[Link]:
        data = span._.get(self.storage)
        return None if data is None else Link.from_data(data)


def register_extension(name: str) -> None:
    """Make ``span._.<name>`` available; an extension of that name that is not ours is an error."""
    if Span.has_extension(name):
        if not isinstance(Span.get_extension(name)[2], _LinkGetter):
            raise ValueError(Errors.E501.format(name=name))
        return
    storage = f"{name}_data"
    Span.set_extension(name, getter=_LinkGetter(storage))
    Span.set_extension(storage, default=None)


def annotate(
    doc: Doc, links: Dict[Offsets, Link], get_spans: SpanGetter, name: str, overwrite: bool
) -> None:
    """Write links onto a Doc. Which spans there are is never changed.

    links: By character offsets.
    overwrite: Whether to replace kb ids that are there already.
    """
    for (start, end), link in links.items():
        # Where spaCy keeps span extensions; not by way of a Span, which costs as much as the rest.
        doc.user_data[("._.", f"{name}_data", start, end)] = link.to_data()  # type: ignore[index]
    key = getattr(get_spans, "spans_key", None)
    if key is None:
        _annotate_ents(doc, links, overwrite)
    else:
        _annotate_group(doc, key, links, overwrite)


def _annotate_ents(doc: Doc, links: Dict[Offsets, Link], overwrite: bool) -> None:
    for ent in doc.ents:
        link = links.get((ent.start_char, ent.end_char))
        if link is None or (ent.kb_id_ and not overwrite):
            continue
        for token in ent:
            token.ent_kb_id_ = link.kb_id


def _annotate_group(doc: Doc, key: str, links: Dict[Offsets, Link], overwrite: bool) -> None:
    group = doc.spans.get(key, [])
    for i, span in enumerate(group):
        link = links.get((span.start_char, span.end_char))
        if link is None or (span.kb_id_ and not overwrite):
            continue
        group[i] = Span(
            doc, span.start, span.end, label=span.label, kb_id=link.kb_id, span_id=span.id
        )


def annotate_new(doc: Doc, links: Dict[Offsets, Link], get_spans: SpanGetter, key: str) -> None:
    """Write mentions of new entities to the group ``doc.spans[key]``, with their ids as ``id_``."""
    new = []
    for span in find_mentions(doc, get_spans):
        link = links.get(offsets_of_span(span))
        if link is not None and link.cluster:
            new.append(Span(doc, span.start, span.end, span.label, kb_id=NIL, span_id=link.cluster))
    doc.spans[key] = new


def links_of(doc: Doc, spans: Sequence[Span], name: str) -> List[Optional[Link]]:
    """The links of spans, None where a span was not linked."""
    return [span._.get(name) if Span.has_extension(name) else None for span in spans]
