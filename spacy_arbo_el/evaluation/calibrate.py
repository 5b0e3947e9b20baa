"""Fitting the curves from similarity to probability on annotated text (a dev set)."""

from collections import defaultdict
from pathlib import Path
from typing import Callable, Dict, Iterable, List, Sequence, Set, Tuple

import numpy as np
from spacy.language import Language
from spacy.tokens import Doc, Span
from spacy.util import ensure_path, minibatch, registry

from ..corpora.reader import read_docs
from ..inference.calibration import Calibration, fit_curve, fit_ranker
from ..linker import ArboLinker
from ..mentions import find_mentions, gold_ids
from ..retrieval.candidates import Candidates
from ..retrieval.neighbours import Neighbours


def fit_calibration(linker: ArboLinker, docs: Iterable[Doc], batch_size: int = 64) -> Calibration:
    """Curves that say how often an edge of each kind is right, given its similarity.

    docs: Annotated docs that the linker was not trained on. Mentions without annotation are left
        out. Where the data shows nothing for a kind of edge, its present curve stays.
    """
    points: Dict[str, List[Tuple[np.ndarray, np.ndarray]]] = defaultdict(list)
    weighed: List[Tuple[Candidates, np.ndarray]] = []
    for batch in minibatch(docs, size=batch_size):
        groups = [[s for s in find_mentions(doc, linker.span_getter) if s.kb_id_] for doc in batch]
        if any(groups):
            neighbours = linker.find_neighbours(groups)
            gold = [_positions(linker, span) for group in groups for span in group]
            for kind, *point in _edges(neighbours, gold, groups):
                points[kind].append((point[0], point[1]))
            if neighbours.candidates is not None:
                entities = neighbours.candidates.entities
                weighed.append(
                    (neighbours.candidates, _is_gold(entities, gold).reshape(entities.shape))
                )
    curves = linker.calibration.to_config()
    for kind, parts in points.items():
        curve = fit_curve(*(np.concatenate(column) for column in zip(*parts)))
        if curve is not None:
            curves[kind] = list(curve)
    if weighed:
        columns = zip(*(candidates for candidates, _ in weighed))
        ranker = fit_ranker(
            Candidates(*map(np.concatenate, columns)),
            np.concatenate([right for _, right in weighed]),
        )
        if ranker is not None:
            curves["ranker"] = list(ranker)
    return Calibration.from_config(curves)


def _edges(neighbours: Neighbours, gold: Sequence[Set[int]], groups: Sequence[Sequence[Span]]):
    """Similarities of the edges of each kind, and whether they are right."""
    flat = [span for group in groups for span in group]
    nearest = neighbours.entities[:, :1]
    yield "entity", neighbours.entity_similarity[:, :1].ravel(), _is_gold(nearest, gold)
    owners = neighbours.exemplar_entity
    yield "exemplar", neighbours.exemplar_similarity.ravel(), _is_gold(owners, gold)
    keys = [gold_ids(span) or (f"new:{span.id_}" if span.id_ else "",) for span in flat]
    same = [
        [other >= 0 and bool(set(keys[m]) & set(keys[other])) and keys[m] != ("",) for other in row]
        for m, row in enumerate(neighbours.mentions.tolist())
    ]
    yield "mention", neighbours.mention_similarity.ravel(), np.array(same, dtype=bool).ravel()


def _positions(linker: ArboLinker, span: Span) -> Set[int]:
    return {linker.kb.entities.position(kb_id) for kb_id in gold_ids(span)} - {-1}


def _is_gold(entities: np.ndarray, gold: Sequence[Set[int]]) -> np.ndarray:
    rows = zip(entities.tolist(), gold)
    return np.array([[e in right for e in row] for row, right in rows], dtype=bool).ravel()


def calibrate_pipeline(nlp: Language, docs: Sequence[Doc]) -> Dict[str, Calibration]:
    """Fit every linker of a pipeline, in place, and write the curves into the pipeline's config."""
    fitted = {}
    for name, pipe in nlp.pipeline:
        if isinstance(pipe, ArboLinker):
            pipe.calibration = fitted[name] = fit_calibration(pipe, docs)
            nlp.get_pipe_config(name)["calibration"] = pipe.calibration.to_config()
    return fitted


@registry.callbacks("spacy-arbo-el.Calibrate.v1")
def calibrate_before_saving(path: Path) -> Callable[[Language], Language]:
    """For ``[training.before_to_disk]``: calibrate on a dev set whenever the pipeline is saved."""

    def calibrate(nlp: Language) -> Language:
        calibrate_pipeline(nlp, list(read_docs(ensure_path(path), nlp.vocab)))
        return nlp

    return calibrate
