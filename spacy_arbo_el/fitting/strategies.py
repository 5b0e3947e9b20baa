"""Strategies to use annotated documents, compared on documents that were held out.

A linker can stay as it is, be calibrated, store the mentions as exemplars, or do both; and it can
be trained. Calibrating fits the reranker, the probabilities and the threshold.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from rich.table import Table
from spacy.language import Language
from spacy.tokens import Doc

from ..base.errors import Errors
from ..base.log import progress, start_clock
from ..base.settings import check_choice
from ..corpora.docs import unlinked_examples
from ..evaluation.outcomes import Outcome
from ..evaluation.reliability import error_of_links
from ..evaluation.report import linked_outcomes, table_of_numbers
from ..evaluation.scorer import recall_at
from ..evaluation.uncertainty import SAMPLES, bootstrap_counts, documents_of
from ..kb.entity import NIL
from ..linker import ArboLinker, find_linker
from ..linking.by_label import ByLabel
from ..linking.stages import LinkingStages
from .calibrate import Fit, HeldOutFit, annotated_docs, divided
from .exemplar_fit import fit_beside_exemplars, keeping, restored
from .held_out import FOLDS, fit_held_out
from .thresholds import CRITERIA, scores_of_links

UNCHANGED = "unchanged"
CALIBRATED = "calibrated"
EXEMPLARS = "exemplars"
BOTH = "both"
TRAINED = "trained"
# The simplest first.
STRATEGIES = (UNCHANGED, CALIBRATED, EXEMPLARS, BOTH, TRAINED)
# Of so many documents, training leaves one to calibrate on.
CALIBRATED_SHARE = 4
# A training says so often how far it is.
SHARES = 20
# What strategies are chosen by, to read.
SHOWN = {"accuracy": "accuracy", "f1": "F1"}

# Trains a copy of a pipeline on documents. The function is called after each of ``SHARES`` parts.
Train = Callable[[Sequence[Doc], Callable[[], None]], Language]


@dataclass(frozen=True)
class FitStrategy:
    """A strategy to use annotated documents, as it linked those held out.

    name: One of ``STRATEGIES``.
    outcomes: Those of the annotated mentions, in the same order for all strategies.
    threshold: That of the linker after using all documents; None for a training.
    """

    name: str
    outcomes: list[Outcome]
    threshold: float | None

    @property
    def judged(self) -> np.ndarray:
        """(2, m) bool, whether each mention is linked, and whether to its entity."""
        linked = [outcome.predicted not in (None, NIL) for outcome in self.outcomes]
        right = [
            bool(outcome.gold) and outcome.is_correct for outcome in self.outcomes
        ]
        return np.array([linked, right], dtype=bool)


@dataclass(frozen=True)
class FitComparison:
    """Strategies to use documents, each scored on documents that it has not used.

    strategies: The simplest first.
    by: What they are chosen by: "accuracy", with NIL, or "f1" of links.
    folds: The number of parts.
    fits: What calibrating with all documents gives, by the name of the strategy.
    """

    strategies: Sequence[FitStrategy]
    by: str
    folds: int
    fits: Mapping[str, HeldOutFit]

    def scores(self, by: str) -> np.ndarray:
        """The score of each strategy: (strategies,)."""
        return self._scored(by, np.ones((len(self.strategies[0].outcomes), 1)))[:, 0]

    def samples(self) -> np.ndarray:
        """The score of each strategy on bootstrap samples of documents: (strategies, SAMPLES)."""
        documents = documents_of(self.strategies[0].outcomes)
        counts = bootstrap_counts(int(documents.max()) + 1, SAMPLES)
        return self._scored(self.by, counts.T.astype(np.float32)[documents])

    def _scored(self, by: str, weights: np.ndarray) -> np.ndarray:
        linked, right = np.stack(
            [strategy.judged for strategy in self.strategies], axis=1
        )
        has_gold = np.array(
            [bool(outcome.gold) for outcome in self.strategies[0].outcomes]
        )
        return scores_of_links(linked, right, has_gold, weights)[CRITERIA[by]]

    @property
    def best(self) -> FitStrategy:
        """The simplest strategy that is within one standard error of the best.

        The error is that of the difference between the two on the same documents. This is the usual
        rule for choosing among models of growing complexity (Breiman et al. 1984, §3.4.3).
        """
        scores = self.scores(self.by)
        samples = self.samples()
        first = int(scores.argmax())
        errors = (samples[first] - samples).std(axis=1)
        is_close = scores[first] - scores <= np.maximum(errors, 1e-12)
        return self.strategies[int(is_close.argmax())]

    @property
    def advice(self) -> str:
        """The recommended strategy, with the reason."""
        scores = self.scores(self.by)
        first = int(scores.argmax())
        taken = self.strategies.index(self.best)
        if first == taken:
            reason = f"It has the best {SHOWN[self.by]}, and no simpler one is within its error"
        else:
            samples = self.samples()
            low, high = 100 * np.quantile(
                samples[first] - samples[taken], [0.025, 0.975]
            )
            reason = (
                f"The {100 * (scores[first] - scores[taken]):.1f} points that "
                f"{self.strategies[first].name} has more may be chance (95 %: {low:+.1f} to "
                f"{high:+.1f}), so the simplest that is within one standard error is taken"
            )
        return f"Take: {self.best.name}. {reason}"

    def table(self, title: str) -> Table:
        """The strategies as a table for the terminal."""
        samples = self.samples()
        accuracy = self.scores("accuracy")
        f1 = self.scores("f1")
        chosen = self.scores(self.by)
        rows = []
        for number, strategy in enumerate(self.strategies):
            recall = recall_at(strategy.outcomes, 1)
            gained = 100 * (chosen[number] - chosen[0])
            interval = 100 * np.quantile(samples[number] - samples[0], [0.025, 0.975])
            gain = f"{gained:+.1f} ({interval[0]:+.1f} to {interval[1]:+.1f})"
            low, high = np.quantile(samples[number], [0.025, 0.975])
            error = error_of_links(strategy.outcomes)
            cells = (
                f"{accuracy[number]:.1%}",
                f"{f1[number]:.1%}",
                f"{low:.1%} to {high:.1%}",
                gain if number else "",
                "–" if recall is None else f"{recall:.1%}",
                f"{100 * error:.1f}",
                "–"
                if strategy.threshold is None
                else str(ByLabel(strategy.threshold)),
            )
            rows.append((strategy.name, *cells))
        interval_of = f"95 % of {SHOWN[self.by]}"
        columns = (
            "accuracy",
            "F1",
            interval_of,
            "gain (95 %)",
            "R@1",
            "ECE",
            "threshold",
        )
        return table_of_numbers(title, columns, rows)


def compare_strategies(
    linker: ArboLinker,
    docs: Sequence[Doc],
    *,
    by: str = "accuracy",
    folds: int = FOLDS,
    train: Train | None = None,
) -> FitComparison:
    """Link each part of documents after using the others by each strategy. The linker is unchanged.

    Exemplars that the linker has of these documents are left out. Raises ValueError for fewer than
    two documents with annotated mentions.

    docs: Annotated documents; those without an annotated mention are left out.
    by: What strategies and thresholds are chosen by, one of ``CRITERIA``.
    folds: The number of parts; fewer where there are fewer documents.
    train: Trains a copy of the pipeline, if that is compared too: once for each part.
    """
    docs = check_documents(linker, docs, by)
    folds = min(folds, len(docs))
    outcomes_of: dict[str, list[Outcome]] = {name: [] for name in STRATEGIES}
    bar = progress(2 * folds + 4, "Encoding", "step")
    with bar, keeping(linker), restored(linker, docs):
        in_order = [doc for _, held_out in divided(docs, folds) for doc in held_out]
        outcomes_of[UNCHANGED] = _held_out(
            linker, linker.stages, in_order, linker.threshold
        )
        start_clock(bar, "Comparing strategies")
        fit = fit_held_out(
            linker, docs, folds, CRITERIA[by], linker.stages, bar.update
        )
        beside = fit_beside_exemplars(linker, docs, fit)
        bar.update()
        for (training_docs, held_out), *fits in zip(
            divided(docs, folds), fit.without, beside.without
        ):
            with restored(linker, docs):
                linked = _linked_in_ways(linker, training_docs, held_out, *fits)
                for name, outcomes in linked.items():
                    outcomes_of[name] += outcomes
            bar.update()
    if train is not None:
        with progress(folds * SHARES, "Training", "step") as bar:
            for training_docs, held_out in divided(docs, folds):
                nlp = trained_on(
                    training_docs, by, lambda fold_docs: train(fold_docs, bar.update)
                )
                trained = find_linker(nlp)
                linked_after = trained.stages, held_out, trained.threshold
                outcomes_of[TRAINED] += _held_out(trained, *linked_after)
    thresholds: dict[str, float] = {}
    thresholds |= dict.fromkeys((UNCHANGED, EXEMPLARS), linker.threshold)
    thresholds |= dict.fromkeys((CALIBRATED, BOTH), fit.whole.threshold)
    strategies = [
        FitStrategy(name, outcomes, thresholds.get(name))
        for name, outcomes in outcomes_of.items()
        if outcomes
    ]
    return FitComparison(strategies, by, folds, {CALIBRATED: fit, BOTH: beside})


def criterion(by: str) -> str:
    """The score that people call "accuracy" or "f1". Raises ValueError for another word."""
    check_choice("by", by, tuple(CRITERIA))
    return CRITERIA[by]


def check_documents(linker: ArboLinker, docs: Sequence[Doc], by: str) -> list[Doc]:
    """The documents with annotated mentions. Raises ValueError for fewer than two."""
    criterion(by)
    docs = annotated_docs(linker, docs)
    if len(docs) < 2:
        raise Errors.E837(count=len(docs))
    return docs


def _linked_in_ways(
    linker: ArboLinker,
    training_docs: Sequence[Doc],
    held_out: Sequence[Doc],
    fit: Fit,
    beside: Fit,
) -> dict[str, list[Outcome]]:
    """Link a part by each strategy that needs a fit or exemplars. The linker gets exemplars.

    fit, beside: What the others give, without exemplars and beside them.
    """
    unchanged = linker.stages
    calibrated = fit.within(unchanged)
    outcomes_of = {CALIBRATED: _held_out(linker, calibrated, held_out, fit.threshold)}
    linker.feedback.add_exemplars(training_docs, unchanged.cache)
    outcomes_of[EXEMPLARS] = _held_out(linker, unchanged, held_out, linker.threshold)
    outcomes_of[BOTH] = _held_out(
        linker, beside.within(unchanged), held_out, beside.threshold
    )
    return outcomes_of


def _held_out(
    linker: ArboLinker, stages: LinkingStages, docs: Sequence[Doc], threshold: float
) -> list[Outcome]:
    linker.refresh()
    results = linked_outcomes(linker, stages, unlinked_examples(docs), threshold)
    return [result for result in results if result.gold is not None]


def apply(
    linker: ArboLinker, docs: Sequence[Doc], name: str, fit: HeldOutFit | None
) -> None:
    """Use documents by a strategy that needs no training. The linker is changed.

    name: One of ``STRATEGIES``.
    fit: What they give by this strategy; None where nothing is fitted.
    """
    if fit is not None:
        fit.whole.install(linker)
    if name in (EXEMPLARS, BOTH):
        linker.feedback.add_exemplars(docs)


def trained_on(
    docs: Sequence[Doc], by: str, train: Callable[[Sequence[Doc]], Language]
) -> Language:
    """A trained pipeline. It is calibrated on documents that it was not trained on.

    docs: At least two.
    """
    calibration_docs = list(docs[::CALIBRATED_SHARE])
    training_docs = [
        doc for number, doc in enumerate(docs) if number % CALIBRATED_SHARE
    ]
    nlp = train(training_docs)
    linker = find_linker(nlp)
    fit_held_out(
        linker, calibration_docs, FOLDS, criterion(by), from_scratch=True
    ).whole.install(linker)
    linker.feedback.add_exemplars(calibration_docs)
    return nlp
