"""spaCy's knowledge base interface: aliases, candidates, prior probabilities."""

from typing import List, Sequence, Tuple

from spacy.kb import Candidate, KnowledgeBase

from .store import EntityStore

# (position of an entity, prior probability)
Prior = Tuple[int, float]


def prior_probabilities(entities: EntityStore, alias: str) -> List[Prior]:
    """Entities of an alias, with their shares of the frequencies. In order."""
    named = entities.at_all(entities.with_name(alias.casefold()))
    total = sum(entity.frequency for entity in named.values())
    equal = 1.0 / max(len(named), 1)
    return [(p, e.frequency / total if total else equal) for p, e in sorted(named.items())]


def spacy_candidates(
    kb: KnowledgeBase, entities: EntityStore, priors: Sequence[Prior], alias: str
) -> List[Candidate]:
    """Entities as spaCy's candidates for an alias.

    An entity whose vector is not up to date has an empty one.
    """
    by_position = entities.at_all([position for position, _ in priors])
    strings = kb.vocab.strings
    return [
        Candidate(
            kb=kb,
            entity_hash=strings.add(by_position[position].id),
            entity_freq=by_position[position].frequency,
            entity_vector=_vector_or_empty(kb, by_position[position].id),
            alias_hash=strings.add(alias),
            prior_prob=prior,
        )
        for position, prior in priors
    ]


def _vector_or_empty(kb: KnowledgeBase, entity_id: str) -> Sequence[float]:
    try:
        return kb.get_vector(entity_id).tolist()
    except ValueError:
        return []
