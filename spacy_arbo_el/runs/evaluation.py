"""The evaluations in a training. The pipeline is scored as it would be saved, with warnings."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example
from spacy.training.loop import create_evaluation_callback

from ..base.arrays import concat_tables
from ..base.errors import Warnings
from ..base.memory import release_memory
from ..linker import ArboLinker, find_linker, linkers_of
from ..mentions.labels import annotated_batches, gold_positions
from .checkpoint import Evaluation

# Entities near a mention that evaluations search: as many as it has candidates.
NEAREST = 64
# Where the standard errors of scores stand among them, by the scores' names.
ERRORS = "arbo_standard_errors"
# The standard error of the score that models are chosen by, among the other scores.
ERROR = "score_error"
# Names of entities that evaluations search, unless ``training.eval_entities`` says otherwise.
EVAL_ENTITIES = 5_000

# What a model card says, of the scores too.
DESCRIPTION = (
    "Links mentions to a knowledge base, and groups the others (spacy_arbo_el)."
)
NOTES = (
    "Scores are of the dev documents of the training. Probabilities and the ranker were fitted on "
    "other parts of these than the one that is scored. arbo_acc is the share of mentions whose "
    "link, or NIL, is correct; arbo_balanced_acc is its mean over entities with and without a "
    "training mention; arbo_recall_at_64 is the share of mentions whose entity is a candidate."
)


def describe(nlp: Language) -> None:
    """Fill a pipeline's empty description and notes.

    ``spacy package`` makes a model card of them, with the scores of the last evaluation.
    """
    meta = nlp.meta
    meta["description"] = meta.get("description") or DESCRIPTION
    meta["notes"] = meta.get("notes") or NOTES


@dataclass(frozen=True)
class LimitedSearch:
    """The entities that evaluations in a training search, where a knowledge base has many more.

    among: By linker, (positions,) bool.
    """

    among: Mapping[str, np.ndarray]

    @classmethod
    def of(
        cls, nlp: Language, corpus: Callable[[Language], Iterable[Example]], count: int
    ) -> "LimitedSearch":
        """Choose the gold entities of a corpus, those near its mentions, and others.

        count: The number of names in all; 0 for all.
        """
        docs = [example.reference for example in corpus(nlp)] if count else []
        among_of = {
            name: evaluated_entities(linker, docs, count)
            for name, linker in (linkers_of(nlp) if docs else {}).items()
        }
        return cls(
            {name: among for name, among in among_of.items() if among is not None}
        )

    @contextmanager
    def of_pipeline(self, nlp: Language) -> Iterator[None]:
        """Search these entities alone in the block."""
        with ExitStack() as stack:
            for name, among in self.among.items():
                stack.enter_context(find_linker(nlp, name).datastore.limited_to(among))
            yield


def evaluated_entities(
    linker: ArboLinker, docs: Sequence[Doc], count: int
) -> np.ndarray | None:
    """Entities with ``count`` names in all: (positions,) bool; None for all entities.

    Gold entities of documents come first, then those near their mentions, then others at random.
    """
    stages = linker.stages
    with linker.datastore.snapshot() as snapshot:
        search = snapshot.retriever.entities
        owners = search.owners
        names = np.bincount(
            owners[owners >= 0], minlength=linker.kb.entities.positions
        )
        if names.sum() <= count:
            return None
        candidates_of = []
        batches = [
            stages.read(spans) for spans in annotated_batches(stages.reader, docs)
        ]
        for batch in map(stages.encode, batches):
            ids = [record.kb_ids for record in batch.records]
            nearest = search.nearest(batch.encoded, NEAREST).ids
            candidates_of.append(
                np.concatenate([gold_positions(linker.kb, ids), nearest], axis=1)
            )
    table = concat_tables([np.zeros((0, 0), dtype=np.int64), *candidates_of], -1)
    random_order = np.random.default_rng(0).permutation(len(names))
    order = np.concatenate([table.T.ravel(), random_order])
    order = order[order >= 0]
    order = order[np.sort(np.unique(order, return_index=True)[1])]
    among = np.zeros(len(names), dtype=bool)
    among[order[: np.searchsorted(np.cumsum(names[order]), count, side="right")]] = (
        True
    )
    return among


def create_evaluation(
    nlp: Language,
    corpus: Callable[[Language], Iterable[Example]],
    settings: dict[str, Any],
    rough: bool = False,
) -> Callable[[], Evaluation]:
    """The function that evaluates a pipeline in training.

    A callback that runs before the pipeline is saved also runs before each evaluation, if it has a
    method ``calibrate_and_score`` as ``Calibrate`` does. Its scores take the place of those with
    the same names: they are of documents that nothing was fitted on.

    corpus: Gives the examples to evaluate on.
    settings: The training settings, resolved.
    rough: Whether the callback may fit quickly, as before the end of a training.
    """
    callback = settings["before_to_disk"]
    is_divided = divides(settings)
    weights = settings["score_weights"]
    used = {name: weight for name, weight in weights.items() if weight}

    def calibrate_and_evaluate() -> Evaluation:
        release_memory()
        as_saved = nlp
        held_out = {}
        if is_divided:
            as_saved, held_out = callback.calibrate_and_score(nlp, rough)
        present_scores = {
            name: value for name, value in held_out.items() if value is not None
        }
        if present_scores.keys() >= used.keys() and len(as_saved.pipeline) == 1:
            # There is nothing else to score: the documents need not be linked once more.
            score = 0.0
            scores = {
                name: present_scores[name] for name in present_scores if name != ERRORS
            }
        else:
            score, scores = create_evaluation_callback(as_saved, corpus, weights)()
            scores.update(
                {
                    name: value
                    for name, value in present_scores.items()
                    if name in scores
                }
            )
        if held_out:
            score = sum(
                scores.get(name, 0.0) * weight for name, weight in used.items()
            )
            errors = held_out.get(ERRORS, {})
            # Of scores that vary together: the largest error that the sum can have.
            scores[ERROR] = sum(
                errors.get(name, 0.0) * abs(used[name]) for name in used
            )
        release_memory()
        _check_scores(score, scores, used)
        return score, scores

    return calibrate_and_evaluate


def divides(settings: dict[str, Any]) -> bool:
    """Return whether the callback of a training scores parts of the dev set."""
    return hasattr(settings["before_to_disk"], "calibrate_and_score")


def _check_scores(score: float, scores: dict[str, Any], names: Iterable[str]) -> None:
    names = list(names)
    if names and not any(name in scores for name in names):
        Warnings.W520.warn(names=", ".join(names))
    elif math.isnan(score):
        Warnings.W521.warn(names=", ".join(names))


def is_chosen(evaluations: Sequence[Evaluation]) -> bool:
    """Return whether the last evaluated model takes the place of the best one.

    The later of two models is taken where their scores differ by no more than the standard error of
    the difference: then the dev documents do not say which is better, and the later one has seen
    more.

    evaluations: Those of the training so far, at least one: each score with all others.
    """
    lead, noise = _lead_of_best(evaluations, evaluations[-1])
    return lead <= noise


def gain_of_training(evaluations: Sequence[Evaluation]) -> str:
    """What training has gained over a fit alone, to read.

    evaluations: At least one. The first is that of the pipeline before training, whose ranker and
        curves were fitted as those of the others.
    """
    score = evaluations[0][0]
    lead, noise = _lead_of_best(evaluations, evaluations[0])
    gain = f"Before training {score:.3f}, best {score + lead:.3f}, standard error {noise:.3f}"
    if lead > noise:
        return f"{gain}: training has gained"
    return (
        f"{gain}: nothing is certain to be gained beyond `arbo fit`, which costs less"
    )


def _lead_of_best(
    evaluations: Sequence[Evaluation], evaluation: Evaluation
) -> tuple[float, float]:
    """How far the best score is above that of an evaluation, and the standard error of that."""
    score, scores = evaluation
    best, scores_of_best = max(evaluations, key=lambda candidate: candidate[0])
    noise = math.hypot(scores.get(ERROR, 0.0), scores_of_best.get(ERROR, 0.0))
    return best - score, noise
