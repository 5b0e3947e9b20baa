"""Ways to use annotated documents, compared on documents that were held out.

A linker can stay as it is, be calibrated, store the mentions as exemplars, or be trained.
"""

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, replace

import numpy as np
from spacy.language import Language
from spacy.tokens import Doc

from ..base.errors import ArboError, Errors
from ..corpora.docs import unlinked_examples
from ..evaluation.outcomes import Outcome
from ..evaluation.reliability import reliability_of_links
from ..evaluation.report import linked_outcomes
from ..evaluation.scorer import recall_at
from ..evaluation.uncertainty import accuracy_interval, bootstrap_means, documents_of
from ..linker import ArboLinker, find_linker
from ..mentions.record import keys_of
from ..retrieval.exemplars import ExemplarStore
from ..runs.short_run import train_copy
from .calibrate import annotated_docs, divided, fit_calibration

# Uses annotated documents. It changes the pipeline, or returns another one.
Use = Callable[[Language, Sequence[Doc]], Language]
# Of so many documents, training leaves one to calibrate on.
CALIBRATED_SHARE = 4


def _unchanged(nlp: Language, docs: Sequence[Doc]) -> Language:
    return nlp


def _calibrated(nlp: Language, docs: Sequence[Doc]) -> Language:
    linker = find_linker(nlp)
    fit_calibration(linker, docs).install(linker)
    return nlp


def _exemplars(nlp: Language, docs: Sequence[Doc]) -> Language:
    find_linker(nlp).feedback.add_exemplars(docs)
    return nlp


def _trained(nlp: Language, docs: Sequence[Doc]) -> Language:
    """A trained copy. It is calibrated on documents that it was not trained on."""
    kept = list(docs[::CALIBRATED_SHARE])
    rest = [doc for number, doc in enumerate(docs) if number % CALIBRATED_SHARE]
    trained = train_copy(nlp, rest)
    linker = find_linker(trained)
    fit_calibration(linker, kept, from_scratch=True).install(linker)
    linker.feedback.add_exemplars(kept)
    return trained


# Ways to use documents. Each begins with the pipeline that the one before it has made. Curves are
# fitted before the mentions are exemplars: each would find itself. To leave out the exemplars of
# a mention's own document, and fit on the others, loses five points on 35 documents of NCBI.
CHAINS: tuple[Mapping[str, Use], ...] = (
    {
        "unchanged": _unchanged,
        "calibrated": _calibrated,
        "calibrated, with exemplars": _exemplars,
    },
    {"exemplars": _exemplars},
)
TRAINED: Mapping[str, Use] = {"trained": _trained}
# The simplest first.
WAYS = ("unchanged", "calibrated", "exemplars", "calibrated, with exemplars", *TRAINED)


@dataclass(frozen=True)
class LearningWay:
    """One way to use annotated documents, as it linked those held out.

    name: One of ``WAYS``.
    outcomes: Those of the annotated mentions, in the same order for all ways.
    seconds: What using the documents of one fold took, on average.
    """

    name: str
    outcomes: list[Outcome]
    seconds: float

    @property
    def correct(self) -> np.ndarray:
        """(m,) bool, whether each mention is linked right."""
        return np.array([one.is_correct for one in self.outcomes], dtype=bool)

    @property
    def accuracy(self) -> float:
        return float(self.correct.mean())

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95 % interval of accuracy, over documents."""
        return accuracy_interval(self.outcomes)

    @property
    def recall_at_1(self) -> float | None:
        """Share of the mentions with an entity whose first candidate is right."""
        return recall_at(self.outcomes, 1)

    @property
    def calibration_error(self) -> float:
        """Distance of probabilities from the share of right links."""
        return reliability_of_links(self.outcomes).error

    def ahead_of(self, other: "LearningWay") -> np.ndarray:
        """Differences in accuracy on bootstrap samples of the documents: (s,)."""
        gained = self.correct.astype(float) - other.correct
        return bootstrap_means(gained, documents_of(self.outcomes))


def compare_ways(
    nlp: Language, docs: Sequence[Doc], *, folds: int = 5, train: bool = False
) -> list[LearningWay]:
    """Link each part of documents after using the others in each way. The pipeline is unchanged.

    Exemplars that the pipeline has of these documents are left out. Raises ValueError for fewer
    than two parts, or fewer documents with annotated mentions than parts.

    docs: Annotated documents; those without an annotated mention are left out.
    folds: The number of parts.
    train: Whether the linker is trained too, once for each part.
    """
    linker = find_linker(nlp)
    docs = annotated_docs(linker, docs)
    if folds < 2:
        raise ArboError(Errors.E834.format(value=folds))
    if len(docs) < folds:
        raise ArboError(Errors.E837.format(count=len(docs), folds=folds))
    linker.refresh()
    stages = linker.stages
    # Each mention is encoded once for all ways.
    linker.stages = linker.keeping_stages()
    try:
        ways = [way for chain in CHAINS for way in _linked_by(chain, nlp, docs, folds)]
    finally:
        linker.stages = stages
    ways += _linked_by(TRAINED, nlp, docs, folds) if train else []
    return sorted(ways, key=lambda way: WAYS.index(way.name))


def _linked_by(
    chain: Mapping[str, Use], nlp: Language, docs: Sequence[Doc], folds: int
) -> list[LearningWay]:
    """Link each part of documents after each step of using the others."""
    linker = find_linker(nlp)
    found: dict[str, list[Outcome]] = {name: [] for name in chain}
    seconds = dict.fromkeys(chain, 0.0)
    for others, part in divided(docs, folds):
        with _restored(linker, docs):
            used, spent = nlp, 0.0
            for name, use in chain.items():
                start = time.perf_counter()
                used = use(used, others)
                find_linker(used).refresh()
                spent += (time.perf_counter() - start) / folds
                seconds[name] += spent
                found[name] += _held_out(find_linker(used), part)
    return [LearningWay(name, found[name], seconds[name]) for name in chain]


def _held_out(linker: ArboLinker, docs: Sequence[Doc]) -> list[Outcome]:
    examples = unlinked_examples(docs)
    results = linked_outcomes(linker, linker.stages, examples, linker.threshold)
    return [result for result in results if result.gold is not None]


@contextmanager
def _restored(linker: ArboLinker, docs: Sequence[Doc]) -> Iterator[None]:
    """A linker to change in the block, without exemplars of these documents."""
    stages, store, cfg = linker.stages, linker.exemplars, dict(linker.cfg)
    datastore = linker.datastore
    own = ExemplarStore().from_bytes(store.to_bytes())
    own.remove(key for doc in docs for key in keys_of(linker.reader.all_mentions(doc)))
    with datastore.editing():
        datastore.exemplars = own
        datastore.changed()
    linker.stages = replace(stages, corrections=deepcopy(stages.corrections))
    try:
        yield
    finally:
        with datastore.editing():
            datastore.exemplars = store
            datastore.changed()
        linker.stages = stages
        linker.cfg.update(cfg)


def best_way(ways: Sequence[LearningWay]) -> LearningWay:
    """The simplest way that is within one standard error of the best.

    The error is that of the difference between the two on the same documents. This is the usual
    rule for choosing among models of growing complexity (Breiman et al. 1984, §3.4.3).

    ways: The simplest first.
    """
    best = max(ways, key=lambda way: way.accuracy)

    def is_near(way: LearningWay) -> bool:
        return best.accuracy - way.accuracy <= max(float(best.ahead_of(way).std()), 1e-12)

    return next(way for way in ways if is_near(way))


def use_way(nlp: Language, docs: Sequence[Doc], name: str) -> Language:
    """The pipeline after using all documents. It is changed in place, or a trained copy.

    name: One of ``WAYS``. Raises ValueError for another.
    """
    if name not in WAYS:
        raise ArboError(Errors.E839.format(value=name, choices=", ".join(map(repr, WAYS))))
    docs = annotated_docs(find_linker(nlp), docs)
    chain = next(chain for chain in (*CHAINS, TRAINED) if name in chain)
    for step, use in chain.items():
        nlp = use(nlp, docs)
        if step == name:
            break
    return nlp


def gain(way: LearningWay, first: LearningWay) -> tuple[float, float, float]:
    """The difference in accuracy to another way, and its 95 % interval."""
    low, high = np.quantile(way.ahead_of(first), [0.025, 0.975])
    difference = way.accuracy - first.accuracy
    return (0.0 if math.isclose(difference, 0.0) else difference), float(low), float(high)
