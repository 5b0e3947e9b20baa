"""Tables over inference procedures: accuracy on seen and unseen entities, recall, NIL."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.table import Table
from spacy.language import Language
from spacy.training import Example
from spacy.util import minibatch

from ..base.errors import Warnings
from ..corpora.reader import MentionCorpus
from ..kb.knowledge_base import ArboKB
from ..linker import ArboLinker, find_linker
from ..linking.documents import DocumentLinker
from ..linking.stages import LinkingStages
from ..mentions.labels import check_some_annotated
from ..mentions.record import gold_ids
from ..ranking.decisions import Independent, Inference
from ..ranking.ranking import BestEvidence, Reranker
from .outcomes import Outcome, outcomes
from .scorer import all_scores, recall_at
from .seen import Seen
from .uncertainty import accuracy_interval

COLUMNS = {
    "mentions": "arbo_mentions",
    "accuracy": "arbo_acc",
    "95 %": "arbo_acc_95",
    "seen": "arbo_acc_seen",
    "unseen": "arbo_acc_unseen",
    "bal.": "arbo_balanced_acc",
    "new str.": "arbo_acc_new_strings",
    "namesakes": "arbo_acc_namesakes",
    "R@1": "arbo_recall_at_1",
    "R@64": "arbo_recall_at_64",
    "NIL P": "arbo_nil_p",
    "NIL R": "arbo_nil_r",
    "NIL F1": "arbo_nil_f",
}


# The most candidates whose recall is reported, as in DEER.
MOST_CANDIDATES = 100


# The row of the linker's own procedure.
CONFIGURED = "as configured"
# What the rows are, for people.
ROWS = (
    "names alone: the entity of the most similar name. without the graph: the linker's ranker, "
    "each mention by itself. as configured: all of the linker, with its threshold."
)


def annotated_examples(nlp: Language, data: Path, limit: int = 0) -> list[Example]:
    """Documents to evaluate on. ValueError if none of their mentions is annotated.

    limit: The maximum number of documents; 0 for no limit.
    """
    examples = list(MentionCorpus(data, limit=limit)(nlp))
    docs = [example.reference for example in examples]
    linker = find_linker(nlp)
    check_some_annotated(docs, linker.mentions.getter, data)
    gold = {
        kb_id
        for doc in docs
        for span in linker.mentions.getter(doc)
        for kb_id in gold_ids(span)
    }
    if gold and not linker.kb.is_empty():
        ids = sorted(gold)
        if (linker.kb.entities.positions_of(ids) < 0).all():
            first_ids = ", ".join(ids[:3])
            Warnings.W546.warn(path=data, count=len(ids), some=first_ids)
    return examples


def score_rows(
    nlp: Language, results: Mapping[str, list[Outcome]]
) -> dict[str, dict[str, Any]]:
    """Score outcomes by name, with accuracy on seen entities.

    Recall@100 is None for a pipeline with fewer candidates.
    """
    linker = find_linker(nlp)
    return {name: scores_of(linker, result) for name, result in results.items()}


def linked_outcomes(
    linker: ArboLinker,
    stages: LinkingStages,
    examples: Sequence[Example],
    threshold: float,
) -> list[Outcome]:
    extension = linker.cfg["extension"]
    documents = DocumentLinker(stages, threshold, extension, linker.cfg["overwrite"])
    linked = [Example(eg.predicted.copy(), eg.reference) for eg in examples]
    for batch in minibatch(linked, size=64):
        docs = [eg.predicted for eg in batch]
        linker.set_annotations(docs, documents.link(docs))
    return outcomes(linked, linker.mentions.getter, extension, linker.kb)


def scores_of(linker: ArboLinker, results: list[Outcome]) -> dict[str, Any]:
    scores = scores_with_seen(results, seen_by(linker), linker.kb)
    # With fewer candidates, it would be the recall at another number.
    if linker.datastore.settings.n_candidates < MOST_CANDIDATES:
        scores[f"arbo_recall_at_{MOST_CANDIDATES}"] = None
    return scores


def seen_by(linker: ArboLinker) -> Seen:
    return Seen.of(linker.kb, linker.exemplars.records)


def scores_with_seen(results: list[Outcome], seen: Seen, kb: ArboKB) -> dict[str, Any]:
    """Score outcomes: all scores, recall@100, and the interval of accuracy too."""
    return {
        **all_scores(results, seen, kb),
        f"arbo_recall_at_{MOST_CANDIDATES}": recall_at(results, MOST_CANDIDATES),
        "arbo_acc_95": accuracy_interval(results),
    }


def table_of_numbers(
    title: str, columns: Iterable[str], rows: Iterable[Sequence[str]]
) -> Table:
    """A table for the terminal. Each row begins with what it is called by."""
    table = Table(title=title, title_justify="left")
    table.add_column("", no_wrap=True)
    for column in columns:
        table.add_column(column, justify="right")
    for row in rows:
        table.add_row(*row)
    return table


def as_table(rows: Mapping[str, Mapping[str, Any]], title: str) -> Table:
    cells = (
        (n, *(_cell(row.get(key)) for key in COLUMNS.values()))
        for n, row in rows.items()
    )
    return table_of_numbers(title, COLUMNS, cells)


def _cell(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, tuple):
        return "–".join(f"{end:.3f}" for end in value)
    return str(value) if isinstance(value, int) else f"{value:.4f}"


def with_inference(stages: LinkingStages, inference: Inference) -> LinkingStages:
    """The stages with another inference procedure.

    A procedure without exemplars ranks entities by their texts alone (``BestEvidence``).
    """
    reranker = stages.reranker if inference.n_exemplars else BestEvidence()
    return replace(stages, inference=inference, reranker=reranker)


def inferences(stages: LinkingStages) -> dict[str, LinkingStages]:
    """The rows of ``ROWS``, and those of the variants that a reranker has."""
    rows = {
        "names alone": with_inference(stages, Independent(n_exemplars=0)),
        "without the graph": with_inference(stages, Independent(n_exemplars=8)),
    }
    if hasattr(stages.reranker, "variants"):
        variants: dict[str, Reranker] = stages.reranker.variants()
        rows.update(
            {
                name: replace(stages, reranker=variant)
                for name, variant in variants.items()
            }
        )
    return {**rows, CONFIGURED: stages}


def inference_outcomes(
    nlp: Language, examples: Sequence[Example]
) -> dict[str, list[Outcome]]:
    """Outcomes on gold mentions for several inference procedures.

    ``ROWS`` says what they are. There is a row for each of the ``variants`` of the reranker too.

    examples: Only the linker of the pipeline is run on them.
    """
    linker = find_linker(nlp)
    return {
        name: linked_outcomes(linker, stages, examples, linker.threshold)
        for name, stages in inferences(linker.caching_stages()).items()
    }
