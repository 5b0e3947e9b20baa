"""What spaCy's users know of a knowledge base: aliases, candidates, prior probabilities."""

from typing import Dict, Iterable, List, Sequence, Tuple

from spacy.kb import Candidate, KnowledgeBase
from spacy.tokens import Span

from .store import EntityStore


class SpacyView(KnowledgeBase):
    """The part of ``ArboKB`` that other components, such as ``entity_linker``, use."""

    entities: EntityStore

    def get_candidates(self, mention: Span) -> List[Candidate]:
        """Entities with a name equal to the mention's text, whatever the case, in KB order."""
        return self.get_alias_candidates(mention.text)

    def get_candidates_batch(self, mentions: Iterable[Span]) -> List[List[Candidate]]:
        """``get_candidates`` of each mention."""
        found: Dict[str, List[Candidate]] = {}
        texts = [mention.text for mention in mentions]
        for text in dict.fromkeys(texts):
            found[text] = self.get_alias_candidates(text)
        return [found[text] for text in texts]

    def get_alias_candidates(self, alias: str) -> List[Candidate]:
        """Entities that have the alias. Prior probabilities are shares of their frequencies."""
        return self.candidates(self._priors(alias), alias)

    def candidates(self, found: Sequence[Tuple[int, float]], alias: str) -> List[Candidate]:
        """Entities, by position and prior probability, as spaCy's candidates for an alias.

        An entity whose vector is not up to date has an empty one.
        """
        entities = self.entities.at_all([position for position, _ in found])
        strings = self.vocab.strings
        return [
            Candidate(
                kb=self,
                entity_hash=strings.add(entities[position].id),
                entity_freq=entities[position].frequency,
                entity_vector=self._vector_if_any(entities[position].id),
                alias_hash=strings.add(alias),
                prior_prob=prior,
            )
            for position, prior in found
        ]

    def _vector_if_any(self, entity_id: str) -> Sequence[float]:
        try:
            return self.get_vector(entity_id).tolist()
        except ValueError:
            return []

    def _priors(self, alias: str) -> List[Tuple[int, float]]:
        entities = self.entities.at_all(self.entities.named(alias.casefold()))
        total = sum(entity.frequency for entity in entities.values())
        share = 1.0 / max(len(entities), 1)
        return [(p, e.frequency / total if total else share) for p, e in sorted(entities.items())]

    def get_prior_prob(self, entity: str, alias: str) -> float:
        return dict(self._priors(alias)).get(self.entities.position(entity), 0.0)

    def contains_entity(self, entity: str) -> bool:
        return entity in self.entities

    def contains_alias(self, alias: str) -> bool:
        return bool(self.entities.named(alias.casefold()))

    def get_entity_strings(self) -> List[str]:
        return [entity.id for entity in self.entities]

    def get_alias_strings(self) -> List[str]:
        return list(dict.fromkeys(name for entity in self.entities for name in entity.names))

    def get_size_entities(self) -> int:
        return len(self.entities)

    def get_size_aliases(self) -> int:
        return self.entities.count_names()
