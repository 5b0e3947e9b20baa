"""Fit the weights and the curves that a linker begins with, for the untrained bundled encoder.

    python default_ranker.py gather FOLDER DOMAIN:TRAIN.spacy:DEV.spacy:KB … [--mentions 1200]
        [--seed 0]
    python default_ranker.py fit FOLDER [--write]
    python default_ranker.py score FOLDER

The corpora are annotated and public. *gather* reads each in several ways, see ``ranker_ways.py``,
and keeps features and labels in a folder, by the name of the corpus. TRAIN or DEV may be empty.
*fit* scores each DEV by weights that were fitted without its domain, then by those of all. Of a DEV
it also reads lists that lack half and nine tenths of the entities, and estimates how many each has.
The curves are printed for ``calibration.py``. *score* scores the weights of the package so.
"""

import argparse
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import spacy
import srsly
from ranker_ways import Way, collect, lacked_names, read_ways, without, write_ways
from sklearn.ensemble import HistGradientBoostingClassifier
from spacy.tokens import Doc

from spacy_arbo_el.base.calibration import (
    Calibration,
    Curve,
    fit_logistic,
    probability,
)
from spacy_arbo_el.corpora.docbin import read_docs
from spacy_arbo_el.encoders.inputs import EncodingCache
from spacy_arbo_el.evaluation.reliability import calibration_error
from spacy_arbo_el.fitting.calibrate import (
    LabelledEdges,
    annotated_mentions,
    mention_edges,
    same_entity_edges,
)
from spacy_arbo_el.linker import ArboLinker
from spacy_arbo_el.linking.coverage import estimate_share, shift_between
from spacy_arbo_el.mentions.labels import is_gold
from spacy_arbo_el.ranking import ranker_fit
from spacy_arbo_el.ranking.feature_ranker import (
    PRETRAINED,
    PretrainedWeights,
    pretrained_weights,
    vectors_of_probes,
)
from spacy_arbo_el.ranking.features import CandidateFeatures
from spacy_arbo_el.ranking.ranker_weights import (
    PRESENCE_FEATURES,
    Assessment,
    RankerWeights,
)
from spacy_arbo_el.ranking.ranking import AnnotatedMentions
from spacy_arbo_el.ranking.trees import Trees
from spacy_arbo_el.retrieval.neighbours import Neighbours
from spacy_arbo_el.storage.files import pack_arrays, unpack_arrays, write_file

# In about so many ways a mention is used.
WAYS = 10
# How much a mention counts for presence in a list that really lacks entities, and among made
# namesakes, where it counts 1 as it is.
HALF_LIST = 4.0
NAMESAKES = 0.1
# And where an entity of the name has the description of another one.
MISFITS = 0.1
# How much all names with siblings count, where all mentions of a corpus count 1; and those of them
# that have a word in the place of another, or an opposed one, such as chronic and acute hepatitis.
SIBLINGS = 0.2
SWAPPED = 2.0
# The share of a mention that another word must be of.
IS_SWAPPED = 0.15
# What speaks against a candidate beside the trees, in log-odds. Few mentions in these corpora have
# a list with only their opposite, such as import for export.
DOUBTS = {"swapped": -0.5, "opposed": -4.5}
# Trees that say from the evidence whether any candidate is right.
N_TREES = 150
DEPTH = 6
MIN_LEAF = 100
# Weights are fitted among so many candidates of a mention.
N_CANDIDATES = 12
# The default of the component.
THRESHOLD = 0.3
# The shares of entities that the lists lack which a dev set is linked with.
LACKS = {"complete": 0.0, "half": 0.5, "tenth": 0.9}


def gather(folder: Path, corpora: list[str], mentions: int, seed: int) -> None:
    """Keep features and labels of corpora, in files for each.

    seed: Which documents of a TRAIN are read, and which names are taken away. The documents of the
        first few seeds differ, so files of several seeds can be fitted together.
    """
    folder.mkdir(parents=True, exist_ok=True)
    linkers: dict[str, ArboLinker] = {}
    siblings: dict[str, Way] = {}
    for number, item in enumerate(corpora):
        domain, train, dev, kb = item.split(":")
        if kb not in linkers:
            linkers[kb] = spacy.blank("en").add_pipe("arbo_linker")
            linkers[kb].set_kb(kb)
            linkers[kb].refresh()
        linker = linkers[kb]
        if train:
            if kb not in siblings:
                first = 10_000_000 * (1 + len(siblings)) + 1_000_000 * seed
                siblings[kb] = lacked_names(Path(kb), mentions, first, seed)
            docs = some_documents(
                list(read_docs(Path(train), linker.vocab)), mentions, seed
            )
            found = collect(linker, docs, 100_000 * number + 10_000 * seed)
            name = f"{domain}.{Path(train).stem}.{seed}"
            write_ways(folder / f"{name}.train", [*found.ways, siblings[kb]])
            write_edges(folder / f"{name}.edges", edges(linker, *found[1:]))
        if dev:
            docs = list(read_docs(Path(dev), linker.vocab))
            ways = dev_ways(linker, some_documents(docs, mentions))
            write_ways(folder / f"{domain}.{Path(dev).stem}.dev", ways)
        print(f"{item}: read", flush=True)


def some_documents(docs: list[Doc], n_mentions: int, seed: int = 0) -> list[Doc]:
    """Documents with about so many mentions, spread over the corpus."""
    wanted = max(round(n_mentions * len(docs) / sum(len(doc.ents) for doc in docs)), 2)
    step = max(len(docs) // wanted, 1)
    return docs[seed % step :: step][:wanted]


def dev_ways(linker: ArboLinker, docs: list[Doc]) -> list[Way]:
    """The mentions of documents with lists that lack more and more of the entities."""
    found = annotated_mentions(linker.stages, docs)
    kept = EncodingCache()
    ways = []
    for share in LACKS.values():
        positions = linker.datastore.kb.entities.positions
        left_out = np.random.default_rng(1).random(positions) < share
        features = without(linker, found, left_out, kept)
        ways.append(Way.of(features, found.gold, found.batch.documents))
    return ways


def nearest_by_name(way: Way) -> Way:
    """The same with the candidates that have the nearest names, among which fitting is fast."""
    candidates = way.candidates
    order = np.argsort(-candidates.name_similarity(), axis=1, kind="stable")
    columns = np.sort(order[:, :N_CANDIDATES], axis=1)

    def kept(values: np.ndarray) -> np.ndarray:
        return np.take_along_axis(values, columns, axis=1)

    features = np.take_along_axis(candidates.features, columns[:, :, None], axis=1)
    own = (
        kept(candidates.entities),
        features,
        kept(candidates.exemplars),
        kept(candidates.prior),
    )
    return way._replace(candidates=CandidateFeatures(*own), correct=kept(way.correct))


def fit(corpora: list[tuple[str, list[Way]]]) -> RankerWeights:
    """Weights that fit some corpora. Each domain counts alike, and each corpus of it.

    corpora: Domain and mentions of each.
    """
    parts = [part for _, own in corpora for part in own]
    total = sum(len(part.correct) for part in parts)
    in_domain = Counter(domain for domain, _ in corpora)
    shares, presence = [], []
    for domain, own in corpora:
        weight = total / WAYS / len(in_domain) / in_domain[domain]
        size = sum(len(part.correct) for part in own)
        for part in own:
            count = len(part.correct)
            shares.append(np.full(count, weight / size))
            one = weight / size
            if part.siblings:
                presence.append(sibling_counts(part) * weight / max(count, 1))
                continue
            if part.is_half:
                one *= HALF_LIST
            elif part.misfit:
                one *= MISFITS
            elif part.absent:
                one *= NAMESAKES
            presence.append(
                np.tile([[one * (1 - part.absent)], [one * part.absent]], count)
            )
    labelled = ranker_fit.Labelled(
        CandidateFeatures.concat([part.candidates for part in parts]),
        np.concatenate([part.correct for part in parts]),
        np.concatenate(shares),
    )
    if labelled.useful.sum() < ranker_fit.MIN_MENTIONS:
        raise SystemExit("There are too few mentions.")
    fold_of = ranker_fit.folds_of(np.concatenate([part.documents for part in parts]))
    networks = ranker_fit.best_networks(labelled, fold_of, ranker_fit.FOLDS, None)
    data = ranker_fit.presence_data(
        networks, labelled, np.concatenate(presence, axis=1)
    )
    # The trees decide alone.
    by_trees = [data.temperature, *np.zeros(len(PRESENCE_FEATURES)), 1.0, 0.0]
    curve = np.array(by_trees, dtype=np.float32)
    trees = boosted(data)
    return with_doubts(
        replace(networks.mean, curve=curve, coverage=data.coverage, trees=trees)
    )


def with_doubts(weights: RankerWeights) -> RankerWeights:
    """The same with ``DOUBTS`` beside the trees."""
    doubts = [DOUBTS.get(name, 0.0) for name in PRESENCE_FEATURES]
    curve = weights.curve.copy()
    curve[1 : 1 + len(PRESENCE_FEATURES)] += np.array(doubts, dtype=np.float32)
    return replace(weights, curve=curve)


def sibling_counts(part: Way) -> np.ndarray:
    """How much names with siblings count for presence, with and without their entity in the list.

    RETURNS: (2, m) float.
    """
    counts = []
    for candidates in (part.candidates, part.candidates.where(~part.correct)):
        best = candidates.name_similarity().argmax(axis=1)
        rows = np.arange(len(best))
        swapped = candidates.column("swapped")[rows, best] >= IS_SWAPPED
        opposed = candidates.column("opposed")[rows, best] > 0
        counts.append(np.where(swapped | opposed, SWAPPED, SIBLINGS))
    shares = np.array([[1 - part.absent], [part.absent]])
    return np.stack(counts) * shares


def boosted(data: ranker_fit.PresenceData) -> Trees:
    """Gradient boosting over evidence: what speaks for a candidate never makes it less likely."""
    model = HistGradientBoostingClassifier(
        max_iter=N_TREES,
        max_depth=DEPTH,
        min_samples_leaf=MIN_LEAF,
        l2_regularization=10.0,
        monotonic_cst=list(PRESENCE_FEATURES.values()),
        early_stopping=False,
        random_state=0,
    )
    counted = data.counts > 0
    weights = data.counts[counted] / data.counts[counted].mean()
    model.fit(data.features[counted], data.present[counted], sample_weight=weights)
    # The trees are not part of scikit-learn's interface; the check below says if they change.
    parts = [predictors[0].nodes for predictors in model._predictors]
    sizes = np.array([1, *(len(part) for part in parts)])
    starts = np.cumsum(sizes)[:-1]
    nodes = np.concatenate(parts)
    shift = np.repeat(starts, sizes[1:])
    is_leaf = nodes["is_leaf"].astype(bool)

    def following(name: str) -> np.ndarray:
        return np.append(0, np.where(is_leaf, 0, nodes[name] + shift)).astype(np.int64)

    # The first tree is one leaf, which has what everything begins with.
    trees = Trees(
        roots=np.append(0, starts).astype(np.int64),
        feature=np.append(-1, np.where(is_leaf, -1, nodes["feature_idx"])).astype(
            np.int64
        ),
        threshold=np.append(0.0, np.where(is_leaf, 0.0, nodes["num_threshold"])),
        left=following("left"),
        right=following("right"),
        values=np.append(model._baseline_prediction.item(), nodes["value"]),
    )
    np.testing.assert_allclose(
        trees(data.features), model.decision_function(data.features)
    )
    return trees


def scores_of(
    name: str, weights: RankerWeights, ways: list[Way]
) -> dict[str, dict[str, float]]:
    """Scores of weights on a dev set: before, and after coverage was estimated, by list."""
    scores = {}
    for kind, way in zip(LACKS, ways):
        found = weights.assess(way.candidates)
        best = found.log_shares.argmax(axis=1)
        right = way.correct[np.arange(len(best)), best]
        is_nil = ~way.correct.any(axis=1)
        estimate = estimate_share(found.presence, weights.coverage, way.documents)
        shift = shift_between(weights.coverage, estimate.share)
        row = {"first": float(right.mean()), "present": float(1 - is_nil.mean())}
        row["estimate"] = estimate.share
        moved = Assessment(found.log_shares, found.presence + shift)
        for when, one in (("before", found), ("after", moved)):
            probabilities = probability(one.logits.max(axis=1))
            decided = np.where(probabilities >= THRESHOLD, right, is_nil)
            row[f"decided_{when}"] = float(decided.mean())
            row[f"ece_{when}"] = calibration_error(probabilities, right)
        scores[kind] = row
        print(
            f"{name}, {kind}:",
            ", ".join(f"{key} {value:.3f}" for key, value in row.items()),
        )
    return scores


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
    vectors = alone.batch.encoded
    same = same_entity_edges(
        stages.discovery, vectors, linker.similarity, alone.identities
    )
    return {**found, "same_new_entity": same}


def write_edges(path: Path, found: dict[str, LabelledEdges]) -> None:
    """Keep edges with their labels."""
    scores = {f"{kind}.scores": pair[0] for kind, pair in found.items()}
    labels = {f"{kind}.correct": pair[1] for kind, pair in found.items()}
    write_file(path, pack_arrays({**scores, **labels}))


def read_edges(path: Path) -> dict[str, LabelledEdges]:
    """Load the result of ``write_edges``."""
    arrays = unpack_arrays(path.read_bytes())
    kinds = Calibration().to_config()
    return {
        kind: (arrays[f"{kind}.scores"], arrays[f"{kind}.correct"]) for kind in kinds
    }


def fit_curves(
    parts: list[dict[str, LabelledEdges]],
) -> Iterator[tuple[str, Curve | None, int]]:
    """The curve of each kind, and how many edges it is fitted on. Each corpus counts equally."""
    for kind in Calibration().to_config():
        scores, correct = zip(*(part[kind] for part in parts))
        count = min(len(part) for part in scores if len(part) >= 200)
        rows = [
            np.random.default_rng(0).permutation(len(part))[:count] for part in scores
        ]
        scores = np.concatenate([part[row] for part, row in zip(scores, rows)])
        correct = np.concatenate([part[row] for part, row in zip(correct, rows)])
        yield kind, fit_logistic(scores, correct), len(scores)


def training_sets(folder: Path) -> list[tuple[str, list[Way]]]:
    """Domain and mentions of each corpus, of all seeds that it was read with."""
    found: dict[tuple[str, str], list[Way]] = {}
    for path in sorted(folder.glob("*.train")):
        domain, corpus = path.name.split(".")[:2]
        ways = [nearest_by_name(way) for way in read_ways(path)]
        found.setdefault((domain, corpus), []).extend(ways)
    return [(domain, ways) for (domain, _), ways in found.items()]


def dev_sets(folder: Path) -> list[tuple[str, str, list[Way]]]:
    """Domain, name and lists of each dev set."""
    paths = sorted(folder.glob("*.dev"))
    return [(*path.name.split(".")[:2], read_ways(path)) for path in paths]


def score_package(folder: Path) -> None:
    """Score the weights of the package."""
    weights = pretrained_weights().weights
    scores = {
        name: scores_of(name, weights, ways) for _, name, ways in dev_sets(folder)
    }
    rows = {
        f"{name}, {kind}": row
        for name, rows_of_lists in scores.items()
        for kind, row in rows_of_lists.items()
    }
    srsly.write_json("metrics/package_ranker.json", rows)


def fit_all(folder: Path, *, write: bool) -> None:
    """Fit on all corpora, and without each domain; see the top of the file."""
    trained = training_sets(folder)
    tests = dev_sets(folder)
    scores = {}
    for left_out in sorted({domain for domain, *_ in tests}):
        weights = fit([(domain, own) for domain, own in trained if domain != left_out])
        for domain, name, ways in tests:
            if domain == left_out:
                key = f"{name}, fitted without {domain}"
                scores[key] = scores_of(key, weights, ways)
    weights = fit(trained)
    print(f"coverage of the fit {weights.coverage:.3f}")
    for _, name, ways in tests:
        key = f"{name}, fitted on all"
        scores[key] = scores_of(key, weights, ways)
    srsly.write_json("metrics/default_ranker.json", scores)
    for kind, curve, count in fit_curves(
        [read_edges(p) for p in sorted(folder.glob("*.edges"))]
    ):
        rounded = None if curve is None else tuple(round(float(x), 1) for x in curve)
        print(f"    {kind}: Curve = {rounded}  # {count} edges")
    if write:
        linker = spacy.blank("en").add_pipe("arbo_linker")
        linker.set_kb([{"id": "A", "title": "A"}])
        linker.refresh()
        write_file(
            PRETRAINED,
            PretrainedWeights(weights, vectors_of_probes(linker.encoder)).to_bytes(),
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    gathering = commands.add_parser("gather")
    gathering.add_argument("folder", type=Path)
    gathering.add_argument("corpora", nargs="+", metavar="DOMAIN:[TRAIN]:[DEV]:KB")
    gathering.add_argument("--mentions", type=int, default=1200)
    gathering.add_argument("--seed", type=int, default=0)
    fitting = commands.add_parser("fit")
    fitting.add_argument("folder", type=Path)
    fitting.add_argument(
        "--write", action="store_true", help="Write the weights to the package."
    )
    commands.add_parser("score").add_argument("folder", type=Path)
    args = parser.parse_args()
    if args.command == "gather":
        gather(args.folder, args.corpora, args.mentions, args.seed)
    elif args.command == "score":
        score_package(args.folder)
    else:
        fit_all(args.folder, write=args.write)


if __name__ == "__main__":
    main()
