"""Fit the weights and the curves that a linker begins with, for the untrained bundled encoder.

    python default_ranker.py DOMAIN:TRAIN.spacy:DEV.spacy:KB … [--mentions 1200] [--write]

The corpora are annotated and public. Each is used in several ways, see ``collect``: by names alone
and in context; with descriptions that are short, or that half of the entities lack; with made
namesakes; with one candidate, as in a knowledge base of few entities; with exemplars; and with
names that their entities were made to lack, to see what tells variants of a name from siblings. In
half of the weight the entity of a mention is removed. TRAIN or DEV may be empty. Each DEV is scored
by weights that were fitted without its domain, then by those of all. The curves are printed for
``calibration.py``.
"""

import argparse
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import spacy
import srsly
from spacy.tokens import Doc, Span

from spacy_arbo_el.base.arrays import unit
from spacy_arbo_el.base.calibration import Calibration, Curve, fit_logistic, probability
from spacy_arbo_el.corpora.docbin import read_docs
from spacy_arbo_el.evaluation.reliability import reliability
from spacy_arbo_el.fitting.calibrate import (
    AnnotatedMentions,
    LabelledEdges,
    mention_edges,
    same_entity_edges,
)
from spacy_arbo_el.kb.knowledge_base import ArboKB
from spacy_arbo_el.linker import ArboLinker
from spacy_arbo_el.mentions.labels import is_gold
from spacy_arbo_el.mentions.record import MentionRecord
from spacy_arbo_el.ranking import ranker_fit
from spacy_arbo_el.ranking.contexts import (
    CONTEXT_PIECES,
    DESCRIPTION_PIECES,
    description_text,
    read_contexts,
)
from spacy_arbo_el.ranking.feature_ranker import PRETRAINED, FeatureRanker, PretrainedWeights
from spacy_arbo_el.ranking.features import FEATURES, CandidateFeatures
from spacy_arbo_el.ranking.ranker_weights import RankerWeights, sum_of_networks
from spacy_arbo_el.retrieval.neighbours import Neighbours
from spacy_arbo_el.storage.files import write_file

FEW = 4
# In about so many ways a mention is used.
WAYS = 6
# Networks whose mean is fitted where probabilities are not.
NETWORKS = 3
# How much the similarities of vectors of made namesakes differ.
NOISE = 0.04
EXACT = FEATURES.index("exact")
VECTORS = [FEATURES.index("name"), FEATURES.index("nearest")]
# Words of the shortest descriptions that are made.
BRIEF = 4
# Weight of mentions as if the knowledge base lacked their entity: lists of users lack many. And of
# names whose siblings it has.
ABSENT, SIBLINGS_ABSENT = 0.2, 0.5
# The least similarity of n-grams of siblings.
SIBLING = 0.6
# The default of the component.
THRESHOLD = 0.4
Parts = tuple[ArboLinker, AnnotatedMentions, AnnotatedMentions]


def some_documents(docs: list[Doc], n_mentions: int) -> list[Doc]:
    """Documents with about so many mentions, spread over the corpus."""
    wanted = max(round(n_mentions * len(docs) / sum(len(doc.ents) for doc in docs)), 2)
    return docs[:: max(len(docs) // wanted, 1)][:wanted]


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
    rng, features = np.random.default_rng(0), candidates.features.copy()
    for mention in np.flatnonzero(correct.any(axis=1)).tolist():
        others = np.flatnonzero(candidates.valid[mention] & ~correct[mention])
        chosen = rng.permutation(others)[: rng.integers(1, 3)]
        features[mention, chosen] = features[mention, correct[mention].argmax()]
        # Vectors of one name differ a little, by the description that each is read with.
        noise = rng.normal(0.0, NOISE, size=(len(chosen), 1))
        features[np.ix_([mention], chosen, VECTORS)] += noise
        if rng.random() < 0.5:
            # Texts do not always write a name as the list does.
            right = correct[mention].argmax()
            features[mention, :, EXACT] = 0.0
            features[mention, rng.choice([right, *chosen]), EXACT] = 1.0
    made = replace(candidates, features=features)
    return made.with_contexts(candidates.column("fit"), candidates.column("described") > 0)


def half_described(candidates: CandidateFeatures) -> CandidateFeatures:
    """The same, but that half of the entities have no description."""
    kept = np.random.default_rng(0).random(candidates.entities.shape) < 0.5
    described = (candidates.column("described") > 0) & kept
    return candidates.with_contexts(candidates.column("fit"), described)


def briefly_described(
    linker: ArboLinker, records: Sequence[MentionRecord], candidates: CandidateFeatures
) -> CandidateFeatures:
    """The same, but that descriptions have ``BRIEF`` words."""
    described = candidates.column("described") > 0
    mentions, columns = np.nonzero(described)
    if not len(mentions):
        return candidates
    positions, place = np.unique(candidates.entities[mentions, columns], return_inverse=True)
    entities = linker.kb.entities.at_all(positions.tolist())
    brief = [
        replace(entities[p], description=" ".join(entities[p].description.split()[:BRIEF]))
        for p in positions.tolist()
    ]
    texts = [description_text(entity) for entity in brief]
    encode = linker.encoder.encode_passages
    vectors = unit(encode("entity", texts, DESCRIPTION_PIECES))
    contexts = unit(encode("mention", [record.passage for record in records], CONTEXT_PIECES))
    fit = np.zeros(described.shape, dtype=np.float32)
    fit[mentions, columns] = np.einsum("nd,nd->n", contexts[mentions], vectors[place])
    return candidates.with_contexts(fit, described)


class Labelled(NamedTuple):
    """Candidates of mentions with labels.

    correct: (m, c) bool.
    documents: (m,) int64, different in each corpus.
    siblings: Whether other entities have similar names, see ``lacked_names``.
    """

    candidates: CandidateFeatures
    correct: np.ndarray
    documents: np.ndarray
    siblings: bool = False

    @classmethod
    def of(
        cls, candidates: CandidateFeatures, gold: np.ndarray, documents: np.ndarray
    ) -> "Labelled":
        """gold: (m, g) int64, as in ``AnnotatedMentions``."""
        return cls(candidates, is_gold(candidates.entities, gold), documents)


def fit(corpora: list[tuple[str, list[Labelled]]], *, whole: bool = True) -> RankerWeights:
    """Weights that fit some corpora. Each domain counts alike, and each corpus of it.

    corpora: Domain and mentions of each.
    whole: Whether probabilities are fitted too, which takes several times as long.
    """
    parts = [part for _, own in corpora for part in own]
    total, in_domain = sum(len(part.correct) for part in parts), Counter(d for d, _ in corpora)
    shares, presence = [], []
    for domain, own in corpora:
        weight = total / WAYS / len(in_domain) / in_domain[domain]
        size = sum(len(part.correct) for part in own)
        for part in own:
            count = len(part.correct)
            shares.append(np.full(count, weight / size))
            # For the probability that any candidate is right, siblings count as all else does.
            absent = SIBLINGS_ABSENT if part.siblings else ABSENT
            one = weight / max(count if part.siblings else size, 1)
            presence.append(np.tile([[one * (1 - absent)], [one * absent]], count))
    data = (
        CandidateFeatures.concat([part.candidates for part in parts]),
        np.concatenate([part.correct for part in parts]),
    )
    if not whole:
        labelled = ranker_fit.Labelled(*data, np.concatenate(shares))
        standards = ranker_fit.standards_of(labelled.candidates)
        networks = [ranker_fit.train_network(labelled, standards, n) for n in range(NETWORKS)]
        return sum_of_networks(networks, [1 / NETWORKS] * NETWORKS)
    documents = np.concatenate([part.documents for part in parts])
    weights = ranker_fit.fit_weights(
        *data, documents, np.concatenate(shares), presence=np.concatenate(presence, axis=1)
    )
    if weights is None:
        raise SystemExit("There are too few mentions.")
    return weights


def scores_of(name: str, weights: RankerWeights, test: Labelled) -> dict[str, float]:
    """R@1, accuracy at the default threshold without NIL, and ECE, of weights on a dev set."""
    logits = weights.logits(test.candidates)
    right = np.take_along_axis(test.correct, logits.argmax(axis=1)[:, None], axis=1)[:, 0]
    probabilities = probability(logits.max(axis=1))
    linked = right & (probabilities >= THRESHOLD)
    error = reliability(probabilities, right).error
    print(f"{name}: R@1 {right.mean():.4f}, linked {linked.mean():.4f}, ECE {error:.4f}")
    names = ("arbo_recall_at_1", "arbo_acc", "arbo_calibration_error")
    return dict(zip(names, map(float, (right.mean(), linked.mean(), error))))


def entity_edges(neighbours: Neighbours, gold: np.ndarray) -> LabelledEdges:
    """The edge of each mention from its nearest entity."""
    nearest = neighbours.entities.first(1)
    return nearest.scores.ravel(), is_gold(nearest.ids, gold).ravel()


def exemplar_edges(neighbours: Neighbours, gold: np.ndarray) -> LabelledEdges:
    """The edges from exemplars of other entities than the one with the nearest text."""
    nearest = neighbours.entities.resized(1).ids
    changes = neighbours.exemplars.valid & (neighbours.exemplar_entities != nearest)
    correct = is_gold(neighbours.exemplar_entities, gold)
    return neighbours.exemplars.scores[changes], correct[changes]


# The curves that a linker begins with are fitted apart: they are for linkers with a reranker, which
# chooses between texts and exemplars itself.
def edges(
    linker: ArboLinker, alone: AnnotatedMentions, beside: AnnotatedMentions
) -> dict[str, LabelledEdges]:
    """What the curves are fitted on, by kind."""
    stages = linker.stages
    ranked = stages.rerank(alone.batch, alone.neighbours)
    nearest = ranked.neighbours.mentions
    found = {
        "entity": entity_edges(alone.neighbours, alone.gold),
        "exemplar": exemplar_edges(beside.neighbours, beside.gold),
        "mention": mention_edges(ranked.ranking, nearest, alone.identities),
    }
    features = stages.discovery.features(alone.batch.encoded, alone.batch.normalized)
    same = same_entity_edges(stages.discovery, features, linker.similarity, alone.identities)
    return {**found, "same_new_entity": same}


def fit_curves(parts: list[dict[str, LabelledEdges]]) -> Iterator[tuple[str, Curve | None, int]]:
    """The curve of each kind, and how many edges it is fitted on. Each corpus counts equally."""
    for kind in Calibration().to_config():
        scores, correct = zip(*(part[kind] for part in parts))
        count = min(len(part) for part in scores if len(part) >= 200)
        rows = [np.random.default_rng(0).permutation(len(part))[:count] for part in scores]
        scores = np.concatenate([part[row] for part, row in zip(scores, rows)])
        correct = np.concatenate([part[row] for part, row in zip(correct, rows)])
        yield kind, fit_logistic(scores, correct), len(scores)


def collect(linker: ArboLinker, docs: list[Doc], first: int) -> tuple[list[Labelled], Parts]:
    """Candidates of a corpus in several ways, and what the curves are fitted on.

    first: The number of its first document.
    """
    ranker, context = FeatureRanker(pretrained=False), linker.stages.context
    alone = AnnotatedMentions.retrieve(linker.stages, docs)
    records, gold = alone.batch.records, alone.gold
    features = ranker.gather(alone.batch, alone.neighbours, context)
    # A document is held out in all ways at once.
    documents = first + alone.batch.documents
    ways = [features]
    read = read_contexts(records, features, context.datastore)
    if read.column("described").any():
        brief, correct = briefly_described(linker, records, read), is_gold(read.entities, gold)
        ways += [read, half_described(read), brief, twins(read, correct), twins(brief, correct)]
    labelled = [Labelled.of(way, gold, documents) for way in ways]
    few = one_candidate(read, gold)
    labelled.append(Labelled.of(few, gold[::FEW], documents[::FEW]))
    linker.feedback.add_exemplars(docs[::2])
    beside = AnnotatedMentions.retrieve(linker.stages, docs[1::2])
    with_exemplars = ranker.gather(beside.batch, beside.neighbours, linker.stages.context)
    linker.feedback.remove_exemplars(span for doc in docs[::2] for span in doc.ents)
    second = first + 1 + 2 * beside.batch.documents
    labelled.append(Labelled.of(with_exemplars, beside.gold, second))
    return labelled, (linker, alone, beside)


def lacked_names(kb: Path, count: int, first: int) -> Labelled:
    """Names as mentions, where other entities have similar ones: variants, and siblings.

    Two thirds are names that their entities were made to lack, where entities have several.

    count: How many names are taken away.
    first: The number of the first of them.
    """
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "kb"
        shutil.copytree(kb, copy)
        mentions = []
        with ArboKB.open(copy) as opened:
            entities = list(opened)
            order = np.random.default_rng(0).permutation(len(entities)).tolist()
            several = [entities[i] for i in order if len(entities[i].names) > 1][:count]
            for number, entity in enumerate(several):
                names = list(entity.names)
                mentions.append((names.pop(number % len(names)), entity.id))
                opened.update([replace(entity, title=names[0], aliases=tuple(names[1:]))])
            rest = [entities[i] for i in order[::-1] if entities[i].names]
            mentions += [(one.names[-1], one.id) for one in rest[: count // 2]]
        linker = spacy.blank("en").add_pipe("arbo_linker")
        linker.set_kb(copy)
        docs = [linker_doc(linker, *mention) for mention in mentions]
        found = AnnotatedMentions.retrieve(linker.stages, docs)
        ranker = FeatureRanker(pretrained=False)
        features = ranker.gather(found.batch, found.neighbours, linker.stages.context)
        labelled = Labelled.of(features, found.gold, first + found.batch.documents)
    ngrams = features.column("ngrams")
    near = np.where(labelled.correct, 0.0, ngrams).max(axis=1) >= SIBLING
    rows = np.flatnonzero(near)
    return Labelled(
        features.take(rows), labelled.correct[rows], labelled.documents[rows], siblings=True
    )


def linker_doc(linker: ArboLinker, name: str, kb_id: str) -> Doc:
    """A document that is one mention."""
    doc = spacy.blank("en", vocab=linker.vocab).make_doc(name)
    doc.ents = [Span(doc, 0, len(doc), label="NAME", kb_id=kb_id)]
    return doc


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("corpora", nargs="+", metavar="DOMAIN:[TRAIN]:[DEV]:KB")
    parser.add_argument("--mentions", type=int, default=1200)
    parser.add_argument("--write", action="store_true", help="Write the weights into the package.")
    args = parser.parse_args()
    trained: list[tuple[str, list[Labelled]]] = []
    tests: list[tuple[str, str, Labelled]] = []
    parts, linkers, siblings = [], {}, {}
    for item in args.corpora:
        domain, train, dev, kb = item.split(":")
        if kb not in linkers:
            linkers[kb] = spacy.blank("en").add_pipe("arbo_linker")
            linkers[kb].set_kb(kb)
            linkers[kb].refresh()
        linker = linkers[kb]
        if train:
            docs = some_documents(list(read_docs(Path(train), linker.vocab)), args.mentions)
            labelled, part = collect(linker, docs, 100_000 * len(parts))
            trained.append((domain, [*labelled, siblings[kb]]))
            parts.append(part)
        if dev:
            docs = some_documents(list(read_docs(Path(dev), linker.vocab)), args.mentions)
            found = AnnotatedMentions.retrieve(linker.stages, docs)
            features = FeatureRanker(pretrained=False).gather(
                found.batch, found.neighbours, linker.stages.context
            )
            features = read_contexts(found.batch.records, features, linker.datastore)
            test = Labelled.of(features, found.gold, found.batch.documents)
            tests.append((domain, Path(dev).stem, test))
        print(f"{item}: read", flush=True)
    scores = {}
    for left_out in sorted({domain for domain, _, _ in tests}):
        weights = fit([(domain, own) for domain, own in trained if domain != left_out])
        for domain, name, test in tests:
            if domain == left_out:
                key = f"{name}, fitted without {domain}"
                scores[key] = scores_of(key, weights, test)
    weights = fit(trained)
    for _, name, test in tests:
        scores[f"{name}, fitted on all"] = scores_of(f"{name}, fitted on all", weights, test)
    srsly.write_json("metrics/default_ranker.json", scores)
    for linker in linkers.values():
        linker.reranker = replace(FeatureRanker(), weights=weights)
    for kind, curve, count in fit_curves([edges(*part) for part in parts]):
        rounded = None if curve is None else tuple(round(float(x), 1) for x in curve)
        print(f"    {kind}: Curve = {rounded}  # {count} edges")
    if args.write:
        encoder = next(iter(linkers.values())).encoder
        write_file(PRETRAINED, PretrainedWeights.for_encoder(weights, encoder).to_bytes())


if __name__ == "__main__":
    main()
