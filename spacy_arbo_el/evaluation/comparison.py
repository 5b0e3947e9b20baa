"""The tables of the arborescence paper for other pipelines: recall@k and inference procedures."""

from dataclasses import replace
from typing import Any, Dict, List, Mapping, Sequence

from spacy.language import Language
from spacy.training import Example

from ..inference.clustering import Clustering
from ..inference.decisions import Inference
from ..inference.independent import Independent
from ..linking.stages import LinkingStages
from .report import outcomes_of_stages, score_rows, with_inference
from .scorer import DRAWN_RECALLS

# Table 6 of the paper, and the same procedures with exemplars.
PROCEDURES: Mapping[str, Inference] = {
    "independent": Independent(n_exemplars=0),
    "undirected": Clustering("undirected", n_exemplars=0),
    "directed": Clustering("arborescence", n_exemplars=0),
    "independent, exemplars": Independent(n_exemplars=8),
    "undirected, exemplars": Clustering("undirected"),
    "directed, exemplars": Clustering("arborescence"),
}


def compare_procedures(
    nlp: Language,
    examples: Sequence[Example],
    *,
    folds: int = 0,
    corpus: bool = False,
    one_curve: bool = False,
) -> Dict[str, Dict[str, Any]]:
    """Scores of a pipeline's linker on gold mentions, for each of ``PROCEDURES``.

    folds: As in ``outcomes_of_stages``.
    corpus: Whether all examples are linked in one graph, as in the paper.
    one_curve: Whether all edges have the curve of edges from entities, as in the paper, where
        similarities of all kinds are on one scale.
    """

    def variants(stages: LinkingStages) -> Dict[str, LinkingStages]:
        if one_curve:
            stages = replace(stages, calibration=stages.calibration.with_one_curve())
        return {name: with_inference(stages, inference) for name, inference in PROCEDURES.items()}

    results = outcomes_of_stages(nlp, examples, variants, folds=folds, corpus=corpus)
    return score_rows(nlp, results)


def as_markdown(results: Mapping[str, Mapping[str, Mapping[str, Any]]], title: str) -> str:
    """Two tables with one row per pipeline: recall@k (Table 1) and accuracy (Table 6).

    results: The results of ``compare_procedures`` by the name of the pipeline.
    title: The heading.
    """
    counts = {scores["independent"]["arbo_mentions"] for scores in results.values()}
    recall = [["recall@k, entities alone", *map(str, DRAWN_RECALLS)]]
    recall += [
        [name, *(_percent(scores["independent"][f"arbo_recall_at_{k}"]) for k in DRAWN_RECALLS)]
        for name, scores in results.items()
    ]
    accuracy = [["accuracy (seen / unseen)", *PROCEDURES]]
    accuracy += [
        [name, *(_accuracy(scores[procedure]) for procedure in PROCEDURES)]
        for name, scores in results.items()
    ]
    size = f"{', '.join(map(str, sorted(counts)))} mentions"
    return f"### {title}: {size}\n\n{_table(recall)}\n\n{_table(accuracy)}\n"


def _accuracy(scores: Mapping[str, Any]) -> str:
    keys = ("arbo_acc", "arbo_acc_seen", "arbo_acc_unseen")
    overall, seen, unseen = (_percent(scores[key]) for key in keys)
    return f"{overall} ({seen} / {unseen})"


def _percent(value: Any) -> str:
    return "–" if value is None else f"{100 * value:.2f}"


def _table(rows: List[List[str]]) -> str:
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = ["| " + " | ".join(c.ljust(w) for c, w in zip(row, widths)) + " |" for row in rows]
    return "\n".join([lines[0], "|" + "|".join("-" * (w + 2) for w in widths) + "|", *lines[1:]])
