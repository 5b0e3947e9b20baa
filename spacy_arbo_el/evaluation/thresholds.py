"""λ for linking and λ for new entities: what each value gives, in one sweep each."""

from typing import Any, Dict, Hashable, Iterable, List, NamedTuple, Optional, Sequence, Tuple

import numpy as np
from sklearn.metrics import adjusted_rand_score
from spacy.tokens import Doc, Span
from spacy.util import minibatch

from ..discovery.grouping import Discovery
from ..errors import Errors
from ..inference.calibration import log_odds, similarity_of
from ..inference.curves import Curve
from ..inference.decisions import weighed
from ..kb.entity import NIL
from ..linker import ArboLinker
from ..mentions import find_mentions, gold_ids
from .calibrate import fit_new
from .clusters import b_cubed, rates
from .gold import gold_positions, is_gold

# Chances that are tried.
THRESHOLDS = np.concatenate([np.arange(0.0, 0.99, 0.01), [0.99, 0.995, 0.999]]).round(3)
# Unlinked mentions that λ for new entities is tuned on; where there are fewer, all mentions.
FEWEST = 50

Row = Dict[str, float]


LINKING_SCORES = (
    "arbo_acc",
    "nel_micro_f",
    "nel_micro_p",
    "nel_micro_r",
    "arbo_nil_f",
    "arbo_nil_p",
    "arbo_nil_r",
)
DISCOVERY_SCORES = ("ari", "b3_f")


def check_score(name: str, choices: Sequence[str]) -> None:
    """ValueError where that is nothing to tune by."""
    if name not in choices:
        raise ValueError(Errors.E713.format(value=name, choices=", ".join(choices)))


class Swept(NamedTuple):
    """Annotated mentions, linked at T thresholds.

    rows: For each threshold its scores. linked: (T, m) bool, which mentions got an entity.
    vectors: (m, width) float32, prepared. forms: What is read for each.
    labels: What each mention is: equal for mentions of one entity, known or new; None where it is
        not known whether two are the same.
    """

    rows: List[Row]
    linked: np.ndarray
    vectors: np.ndarray
    forms: List[str]
    labels: List[Optional[Hashable]]


def sweep_linking(
    linker: ArboLinker, docs: Iterable[Doc], thresholds: np.ndarray = THRESHOLDS
) -> Swept:
    """Link annotated mentions at many thresholds; what is near them is found once.

    The rows have "threshold" and, as in ``scorer.py``, "arbo_acc", "arbo_nil_p", "_r", "_f" and
    "nel_micro_p", "_r", "_f": the curve of precision and recall of NIL, and of links.
    """
    found: List[Tuple[np.ndarray, np.ndarray, np.ndarray]] = []
    vectors, all_forms, spans, discarded = [], [], [], []  # type: ignore[var-annotated]
    for batch in minibatch(docs, size=64):
        groups = [[s for s in linker.mentions_of(doc) if s.kb_id_] for doc in batch]
        flat = [span for group in groups for span in group]
        annotated = (s for doc in batch for s in find_mentions(doc, linker.span_getter) if s.kb_id_)
        discarded += [bool(gold_ids(s)) for s in annotated if s.label_ in linker.labels_discard]
        if not flat:
            continue
        encoded, forms = linker.encode_mentions(groups)
        near = weighed(linker.find_neighbours(groups, (encoded, forms)), linker.calibration)
        gold = gold_positions(linker, flat)
        logits = [log_odds(float(threshold)) for threshold in thresholds]
        decided = [linker.inference(near, linker.calibration, logit).entity for logit in logits]
        entity = np.stack(decided)
        right = is_gold(entity.T, gold).T
        found.append((entity >= 0, right, np.array([bool(gold_ids(s)) for s in flat])))
        vectors.append(encoded)
        all_forms += forms
        spans += flat
    if not spans:
        raise ValueError(Errors.E712)
    linked, right = (np.concatenate(column, axis=1) for column in list(zip(*found))[:2])
    known = np.concatenate([part[2] for part in found])
    # Mentions with labels that are left out are NIL at any threshold.
    known = np.concatenate([known, np.array(discarded, dtype=bool)])
    none = np.zeros(len(discarded), dtype=bool)
    rows = [
        _row(float(t), np.concatenate([a, none]), np.concatenate([b, none]), known)
        for t, a, b in zip(thresholds, linked, right)
    ]
    labels = [_label(span) for span in spans]
    return Swept(rows, linked, np.concatenate(vectors), all_forms, labels)


class Grouped(NamedTuple):
    """New entities at many λ, for one way of grouping them.

    curve: From similarity to the chance of being the same, in which λ is told.
    rows: For each λ "threshold", "ari", "b3_f" and "mentions", how many were grouped.
    """

    discovery: Discovery
    curve: Curve
    rows: List[Row]


def sweep_discovery(
    discovery: Discovery,
    swept: Swept,
    linking: int,
    linker: ArboLinker,
    thresholds: np.ndarray = THRESHOLDS[1:],
) -> Grouped:
    """Group mentions at many λ.

    linking: The row of ``swept`` whose unlinked mentions are grouped; where these are few, all are.
    """
    told = np.array([label is not None for label in swept.labels])
    chosen = np.flatnonzero(told & ~swept.linked[linking])
    if len(chosen) < FEWEST:
        chosen = np.flatnonzero(told)
    if not len(chosen):
        raise ValueError(Errors.E712)
    features = discovery.features(swept.vectors, swept.forms)
    keys = [set() if label is None else {str(label)} for label in swept.labels]
    fitted = fit_new(discovery, features, linker.similarity, keys)
    curve = fitted or linker.calibration.new
    least = np.array([similarity_of(float(t), curve) for t in thresholds])
    groups = discovery.sweep(features[chosen], linker.similarity, least)
    gold = np.unique([str(swept.labels[i]) for i in chosen.tolist()], return_inverse=True)[1]
    rows = [
        {
            "threshold": float(threshold),
            "ari": float(adjusted_rand_score(gold, labels)),
            "b3_f": b_cubed(gold, labels)[2],
            "mentions": float(len(chosen)),
        }
        for threshold, labels in zip(thresholds, groups)
    ]
    return Grouped(discovery, curve, rows)


def best_row(rows: Sequence[Row], score: str) -> int:
    """The number of the row with the best score; of equal ones, the middle of the first run."""
    values = np.array([row[score] for row in rows])
    first = int(values.argmax())
    last = first
    while last + 1 < len(values) and values[last + 1] == values[first]:
        last += 1
    # At the lower end everything is linked, which is what a threshold of 0 says.
    return first if first == 0 else (first + last) // 2


def _row(threshold: float, linked: np.ndarray, right: np.ndarray, known: np.ndarray) -> Row:
    nil = ~known & ~linked
    correct = right & known
    accuracy = float((correct | nil).mean())
    nil_scores = _rates("arbo_nil", nil.sum(), (~linked).sum(), (~known).sum())
    micro = _rates("nel_micro", correct.sum(), linked.sum(), known.sum())
    return {"threshold": threshold, "arbo_acc": accuracy, **nil_scores, **micro}


def _rates(name: str, right: Any, found: Any, wanted: Any) -> Row:
    return rates(name, *(float(right / count) if count else 0.0 for count in (found, wanted)))


def _label(span: Span) -> Optional[Hashable]:
    """What a mention is: its gold ids or, for a new entity, its ``id_``."""
    if span.kb_id_ == NIL:
        return ("new", span.id_) if span.id_ else None
    return ("known", *sorted(gold_ids(span)))
