"""Functions that let spaCy's own ``entity_linker`` use this knowledge base."""

from dataclasses import dataclass
from typing import Iterable, List

from spacy.kb import Candidate, KnowledgeBase
from spacy.tokens import Span
from spacy.util import registry
from spacy.vocab import Vocab

from ..errors import Errors
from .aliases import spacy_candidates
from .knowledge_base import ArboKB
from .lookup import similar_names


@registry.misc("spacy-arbo-el.CandidateGenerator.v1")
@dataclass(frozen=True)
class CandidateGenerator:
    """Candidates by name, whatever the case, for ``get_candidates`` of ``entity_linker``.

    Use it to train or run spaCy's own component on an ``ArboKB``::

        [components.entity_linker.get_candidates]
        @misc = "spacy-arbo-el.CandidateGenerator.v1"

    n_fuzzy: Where no entity has the name, at most so many entities with a similar name.
    min_similarity: The least share of trigrams that similar names have in common, 0 to 1.
    """

    n_fuzzy: int = 0
    min_similarity: float = 0.5

    def __call__(self, kb: KnowledgeBase, mention: Span) -> Iterable[Candidate]:
        return _candidates(kb, mention.text, self.n_fuzzy, self.min_similarity)


@registry.misc("spacy-arbo-el.CandidateBatchGenerator.v1")
@dataclass(frozen=True)
class CandidateBatchGenerator:
    """The same for ``get_candidates_batch`` of ``entity_linker``. Looks up each text once.

    Use it with the settings of ``CandidateGenerator.v1``::

        [components.entity_linker.get_candidates_batch]
        @misc = "spacy-arbo-el.CandidateBatchGenerator.v1"

    n_fuzzy: Where no entity has the name, at most so many entities with a similar name.
    min_similarity: The least share of trigrams that similar names have in common, 0 to 1.
    """

    n_fuzzy: int = 0
    min_similarity: float = 0.5

    def __call__(
        self, kb: KnowledgeBase, mentions: Iterable[Span]
    ) -> Iterable[Iterable[Candidate]]:
        texts = [mention.text for mention in mentions]
        candidates = {
            text: _candidates(kb, text, self.n_fuzzy, self.min_similarity) for text in set(texts)
        }
        return [candidates[text] for text in texts]


@registry.misc("spacy-arbo-el.EmptyLinkerKB.v1")
@dataclass(frozen=True)
class EmptyLinkerKB:
    """An empty knowledge base for ``generate_empty_kb`` of ``entity_linker``.

    Use it so that spaCy loads a saved pipeline's knowledge base as an ``ArboKB``::

        [components.entity_linker.generate_empty_kb]
        @misc = "spacy-arbo-el.EmptyLinkerKB.v1"
    """

    def __call__(self, vocab: Vocab, entity_vector_length: int) -> KnowledgeBase:
        return ArboKB(vocab)


def _candidates(
    kb: KnowledgeBase, text: str, n_fuzzy: int, min_similarity: float
) -> List[Candidate]:
    """Entities of that name, or those with a similar name where there are none."""
    if not isinstance(kb, ArboKB):
        raise ValueError(Errors.E503.format(got=type(kb).__name__))
    exact = kb.get_alias_candidates(text)
    if exact or not n_fuzzy:
        return exact
    similar = similar_names(kb.entities, text, n_fuzzy, min_similarity)
    total = sum(similarity for _, similarity in similar)
    priors = [(position, similarity / total) for position, similarity in similar]
    return spacy_candidates(kb, kb.entities, priors, text)
