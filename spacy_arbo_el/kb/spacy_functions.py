"""spaCy's own ``entity_linker`` on this knowledge base."""

from typing import Callable, Iterable, List

from spacy.kb import Candidate, KnowledgeBase
from spacy.tokens import Span
from spacy.util import registry
from spacy.vocab import Vocab

from ..errors import Errors
from .knowledge_base import ArboKB
from .lookup import alike


def _of_arbo(kb: KnowledgeBase) -> ArboKB:
    if not isinstance(kb, ArboKB):
        raise ValueError(Errors.E503.format(got=type(kb).__name__))
    return kb


@registry.misc("spacy-arbo-el.CandidateGenerator.v1")
def create_candidates(
    fuzzy: int = 0, least: float = 0.5
) -> Callable[[KnowledgeBase, Span], Iterable[Candidate]]:
    """For ``get_candidates`` of ``entity_linker``: entities by name, whatever the case.

    fuzzy: Where none has the name, at most so many entities with a name alike.
    least: The share of trigrams that names alike must have in common, 0 to 1.
    """

    def get_candidates(kb: KnowledgeBase, mention: Span) -> Iterable[Candidate]:
        return _candidates(_of_arbo(kb), mention.text, fuzzy, least)

    return get_candidates


@registry.misc("spacy-arbo-el.CandidateBatchGenerator.v1")
def create_candidates_batch(
    fuzzy: int = 0, least: float = 0.5
) -> Callable[[KnowledgeBase, Iterable[Span]], Iterable[Iterable[Candidate]]]:
    """For ``get_candidates_batch`` of ``entity_linker``; each text is looked up once."""

    def get_candidates_batch(
        kb: KnowledgeBase, mentions: Iterable[Span]
    ) -> Iterable[Iterable[Candidate]]:
        texts = [mention.text for mention in mentions]
        found = {text: _candidates(_of_arbo(kb), text, fuzzy, least) for text in set(texts)}
        return [found[text] for text in texts]

    return get_candidates_batch


def _candidates(kb: ArboKB, text: str, fuzzy: int, least: float) -> List[Candidate]:
    found = kb.get_alias_candidates(text)
    if found or not fuzzy:
        return found
    near = alike(kb.entities, text, fuzzy, least)
    total = sum(likeness for _, likeness in near)
    return kb.candidates([(position, likeness / total) for position, likeness in near], text)


@registry.misc("spacy-arbo-el.EmptyLinkerKB.v1")
def empty_linker_kb() -> Callable[[Vocab, int], KnowledgeBase]:
    """For ``generate_empty_kb`` of ``entity_linker``: what a saved pipeline is loaded into."""

    def make(vocab: Vocab, entity_vector_length: int) -> KnowledgeBase:
        return ArboKB(vocab)

    return make
