"""The paper's tables for pipelines of one's own: recall@k, and inference procedures."""

from typing import Any, Dict, List, Mapping, Sequence

from spacy.language import Language
from spacy.training import Example

from ..inference.clustering import clustering
from ..inference.decisions import Inference
from ..inference.independent import independent
from .report import encoding_once, find_linker, scores_of
from .scorer import RECALLS

# Table 6 of the paper, and the same with stored mentions beside the entities.
PROCEDURES: Mapping[str, Inference] = {
    "independent": independent(exemplars=0),
    "undirected": clustering("undirected", exemplars=0),
    "directed": clustering("arborescence", exemplars=0),
    "independent, exemplars": independent(exemplars=8),
    "undirected, exemplars": clustering("undirected"),
    "directed, exemplars": clustering("arborescence"),
}


def compare_procedures(nlp: Language, examples: Sequence[Example]) -> Dict[str, Dict[str, Any]]:
    """Scores of a pipeline's linker on given mentions, under each of ``PROCEDURES``."""
    with encoding_once(find_linker(nlp)) as linker:
        return {
            name: scores_of(nlp, linker, inference, examples)
            for name, inference in PROCEDURES.items()
        }


def as_markdown(results: Mapping[str, Mapping[str, Mapping[str, Any]]], title: str) -> str:
    """Two tables over pipelines: recall@k (the paper's Table 1) and accuracy (its Table 6).

    results: For each pipeline's name what ``compare_procedures`` gave.
    """
    counts = {scores["independent"]["arbo_mentions"] for scores in results.values()}
    recall = [["recall@k, entities alone", *map(str, RECALLS)]]
    recall += [
        [name, *(_percent(scores["independent"][f"arbo_recall_at_{k}"]) for k in RECALLS)]
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
    whole, seen, unseen = (
        _percent(scores[key]) for key in ("arbo_acc", "arbo_acc_seen", "arbo_acc_unseen")
    )
    return f"{whole} ({seen} / {unseen})"


def _percent(value: Any) -> str:
    return "–" if value is None else f"{100 * value:.2f}"


def _table(rows: List[List[str]]) -> str:
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = ["| " + " | ".join(c.ljust(w) for c, w in zip(row, widths)) + " |" for row in rows]
    return "\n".join([lines[0], "|" + "|".join("-" * (w + 2) for w in widths) + "|", *lines[1:]])
