"""Tables over inference procedures: accuracy seen and unseen, recall, NIL."""

from contextlib import contextmanager
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Set, Tuple

import numpy as np
from rich.table import Table
from spacy.language import Language
from spacy.training import Example

from ..encoders.sequences import Sequences
from ..inference.calibration import Calibration
from ..inference.decisions import Inference
from ..inference.independent import independent
from ..linker import ArboLinker
from .calibrate import fit_calibration
from .scorer import Outcome, outcomes, score_outcomes

COLUMNS = {
    "mentions": "arbo_mentions",
    "accuracy": "arbo_acc",
    "seen": "arbo_acc_seen",
    "unseen": "arbo_acc_unseen",
    "R@1": "arbo_recall_at_1",
    "R@8": "arbo_recall_at_8",
    "R@64": "arbo_recall_at_64",
    "NIL P": "arbo_nil_p",
    "NIL R": "arbo_nil_r",
    "NIL F1": "arbo_nil_f",
}


def find_linker(nlp: Language, name: Optional[str] = None) -> ArboLinker:
    """The pipeline's linker: the one named, or the first."""
    for pipe_name, pipe in nlp.pipeline:
        if isinstance(pipe, ArboLinker) and name in (None, pipe_name):
            return pipe
    raise ValueError(
        f"The pipeline {nlp.pipe_names} has no arbo_linker{f' {name!r}' if name else ''}."
    )


@contextmanager
def using(linker: ArboLinker, inference: Inference) -> Iterator[ArboLinker]:
    """Let a linker infer by another procedure for a while."""
    own = linker.inference
    linker.inference = inference
    try:
        yield linker
    finally:
        linker.inference = own


@contextmanager
def encoding_once(linker: ArboLinker) -> Iterator[ArboLinker]:
    """Let a linker remember the vectors of mentions for a while, to link them again and again.

    Its weights must stay as they are.
    """
    encode = linker.encoding.encode_windows
    known: Dict[Tuple[bytes, ...], np.ndarray] = {}

    def remember(windows: Sequences) -> np.ndarray:
        keys = windows.keys()
        new = {key: i for i, key in enumerate(keys) if key not in known}
        if new:
            vectors = encode(windows.take(np.array(list(new.values()))))
            known.update(zip(new, vectors))
        return np.stack([known[key] for key in keys]) if keys else encode(windows)

    linker.encoding.encode_windows = remember  # type: ignore[method-assign]
    try:
        yield linker
    finally:
        del linker.encoding.encode_windows


def compare_inference(
    nlp: Language, examples: Sequence[Example], folds: int = 0
) -> Dict[str, Dict[str, Any]]:
    """Scores of a pipeline's linker on given mentions, by inference procedure.

    "names alone": the nearest entity, no exemplars. "names + exemplars": the nearest of entities
    and exemplars. "as configured": the linker's own procedure.
    folds: Calibrate on all but one part of the examples and score that part, this many times;
        0 leaves the calibration as it is. What was calibrated on these very examples scores
        better on them than it will elsewhere.
    """
    linker = find_linker(nlp)
    procedures: Mapping[str, Inference] = {
        "names alone": independent(exemplars=0),
        "names + exemplars": independent(exemplars=8),
        "as configured": linker.inference,
    }
    parts = [list(examples)] if folds < 2 else [list(examples[i::folds]) for i in range(folds)]
    found: Dict[str, List[Outcome]] = {name: [] for name in procedures}
    own = linker.calibration
    try:
        with encoding_once(linker):
            for i, part in enumerate(parts):
                if folds >= 2:
                    others = [eg.reference for j, rest in enumerate(parts) if j != i for eg in rest]
                    # What is not fitted must not come from a calibration that saw this part.
                    linker.calibration = Calibration()
                    linker.calibration = fit_calibration(linker, others)
                for name, inference in procedures.items():
                    found[name] += _outcomes(nlp, linker, inference, part)
    finally:
        linker.calibration = own
    return {name: _scores(linker, results) for name, results in found.items()}


def scores_of(
    nlp: Language, linker: ArboLinker, inference: Inference, examples: Sequence[Example]
) -> Dict[str, Any]:
    """Scores of a linker that infers by another procedure, accuracy on seen and unseen apart."""
    return _scores(linker, _outcomes(nlp, linker, inference, examples))


def _outcomes(
    nlp: Language, linker: ArboLinker, inference: Inference, examples: Sequence[Example]
) -> List[Outcome]:
    linked = [Example(eg.predicted.copy(), eg.reference) for eg in examples]
    with using(linker, inference):
        for eg, doc in zip(linked, nlp.pipe([eg.predicted for eg in linked])):
            eg.predicted = doc
    return outcomes(linked, linker.span_getter, linker.cfg["extension"])


def _scores(linker: ArboLinker, results: List[Outcome]) -> Dict[str, Any]:
    seen = {kb_id for item in linker.exemplars.items for kb_id in item.kb_ids}
    return {**score_outcomes(results), **_seen_and_unseen(results, seen)}


def _seen_and_unseen(results: List[Outcome], seen: Set[str]) -> Dict[str, Optional[float]]:
    """Accuracy on gold mentions of entities with and without a training mention."""
    linkable = [result for result in results if result.gold]
    parts = {"seen": [], "unseen": []}  # type: Dict[str, List[bool]]
    for result in linkable:
        parts["seen" if seen & set(result.gold or ()) else "unseen"].append(result.right)
    return {
        f"arbo_acc_{name}": sum(part) / len(part) if part else None for name, part in parts.items()
    }


def as_table(rows: Mapping[str, Mapping[str, Any]], title: str) -> Table:
    """Rows of scores as a table for the terminal."""
    table = Table(title=title, title_justify="left")
    table.add_column("")
    for column in COLUMNS:
        table.add_column(column, justify="right")
    for name, scores in rows.items():
        table.add_row(name, *(_cell(scores.get(key)) for key in COLUMNS.values()))
    return table


def _cell(value: Any) -> str:
    if value is None:
        return "–"
    return str(value) if isinstance(value, int) else f"{value:.4f}"
