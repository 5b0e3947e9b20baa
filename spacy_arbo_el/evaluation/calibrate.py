"""Fitting the curves from similarity to probability on annotated text (a dev set)."""

from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import (
    Callable,
    Dict,
    Iterable,
    Iterator,
    List,
    NamedTuple,
    Optional,
    Sequence,
    Set,
    Tuple,
)

import numpy as np
from spacy.language import Language
from spacy.tokens import Doc, Span
from spacy.util import ensure_path, minibatch, registry

from ..corpora.reader import read_docs
from ..discovery.grouping import Discovery
from ..inference.calibration import Calibration
from ..inference.curves import Curve, fit_curve
from ..inference.independent import independent
from ..inference.ranker import Ranker, fit_ranker
from ..linker import ArboLinker
from ..log import log
from ..mentions import gold_ids
from ..retrieval.candidates import Candidates
from ..retrieval.neighbours import Neighbours, nearest_in_corpus
from ..retrieval.similarity import Similarity
from .gold import gold_positions, is_gold


class _Observed(NamedTuple):
    """The neighbours of the annotated mentions of a batch, and what is right.

    gold: (m, g) int64, the positions of each mention's gold entities, -1 for none.
    keys: For each mention what it shares with mentions of the same entity, new ones included.
    """

    neighbours: Neighbours
    gold: np.ndarray
    keys: List[Set[str]]


def fit_calibration(linker: ArboLinker, docs: Iterable[Doc], batch_size: int = 64) -> Calibration:
    """Curves that say how often an edge of each kind is right, given its similarity.

    An edge between mentions is of consequence only where the two would otherwise go to different
    entities; its curve is fitted on such edges. Among all, most join what belongs together
    anyway, and would make it far too sure of itself. That of new entities is fitted on what is near
    in the whole corpus.

    docs: Annotated docs that the linker was not trained on. Mentions without annotation are left
        out. Where the data shows nothing for a kind of edge, its present curve stays.
    """
    observed, vectors, forms, keyed = [], [], [], []  # type: ignore[var-annotated]
    for batch in minibatch(docs, size=batch_size):
        groups = [[s for s in linker.mentions_of(doc) if s.kb_id_] for doc in batch]
        if any(groups):
            flat = [span for group in groups for span in group]
            gold, keys = gold_positions(linker, flat), list(map(_keys, flat))
            encoded = linker.encode_mentions(groups)
            observed.append(_Observed(linker.find_neighbours(groups, encoded), gold, keys))
            vectors.append(encoded[0])
            forms += encoded[1]
            keyed += keys
    calibration = _with_curves(replace(linker.calibration, ranker=None), _entity_edges(observed))
    ranker = _fit_ranker(observed)
    if ranker is not None:
        log.info("Ranker fitted, held-out accuracy %.4f", ranker.accuracy)
        calibration = replace(calibration, ranker=ranker)
    calibration = _with_curves(calibration, _mention_edges(observed, calibration))
    if vectors:
        whole = np.concatenate(vectors)
        near = fit_new(Discovery(), whole, linker.similarity, keyed)
        calibration = calibration if near is None else replace(calibration, near=near)
        if linker.discovery is not None:
            features = linker.discovery.features(whole, forms)
            new = fit_new(linker.discovery, features, linker.similarity, keyed)
            calibration = calibration if new is None else replace(calibration, new=new)
    return calibration


# A kind of edge, similarities (n,), and whether the edges are right (n,) bool
Edges = Tuple[str, np.ndarray, np.ndarray]


def _with_curves(calibration: Calibration, edges: Iterable[Edges]) -> Calibration:
    points = defaultdict(list)
    for kind, similarity, right in edges:
        points[kind].append((similarity, right))
    for kind, parts in points.items():
        curve = fit_curve(*(np.concatenate(column) for column in zip(*parts)))
        if curve is not None:
            calibration = replace(calibration, **{kind: curve})  # type: ignore[arg-type]
    return calibration


def _entity_edges(observed: Iterable[_Observed]) -> Iterator[Edges]:
    for neighbours, gold, _ in observed:
        nearest, owners = neighbours.entities[:, :1], neighbours.exemplar_entity
        yield "entity", neighbours.entity_similarity[:, :1].ravel(), is_gold(nearest, gold).ravel()
        yield "exemplar", neighbours.exemplar_similarity.ravel(), is_gold(owners, gold).ravel()


def _mention_edges(observed: Iterable[_Observed], calibration: Calibration) -> Iterator[Edges]:
    """Edges between mentions whose likeliest entities differ."""
    for neighbours, _, keys in observed:
        entity = independent(exemplars=1)(neighbours, calibration, -np.inf).entity
        mention, column = np.nonzero(neighbours.mentions >= 0)
        other = neighbours.mentions[mention, column]
        differ = entity[mention] != entity[other]
        mention, column, other = mention[differ], column[differ], other[differ]
        same = [bool(keys[m] & keys[o]) for m, o in zip(mention.tolist(), other.tolist())]
        yield "mention", neighbours.mention_similarity[mention, column], np.array(same, dtype=bool)


def fit_new(
    discovery: Discovery, features: np.ndarray, similarity: Similarity, keys: Sequence[Set[str]]
) -> Optional[Curve]:
    """The curve of new entities, on edges between near mentions of any documents.

    features: (m, width), see ``Discovery``. keys: For each mention what it shares with mentions of
        the same entity; none where that is not known.
    """
    by = discovery.compared_by(similarity)
    found, near = nearest_in_corpus(features, discovery.neighbours, by)
    told = np.array([bool(key) for key in keys], dtype=bool)
    mention, column = np.nonzero((found >= 0) & told[:, None] & told[found])
    other = found[mention, column]
    same = [bool(keys[m] & keys[o]) for m, o in zip(mention.tolist(), other.tolist())]
    return fit_curve(near[mention, column], np.array(same, dtype=bool))


def _fit_ranker(observed: Sequence[_Observed]) -> Optional[Ranker]:
    weighed = [
        (candidates, is_gold(candidates.entities, gold))
        for candidates, gold in ((seen.neighbours.candidates, seen.gold) for seen in observed)
        if candidates is not None
    ]
    if not weighed:
        return None
    columns = zip(*(candidates[:3] for candidates, _ in weighed))
    right = np.concatenate([right for _, right in weighed])
    # Documents are numbered from 0 in each batch.
    starts = np.cumsum([0, *(seen.neighbours.document.max() + 1 for seen in observed[:-1])])
    documents = [seen.neighbours.document + start for seen, start in zip(observed, starts)]
    return fit_ranker(Candidates(*map(np.concatenate, columns)), right, np.concatenate(documents))


def _keys(span: Span) -> Set[str]:
    ids = gold_ids(span)
    return set(ids) if ids else ({f"new:{span.id_}"} if span.id_ else set())


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
    """For ``[training.before_to_disk]``: calibrate on a dev set whenever the pipeline is saved.

    ``arbo train`` does so before each evaluation too, so that the best model is chosen by what is
    saved; in ``spacy train`` an evaluation goes by the curves of the one before it.
    """

    def calibrate(nlp: Language) -> Language:
        calibrate_pipeline(nlp, list(read_docs(ensure_path(path), nlp.vocab)))
        return nlp

    calibrate.before_scoring = True  # type: ignore[attr-defined]
    return calibrate
