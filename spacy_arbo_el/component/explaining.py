"""Saying why: ``explain`` shows what carried a link, or what kept an entity from being one."""

from typing import List, Optional

import numpy as np
from spacy.tokens import Span

from ..annotations import Link
from ..inference.calibration import probability
from ..kb.entity import NIL
from ..mentions import offsets_of_span
from .growing import GrowingLinker
from .linking import Linked

# Candidates that are shown.
SHOWN = 5


class ExplainingLinker(GrowingLinker):
    """The part of ``ArboLinker`` that explains its links."""

    def explain(self, span: Span, kb_id: Optional[str] = None) -> str:
        """Why a mention is linked so, or not at all; a few lines for people.

        The document is linked anew, with its other mentions beside it.

        span: One of the document's mentions, or any other span.
        kb_id: The entity that was expected; it is said what became of it.
        """
        self.encoding.require_ready(self.name)
        spans = self.mentions_of(span.doc)
        place = next(
            (i for i, s in enumerate(spans) if offsets_of_span(s) == offsets_of_span(span)), None
        )
        if place is None:
            spans, place = [*spans, span], len(spans)
        if span.label_ in self.labels_discard:
            return f'"{span.text}": spans with the label {span.label_} are left out.'
        linked = self._link([spans], self.threshold)
        link = linked.links[place]
        lines = [f'"{span.text}": {self._outcome(link)}', *self._evidence(link)]
        lines += self._candidates(link)
        if kb_id is not None and kb_id != link.kb_id:
            lines.append(f"{kb_id}: {self._why_not(kb_id, span, link, linked, place)}")
        return "\n".join(lines)

    def _outcome(self, link: Link) -> str:
        if not link.is_nil:
            title = self.kb.get(link.kb_id).title
            return f"{link.kb_id} ({title}), chance {_shown(link.score)}"
        if not link.candidates:
            return "NIL: no entity was found for it"
        if link.score < self.threshold:
            best = link.candidates[0]
            return (
                f"NIL: the likeliest, {best.kb_id}, has a chance of {_shown(best.score)}, under "
                f"the threshold of {self.threshold:g}"
            )
        return "NIL: said in a correction, or no entity reaches it"

    def _evidence(self, link: Link) -> List[str]:
        lines = []
        for step in link.evidence:
            context = f" … {step.context} …" if step.context else ""
            if step.document and step.document not in step.id:
                context = f" in {step.document}{context}"
            lines.append(f'  {step.kind} {step.id} "{step.text}" ({_shown(step.weight)}){context}')
        return lines

    def _candidates(self, link: Link) -> List[str]:
        titles = {c.kb_id: self.kb.get(c.kb_id).title for c in link.candidates[:SHOWN]}
        shown = (
            f"{c.kb_id} ({titles[c.kb_id]}) {_shown(c.score)}" for c in link.candidates[:SHOWN]
        )
        return [f"  candidates: {'; '.join(shown)}"] if titles else []

    def _why_not(self, kb_id: str, span: Span, link: Link, linked: Linked, place: int) -> str:
        if kb_id == NIL:
            has = _shown(link.score)
            return f"a link needs a chance of {self.threshold:g}, and this one has {has}"
        position = self.kb.entities.position(kb_id)
        if position < 0:
            return "not in the knowledge base"
        entity = self.kb.entities.at(position)
        if entity.id == link.kb_id:
            return f"leads to {entity.id}, which is what was linked"
        if self.cfg["match_types"] and entity.types and span.label_ not in entity.types:
            return f"refused by type: {', '.join(entity.types)}, not {span.label_}"
        correction = self.memory.corrections.items.get(self._key(span))
        if correction is not None and (correction.kb_id is not None or kb_id in correction.refused):
            return "refused by a correction; linker.forget(span) takes it back"
        ids = [candidate.kb_id for candidate in link.candidates]
        if entity.id not in ids:
            return self._not_found(position, linked.vectors[place])
        rank = ids.index(entity.id)
        chance = link.candidates[rank].score
        if link.is_nil and chance < self.threshold:
            return f"found in place {rank + 1}, but its chance of {_shown(chance)} is too low"
        if link.is_nil:
            return (
                f"found in place {rank + 1} with a chance of {_shown(chance)}, but left alone by "
                "the inference: others are too near"
            )
        if rank == 0:
            return f"taken by another cluster: the likeliest by itself, but {_carrier(link)}"
        return f"found in place {rank + 1}, with a chance of {_shown(chance)}: others are likelier"

    def _not_found(self, position: int, vector: np.ndarray) -> str:
        search = self.refresh().entities
        similarity = search.similarity_of(vector[None], np.array([[position]]))[0, 0]
        if not np.isfinite(similarity):
            return "it has no text with a vector, and none of its exemplars is near"
        chance = float(probability(self.calibration.logits("entity", similarity)))
        return (
            f"not found among the {self.cfg['n_candidates']} nearest: its nearest text has a "
            f"similarity of {similarity:.2f}, a chance of {_shown(chance)}"
        )


def _carrier(link: Link) -> str:
    """Which mention or exemplar carried a link to where it is."""
    for step in reversed(link.evidence[:-1]):
        if step.kind != "entity":
            where = f" in {step.document}" if step.document else ""
            return f'the {step.kind} "{step.text}" ({step.id}{where}) carried it to {link.kb_id}'
    return f"{link.kb_id} won"


def _shown(chance: float) -> str:
    """A chance in two digits, or as many as it takes to tell it from 0 and 1."""
    return f"{chance:.2f}" if 0.005 <= chance < 0.995 else f"{chance:.4f}"
