"""Entities of spaCy's own ``InMemoryLookupKB``."""

from collections import defaultdict
from collections.abc import Iterator

from spacy.kb import InMemoryLookupKB

from ..entity import Entity


def entities_of(kb: InMemoryLookupKB) -> Iterator[Entity]:
    """Entities of spaCy's knowledge base. Prior probabilities become frequencies.

    Its vectors are left out, since they are from another encoder. spaCy's entities have no title:
    the alias with the highest prior probability becomes the title. An entity's frequency is the
    mean of its priors for the aliases that it shares with others, or for all where it shares none.
    spaCy's own frequency is kept in ``meta["count"]``.
    """
    aliases: dict[str, list[tuple[float, str]]] = defaultdict(list)
    shared: dict[str, list[float]] = defaultdict(list)
    counts: dict[str, float] = {}
    for alias in kb.get_alias_strings():
        candidates = kb.get_alias_candidates(alias)
        for candidate in candidates:
            entity_id = candidate.entity_
            prior = candidate.prior_prob
            aliases[entity_id].append((-prior, alias))
            counts[entity_id] = candidate.entity_freq
            if len(candidates) > 1:
                shared[entity_id].append(prior)
    for entity_id in kb.get_entity_strings():
        names = [alias for _, alias in sorted(aliases[entity_id])]
        title, name_aliases = (names[0], tuple(names[1:])) if names else ("", ())
        priors = shared[entity_id] or [-prior for prior, _ in aliases[entity_id]]
        frequency = sum(priors) / len(priors) if priors else 0.0
        count = counts.get(entity_id)
        meta = {"count": count} if count else {}
        yield Entity(
            entity_id, title, aliases=name_aliases, frequency=frequency, meta=meta
        )
