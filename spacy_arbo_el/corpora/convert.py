"""Conversion of annotated corpora to ``.spacy``."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from spacy.language import Language

from ..kb.entity import Entity
from ..records.lines import OnBad, PathLike, throw
from .annotated import AnnotatedText, unique
from .docbin import write_docbin
from .docs import to_doc, warn_of_overlaps
from .read import read

# NCBI Disease writes "OMIM:104300" and PubTator Central "MESH:D000544". The ids of CTD's dictionary
# have no prefix.
PREFIXES = ("OMIM:", "MESH:")
COUNTED = (
    "docs",
    "mentions",
    "composite",
    "nil",
    "retokenised",
    "overlapping",
    "duplicates",
    "excluded",
)


def convert_corpus(
    input_path: PathLike,
    output_path: PathLike,
    *,
    format: str,
    nlp: Language,
    labels: Iterable[str] | None = None,
    concept_map: Mapping[str, str] | None = None,
    exclude_ids: Iterable[str] | None = None,
    offsets: str = "",
    id_key: str = "",
    bad: OnBad = throw,
    gold: Counter | None = None,
) -> dict[str, int]:
    """Convert a corpus to ``.spacy`` and count its mentions.

    If the conversion fails, the previous file stays. Raises ValueError for an unknown format, for a
    file without documents and for an invalid line (with file and line).

    format: A name in ``corpus_formats``.
    nlp: Only its tokenizer and its vocabulary are used.
    labels: Keep only mentions with these labels; None keeps all.
    concept_map: From equivalent id to concept, see ``normalise_ids``.
    exclude_ids: Ids of documents to leave out, such as those of a test set.
    offsets: How offsets count, see ``read``.
    id_key: The name of the field that has the ids of mentions, see ``read``.
    bad: Takes the errors of invalid lines, which are then left out; by default they are raised.
    gold: Gets how many mentions have each id, after the mapping.
    RETURNS: The numbers of these:
        docs: documents.
        mentions: mentions.
        composite: mentions with several concepts.
        nil: mentions without a concept.
        retokenised: mentions that begin or end inside a token.
        overlapping: mentions left out of ``doc.ents``.
        duplicates: documents left out because their id came before.
        excluded: documents left out by ``exclude_ids``.
    """
    counts: Counter = Counter(dict.fromkeys(COUNTED, 0))
    texts = select(
        read(input_path, format, bad, counts, offsets, id_key),
        labels=labels,
        concept_map=concept_map,
        exclude_ids=exclude_ids,
        counts=counts,
        gold=gold,
    )
    docs = (to_doc(nlp, text, counts=counts) for text in texts)
    write_docbin(docs, output_path)
    warn_of_overlaps(input_path, counts)
    return dict(counts)


def select(
    texts: Iterable[AnnotatedText],
    *,
    labels: Iterable[str] | None = None,
    concept_map: Mapping[str, str] | None = None,
    exclude_ids: Iterable[str] | None = None,
    counts: Counter | None = None,
    gold: Counter | None = None,
) -> Iterator[AnnotatedText]:
    """Select documents by id and mentions by label. Ids are mapped to concepts, and counted."""
    # A string is one label, not a sequence of its characters.
    labels = [labels] if isinstance(labels, str) else labels
    selected = None if labels is None else frozenset(labels)
    excluded = frozenset(exclude_ids or ())
    for text in texts:
        if text.id in excluded:
            if counts is not None:
                counts["excluded"] += 1
            continue
        mentions = tuple(
            replace(mention, kb_ids=normalise_ids(mention.kb_ids, concept_map))
            for mention in text.mentions
            if selected is None or mention.label in selected
        )
        if gold is not None:
            gold.update(kb_id for mention in mentions for kb_id in mention.kb_ids)
        yield replace(text, mentions=mentions)


def normalise_ids(
    ids: Iterable[str], concept_map: Mapping[str, str] | None = None
) -> tuple[str, ...]:
    """Map a mention's ids to concepts of the knowledge base. In order, without duplicates.

    An id that is not in the map is kept, without its prefix "OMIM:" or "MESH:": a gold id that is
    missing from the knowledge base is a miss, not NIL.

    concept_map: From equivalent id to concept, see ``concept_map_of``. None leaves the ids
        unchanged.
    """
    if concept_map is None:
        return unique(ids)
    return unique(_concept(id_, concept_map) for id_ in ids)


def _concept(id_: str, concept_map: Mapping[str, str]) -> str:
    if id_ in concept_map:
        return concept_map[id_]
    bare = strip_prefix(id_)
    return concept_map.get(bare, bare)


def strip_prefix(id_: str) -> str:
    """Strip whitespace and the prefix "OMIM:" or "MESH:"."""
    id_ = id_.strip()
    for prefix in PREFIXES:
        if id_.upper().startswith(prefix):
            return id_[len(prefix) :].strip()
    return id_


def concept_map_of(
    entities: Iterable[Entity], redirects: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Map every id of an entity to its main id.

    If several entities have an id, the entity whose own id it is gets it, otherwise the first.

    redirects: From further ids to main ones. Others are in ``meta["ids"]``.
    """
    mapping: dict[str, str] = dict(redirects or {})
    entity_ids = set()
    for entity in entities:
        entity_ids.add(entity.id)
        for id_ in entity.meta.get("ids", ()):
            mapping.setdefault(id_, entity.id)
    mapping.update((id_, id_) for id_ in entity_ids)
    return mapping
