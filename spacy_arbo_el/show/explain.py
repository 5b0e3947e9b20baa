"""Explanations: what supported a link, or what kept an entity from being linked."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from spacy.tokens import Span

from ..base.calibration import probability
from ..base.display import shortened, shown_probability
from ..kb.entity import NIL, Entity
from ..linking.by_label import ByLabel
from ..linking.coverage import ESTIMATE
from ..linking.stages import LinkingStages
from ..mentions.annotations import Link
from ..mentions.explanation import SHOWN, Explanation, outcome_of
from ..mentions.getters import offsets_of_span, place_of
from ..ranking.feature_ranker import FeatureRanker
from ..ranking.ranking import RankedMentions
from .words import Compared, in_words

# Characters of a description's sentence that are shown.
LONGEST_SENTENCE = 80


@dataclass(frozen=True)
class Explainer:
    """Explains the links of a linker. threshold: The probability that a link must have."""

    stages: LinkingStages
    threshold: ByLabel

    def explain(self, span: Span, kb_id: str | None = None) -> Explanation:
        """Explain a mention's link. Its document is linked anew, with its other mentions.

        span: One of the document's mentions, or any other span.
        kb_id: An entity that was expected.
        """
        offsets_of_span(span)  # an error for a text
        if self.stages.reader.is_discarded(span.label_):
            reason = f"spans with the label {span.label_} are left out."
            return Explanation(span.text, None, reason)
        spans = self.stages.reader.mentions_to_link(span.doc)
        row = _row_of(span, spans)
        if row is None:
            row = len(spans)
            spans = [*spans, span]
        with self.stages.datastore.snapshot():
            return self._explain_mention(span, spans, row, kb_id)

    def _explain_mention(
        self, span: Span, spans: Sequence[Span], row: int, kb_id: str | None
    ) -> Explanation:
        linked = self.stages.link([spans], self.threshold)
        threshold = self.threshold.of(span.label_)
        link = linked.links[row]
        ids = {link.kb_id, *link.ids[:SHOWN]} - {NIL}
        titles = {
            entity_id: self.stages.datastore.kb.get(entity_id).title
            for entity_id in ids
        }
        expected = kb_id if kb_id is not None and kb_id != link.kb_id else ""
        reason = ""
        if expected:
            reason = self._reason(expected, span, link, linked.ranked, row)
        return Explanation(
            span.text,
            link,
            outcome_of(link, titles.get(link.kb_id, ""), threshold),
            titles,
            expected,
            reason,
            *self._compared(linked.ranked, row, link, expected, span.text),
            self._coverage(),
        )

    def _coverage(self) -> str:
        fitted = self.stages.coverage_of_fit
        if fitted is None:
            return ""
        setting = self.stages.coverage
        if setting is None or setting == ESTIMATE:
            return f"coverage {fitted:.2f}, that of the reranker's fit"
        shown = f"{setting:.2f}" if isinstance(setting, float) else setting
        return f"coverage {shown}; that of the reranker's fit is {fitted:.2f}"

    def _compared(
        self, ranked: RankedMentions, row: int, link: Link, expected: str, mention: str
    ) -> tuple[tuple[str, ...], Mapping[str, float], str, str]:
        """Compare the first candidate with another, feature by feature and in context."""
        reranker = self.stages.reranker
        ids = list(link.ids)
        compared_ids = [expected] if expected in ids[1:] else ids[1:2]
        if not isinstance(reranker, FeatureRanker) or not compared_ids:
            return (), {}, "", ""
        pair = (ids[0], compared_ids[0])
        positions = self.stages.datastore.kb.entities.positions_of(pair).tolist()
        context = self.stages.context
        comparison = reranker.compare(
            ranked.batch, ranked.neighbours, context, row, *positions
        )
        if comparison is None:
            return (), {}, "", ""
        entities = self.stages.datastore.kb.entities.at_all(
            {*positions, *comparison.fits}
        )
        first, second = (
            Compared(entities[position].id, entities[position].names, features)
            for position, features in zip(positions, comparison.features)
        )
        contributions = comparison.contributions
        words = in_words(mention, contributions, first, second)
        return pair, contributions, words, _fits(comparison.fits, entities)

    def _reason(
        self, kb_id: str, span: Span, link: Link, ranked: RankedMentions, row: int
    ) -> str:
        datastore = self.stages.datastore
        threshold = self.threshold.of(span.label_)
        if kb_id == NIL:
            return (
                f"a link needs a probability of {threshold:g}, and this one has "
                f"{shown_probability(link.score)}"
            )
        position = datastore.kb.entities.position(kb_id)
        if position < 0:
            return "not in the knowledge base"
        entity = datastore.kb.entities.at(position)
        if entity.id == link.kb_id:
            return f"redirects to {entity.id}, which is what was linked"
        if (
            datastore.settings.match_types
            and entity.types
            and span.label_ not in entity.types
        ):
            types = ", ".join(entity.types)
            return (
                f"excluded by type: the entity is {types}, the mention {span.label_}"
            )
        correction = self._correction(position, ranked, row)
        if correction:
            return correction
        if entity.id not in link.ids:
            return self._not_retrieved(position, ranked.batch.encoded[row])
        return self._not_chosen(link, list(link.ids).index(entity.id), threshold)

    def _correction(self, position: int, ranked: RankedMentions, row: int) -> str:
        """Describe the correction that excludes an entity; "" for none."""
        datastore = self.stages.datastore
        corrections = self.stages.corrections
        batch = ranked.batch.take(np.array([row]))
        match = corrections.matches(batch, datastore.refresh()).get(0)
        if match is None:
            return ""
        record = match.mention.record
        correction = corrections.items[match.mention.key]
        ids = [correction.kb_id or "", *correction.rejected]
        linked_position, *rejected = datastore.kb.entities.positions_of(ids).tolist()
        if correction.kb_id != "" and linked_position < 0 and position not in rejected:
            return ""
        if record.key == batch.records[0].key:
            return "excluded by a correction; linker.feedback.forget(span) undoes it"
        return (
            f'excluded by a correction of the mention "{record.text}" in {record.document}, which '
            "stands in the same document or says the same; linker.feedback.forget of that mention "
            "undoes it"
        )

    def _not_chosen(self, link: Link, rank: int, threshold: float) -> str:
        score = link.scores[rank]
        place = f"candidate number {rank + 1} with a probability of {shown_probability(score)}"
        if link.is_nil and score < threshold:
            return f"{place}, which is below the threshold of {threshold:g}"
        if link.is_nil:
            return f"{place}, but the inference procedure left the mention out"
        if rank == 0:
            return f"overruled by another cluster: {place}, but {_influence(link)}"
        return f"{place}: others are more probable"

    def _not_retrieved(self, position: int, vector: np.ndarray) -> str:
        datastore = self.stages.datastore
        if not vector.any():
            return "the encoder cannot read the mention, so only its namesakes are candidates"
        search = datastore.refresh().retriever.entities
        similarity = search.similarity_of(vector, position)
        if not np.isfinite(similarity):
            return (
                "it has no text with a vector, and none of its exemplars was retrieved"
            )
        score = float(
            probability(self.stages.calibration.logits("entity", np.array(similarity)))
        )
        return (
            f"not among the {datastore.settings.n_candidates} candidates: its nearest text has a "
            f"similarity of {similarity:.2f}, a probability of {shown_probability(score)}"
        )


def _row_of(span: Span, spans: Sequence[Span]) -> int | None:
    """The place of a span among mentions, that with its label before others."""
    same = [
        row
        for row, candidate in enumerate(spans)
        if offsets_of_span(candidate) == offsets_of_span(span)
    ]
    exact = [row for row in same if place_of(spans[row]) == place_of(span)]
    return next(iter([*exact, *same]), None)


def _fits(fits: Mapping[int, float], entities: Mapping[int, Entity]) -> str:
    """The entities that were compared in context, the best first, and how well each fits."""
    best_first = sorted(fits, key=lambda position: -fits[position])
    shown = [
        f"{fits[position]:.2f} {entities[position].id} ({entities[position].title}), "
        f'"{first_sentence(entities[position].description)}"'
        for position in best_first[:SHOWN]
    ]
    more = len(fits) - len(shown)
    return "; ".join(shown) + (f"; and {more} more" if more > 0 else "")


def first_sentence(text: str) -> str:
    """The first sentence of a description, shortened."""
    return shortened(
        re.split(r"(?<=[.!?])\s", text.strip(), maxsplit=1)[0], LONGEST_SENTENCE
    )


def _influence(link: Link) -> str:
    for step in reversed(link.evidence[:-1]):
        if step.kind != "entity":
            where = f" in {step.document}" if step.document else ""
            return f'the {step.kind} "{step.text}" ({step.id}{where}) led it to {link.kb_id}'
    return f"{link.kb_id} won"
