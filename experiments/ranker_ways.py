"""The mentions that the default ranker is fitted on: each of a corpus, in several ways.

By names alone and in context; with descriptions that are short, or that half of the entities lack;
with made namesakes, and where an entity's name is another one's alias or has another meaning; with
one candidate, as in a knowledge base of few entities; with exemplars; in
a list that lacks half of the entities; and with names that their entities were made to lack, to see
what tells variants of a name from siblings.
"""

import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import spacy
from spacy.tokens import Doc, Span

from spacy_arbo_el.base.arrays import unit
from spacy_arbo_el.encoders.inputs import EncodingCache
from spacy_arbo_el.fitting.calibrate import annotated_mentions
from spacy_arbo_el.kb.knowledge_base import ArboKB
from spacy_arbo_el.linker import ArboLinker
from spacy_arbo_el.mentions.labels import is_gold
from spacy_arbo_el.mentions.record import MentionRecord
from spacy_arbo_el.ranking.contexts import contexts_of, fits_of
from spacy_arbo_el.ranking.feature_ranker import FeatureRanker
from spacy_arbo_el.ranking.features import FEATURES, CandidateFeatures, ContextFits
from spacy_arbo_el.ranking.ranking import AnnotatedMentions
from spacy_arbo_el.retrieval.neighbours import AllowedEntities
from spacy_arbo_el.retrieval.snapshot import DESCRIPTION_PIECES, joined
from spacy_arbo_el.storage.files import pack_arrays, unpack_arrays, write_file

FEW = 4
# How much the similarities of vectors of made namesakes differ.
NOISE = 0.04
EXACT = FEATURES.index("exact")
TITLE = FEATURES.index("title")
VECTORS = [
    FEATURES.index("name"),
    FEATURES.index("exemplar"),
    FEATURES.index("nearest"),
]
# How often the right one of made namesakes is the one of that spelling.
SPELLED = 0.96
# Words of the shortest descriptions that are made.
BRIEF = 4
# Share of made mentions, those with siblings or made namesakes, which count as if the list lacked
# their entity.
MADE_ABSENT = 0.5
# A mention takes the features of a partial name from one of at least so many in its corpus.
PARTIAL_NAMES = 20
# The least similarity of n-grams of siblings.
SIBLING = 0.6


class Way(NamedTuple):
    """Candidates of mentions with labels.

    correct: (m, c) bool.
    documents: (m,) int64, different in each corpus.
    absent: The share of the weight with which the correct candidates are taken away.
    is_half: Whether the list lacks half of the entities.
    siblings: Whether other entities have similar names, see ``lacked_names``.
    misfit: Whether the named entity has a description of another one, so that the mention is NIL.
    """

    candidates: CandidateFeatures
    correct: np.ndarray
    documents: np.ndarray
    absent: float = 0.0
    is_half: bool = False
    siblings: bool = False
    misfit: bool = False

    @classmethod
    def of(
        cls,
        candidates: CandidateFeatures,
        gold: np.ndarray,
        documents: np.ndarray,
        absent: float = 0.0,
    ) -> "Way":
        """gold: (m, g) int64, as in ``AnnotatedMentions``."""
        return cls(candidates, is_gold(candidates.entities, gold), documents, absent)


class Collected(NamedTuple):
    """The mentions of a corpus.

    ways: Its mentions in several ways.
    alone: Without exemplars.
    beside: Those of every second document, with those of the others as exemplars.
    """

    ways: list[Way]
    alone: AnnotatedMentions
    beside: AnnotatedMentions


def collect(linker: ArboLinker, docs: list[Doc], first: int) -> Collected:
    """The mentions of a corpus in several ways.

    first: The number of its first document.
    """
    ranker = FeatureRanker(pretrained=False)
    stages = linker.stages
    alone = annotated_mentions(stages, docs)
    records = alone.batch.records
    features = ranker.gather(alone.batch, alone.neighbours, stages.context)
    # A document is held out in all ways at once.
    documents = first + alone.batch.documents
    ways = [Way.of(features, alone.gold, documents)]
    cache = EncodingCache()
    fits = fits_of(records, features, stages.datastore.refresh(), cache)
    read = features.with_contexts(fits)
    if (fits.described > 0).any():
        brief = briefly_described(linker, records, features, fits, cache)
        correct = is_gold(features.entities, alone.gold)
        others = [
            read,
            features.with_contexts(half_described(fits)),
            features.with_contexts(brief),
        ]
        ways += [Way.of(way, alone.gold, documents) for way in others]
        twin = twins(features, correct)
        namesakes = [twin.with_contexts(description) for description in (fits, brief)]
        borrowed = borrowed_aliases(records, features, correct, fits)
        if borrowed is not None:
            namesakes += [
                borrowed.with_contexts(description) for description in (fits, brief)
            ]
        ways += [Way.of(way, alone.gold, documents, MADE_ABSENT) for way in namesakes]
        ways.append(
            other_meanings(linker, records, features, correct, fits, documents, cache)
        )
    few = one_candidate(read, alone.gold)
    ways.append(Way.of(few, alone.gold[::FEW], documents[::FEW]))
    ways.append(in_half_list(linker, alone, documents, cache))
    linker.feedback.add_exemplars(docs[::2])
    beside = annotated_mentions(linker.stages, docs[1::2])
    with_exemplars = ranker.gather(
        beside.batch, beside.neighbours, linker.stages.context
    )
    linker.feedback.remove_exemplars(span for doc in docs[::2] for span in doc.ents)
    second = first + 1 + 2 * beside.batch.documents
    ways.append(Way.of(with_exemplars, beside.gold, second))
    return Collected(ways, alone, beside)


def in_half_list(
    linker: ArboLinker,
    found: AnnotatedMentions,
    documents: np.ndarray,
    cache: EncodingCache,
) -> Way:
    """Mentions where half of the entities are left out of the list."""
    stages = linker.stages
    left_out = (
        np.random.default_rng(0).random(stages.datastore.kb.entities.positions) < 0.5
    )
    features = without(linker, found, left_out, cache)
    return Way.of(features, found.gold, documents)._replace(is_half=True)


def without(
    linker: ArboLinker,
    found: AnnotatedMentions,
    left_out: np.ndarray,
    cache: EncodingCache,
) -> CandidateFeatures:
    """Candidates of mentions, read in context, without some entities.

    left_out: (positions,) bool.
    """
    stages = linker.stages
    batch = found.batch
    own = stages.datastore.refresh().allowed_entities(batch)
    allowed = AllowedEntities.all_but(left_out, len(batch), own)
    neighbours = stages.retrieve(batch, allowed=allowed)
    ranker = FeatureRanker(pretrained=False)
    features = ranker.gather(batch, neighbours, stages.context)
    return features.with_contexts(
        fits_of(batch.records, features, stages.datastore.refresh(), cache)
    )


def one_candidate(features: CandidateFeatures, gold: np.ndarray) -> CandidateFeatures:
    """One candidate of every fourth mention: its entity, if it is one, or any by chance."""
    rows = np.arange(0, len(features), FEW)
    part = features.take(rows)
    column = np.random.default_rng(0).integers(np.maximum(part.valid.sum(axis=1), 1))
    column[::2] = is_gold(part.entities, gold[rows])[::2].argmax(axis=1)
    return part.where(np.arange(part.entities.shape[1]) == column[:, None])


def twins(candidates: CandidateFeatures, correct: np.ndarray) -> CandidateFeatures:
    """Made namesakes: one or two other candidates have names as similar as the right one's.

    correct: (m, c) bool.
    """
    rng = np.random.default_rng(0)
    features = candidates.features.copy()
    for mention in np.flatnonzero(correct.any(axis=1)).tolist():
        others = np.flatnonzero(candidates.valid[mention] & ~correct[mention])
        chosen = rng.permutation(others)[: rng.integers(1, 3)]
        features[mention, chosen] = features[mention, correct[mention].argmax()]
        # Vectors of one name differ a little, by the description that each is read with.
        noise = rng.normal(0.0, NOISE, size=(len(chosen), 1))
        features[np.ix_([mention], chosen, VECTORS)] += noise
        right = correct[mention].argmax()
        # Texts do not always write a name as the list does, and of a short name any of its
        # entities may have it as the title: the context is to decide.
        for feature, preference in ((EXACT, SPELLED), (TITLE, 1 / (1 + len(chosen)))):
            if rng.random() < 0.5:
                features[mention, :, feature] = 0.0
                preferred = right if rng.random() < preference else rng.choice(chosen)
                features[mention, preferred, feature] = 1.0
    return replace(candidates, features=features)


def borrowed_aliases(
    records: Sequence[MentionRecord],
    candidates: CandidateFeatures,
    correct: np.ndarray,
    fits: ContextFits,
) -> CandidateFeatures | None:
    """The same, but that another entity has the mention as an alias, and the right one only names
    that contain it, such as "Halix Oil & Gas" for "Halix". Only proper names are so used.

    correct: (m, c) bool.
    RETURNS: None where the corpus has too few names that contain a mention.
    """
    rng = np.random.default_rng(0)
    features = candidates.features.copy()
    contains = candidates.valid & (candidates.column("contains") > 0)
    partial = features[contains & (candidates.column("missing") > 0)]
    if len(partial) < PARTIAL_NAMES:
        return None
    described = fits.described > 0
    for mention in np.flatnonzero((correct & described).any(axis=1)).tolist():
        right = (correct[mention] & described[mention]).argmax()
        strangers = np.flatnonzero(
            candidates.valid[mention] & described[mention] & ~correct[mention]
        )
        if len(strangers) and records[mention].normalized[:1].isupper():
            stranger = rng.choice(strangers)
            features[mention, stranger] = features[mention, right]
            features[mention, stranger, TITLE] = 0.0
            features[mention, right] = partial[rng.integers(len(partial))]
    return replace(candidates, features=features)


def other_meanings(
    linker: ArboLinker,
    records: Sequence[MentionRecord],
    candidates: CandidateFeatures,
    correct: np.ndarray,
    fits: ContextFits,
    documents: np.ndarray,
    cache: EncodingCache,
) -> Way:
    """The mentions of described entities, which have the description of any other one instead.

    None of their candidates is right.

    correct: (m, c) bool.
    documents: (m,) int64, as in ``Way``.
    """
    rng = np.random.default_rng(0)
    right = correct & (fits.described > 0)
    rows = np.flatnonzero(right.any(axis=1))
    columns = right[rows].argmax(axis=1)
    positions = candidates.entities[rows, columns]
    entities = linker.kb.entities.at_all(positions.tolist())
    strangers = positions[rng.permutation(len(positions))]
    pairs = zip(positions.tolist(), strangers.tolist())
    texts = [
        joined(entities[one].title, entities[other].description)
        for one, other in pairs
    ]
    vectors = unit(linker.encoder.encode_passages("entity", texts, DESCRIPTION_PIECES))
    read = with_texts(linker, records, fits, (rows, columns), vectors, cache)
    of_another = rows[positions != strangers]
    features = candidates.with_contexts(read).take(of_another)
    nothing = np.zeros(features.entities.shape, dtype=bool)
    return Way(features, nothing, documents[of_another], misfit=True)


def half_described(fits: ContextFits) -> ContextFits:
    """The same, but that half of the entities have no description."""
    lacks = np.random.default_rng(0).random(fits.fit.shape) < 0.5
    lacks &= fits.described > 0
    beyond = np.where(lacks, fits.beyond, np.float32(0))
    return replace(
        fits,
        fit=fits.fit - beyond,
        beyond=fits.beyond - beyond,
        shared=fits.shared - beyond,
        described=np.where(lacks, np.float32(0), fits.described),
    )


def briefly_described(
    linker: ArboLinker,
    records: Sequence[MentionRecord],
    candidates: CandidateFeatures,
    fits: ContextFits,
    cache: EncodingCache,
) -> ContextFits:
    """The same, but that descriptions have ``BRIEF`` words."""
    mentions, columns = np.nonzero(fits.described > 0)
    positions, place = np.unique(
        candidates.entities[mentions, columns], return_inverse=True
    )
    entities = linker.kb.entities.at_all(positions.tolist())
    texts = []
    for position in positions.tolist():
        words = entities[position].description.split()[:BRIEF]
        texts.append(joined(entities[position].title, " ".join(words)))
    encode = linker.encoder.encode_passages
    vectors = unit(encode("entity", texts, DESCRIPTION_PIECES))
    return with_texts(
        linker, records, fits, (mentions, columns), vectors[place], cache
    )


def with_texts(
    linker: ArboLinker,
    records: Sequence[MentionRecord],
    fits: ContextFits,
    cells: tuple[np.ndarray, np.ndarray],
    vectors: np.ndarray,
    cache: EncodingCache,
) -> ContextFits:
    """The same, but that some candidates have other texts.

    cells: The mention and the column of each of these candidates.
    vectors: (n, width) float32 of length 1, those of their texts.
    """
    contexts = contexts_of(records, linker.encoder, cache)
    fit = fits.fit.copy()
    fit[cells] = np.einsum("nd,nd->n", contexts[cells[0]], vectors)
    change = fit - fits.fit
    return replace(
        fits, fit=fit, beyond=fits.beyond + change, shared=fits.shared + change
    )


def lacked_names(kb: Path, count: int, first: int, seed: int = 0) -> Way:
    """Names as mentions, where other entities have similar ones: variants, and siblings.

    Two thirds are names that their entities were made to lack, where entities have several.

    count: How many names are taken away.
    first: The number of the first of them.
    seed: Which names.
    """
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "kb"
        shutil.copytree(kb, copy)
        mentions = []
        with ArboKB.open(copy) as opened:
            entities = list(opened)
            order = np.random.default_rng(seed).permutation(len(entities)).tolist()
            several = [entities[i] for i in order if len(entities[i].names) > 1][
                :count
            ]
            changed = []
            for number, entity in enumerate(several):
                names = list(entity.names)
                mentions.append((names.pop(number % len(names)), entity.id))
                changed.append(
                    replace(entity, title=names[0], aliases=tuple(names[1:]))
                )
            opened.update(changed)
            rest = [entities[i] for i in order[::-1] if entities[i].names]
            mentions += [(one.names[-1], one.id) for one in rest[: count // 2]]
        linker = spacy.blank("en").add_pipe("arbo_linker")
        linker.set_kb(copy)
        linker.refresh()
        docs = [linker_doc(linker, *mention) for mention in mentions]
        found = annotated_mentions(linker.stages, docs)
        ranker = FeatureRanker(pretrained=False)
        features = ranker.gather(found.batch, found.neighbours, linker.stages.context)
        way = Way.of(features, found.gold, first + found.batch.documents, MADE_ABSENT)
    ngrams = features.column("ngrams")
    near = np.where(way.correct, 0.0, ngrams).max(axis=1) >= SIBLING
    rows = np.flatnonzero(near)
    return Way(
        features.take(rows),
        way.correct[rows],
        way.documents[rows],
        MADE_ABSENT,
        siblings=True,
    )


def linker_doc(linker: ArboLinker, name: str, kb_id: str) -> Doc:
    """A document that is one mention."""
    doc = spacy.blank("en", vocab=linker.vocab).make_doc(name)
    doc.ents = [Span(doc, 0, len(doc), label="NAME", kb_id=kb_id)]
    return doc


def write_ways(path: Path, ways: Sequence[Way]) -> None:
    """Keep mentions in several ways in one file."""
    arrays: dict[str, np.ndarray] = {}
    for number, way in enumerate(ways):
        kept = {
            field.name: getattr(way.candidates, field.name)
            for field in fields(way.candidates)
        }
        kept.update(way._asdict())
        del kept["candidates"]
        arrays.update(
            {f"{number}.{name}": np.asarray(value) for name, value in kept.items()}
        )
    write_file(path, pack_arrays(arrays))


def read_ways(path: Path) -> list[Way]:
    """Load the result of ``write_ways``."""
    arrays = unpack_arrays(path.read_bytes())
    ways = []
    for number in range(1 + max(int(name.split(".")[0]) for name in arrays)):
        kept = {
            name: arrays[f"{number}.{name}"]
            for name in Way._fields
            if name != "candidates"
        }
        names = [field.name for field in fields(CandidateFeatures)]
        candidates = CandidateFeatures(*(arrays[f"{number}.{name}"] for name in names))
        flags = {name: bool(kept[name]) for name in ("is_half", "siblings", "misfit")}
        kept.update(flags, absent=float(kept["absent"]))
        ways.append(Way(candidates, **kept))
    return ways
