"""Compare pipelines as the arborescence paper does: recall@k, and inference procedures.

    python compare.py MODEL... DEV.spacy [--folds 5] [--one-graph] [--one-curve] [--output FILE]

The accuracy is that of independent, undirected and directed inference, with exemplars and without
(Table 6), in brackets of seen and unseen entities. ``--output`` writes the scores of directed
inference with exemplars, with the recall by entities alone.
"""

import argparse
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import spacy
import srsly
from held_out import Variants, outcomes_of_stages
from spacy.language import Language
from spacy.training import Example

from spacy_arbo_el.base.calibration import KINDS, Calibration
from spacy_arbo_el.corpora.reader import MentionCorpus
from spacy_arbo_el.discovery.new_entities import NewEntities
from spacy_arbo_el.evaluation.outcomes import Outcome, outcomes
from spacy_arbo_el.evaluation.report import score_rows, with_inference
from spacy_arbo_el.evaluation.scorer import RECALLS
from spacy_arbo_el.fitting.calibrate import fit_calibration
from spacy_arbo_el.linker import find_linker
from spacy_arbo_el.linking.corpus import CorpusLinker
from spacy_arbo_el.linking.documents import DocumentLinker
from spacy_arbo_el.linking.stages import LinkingStages
from spacy_arbo_el.ranking.decisions import Clustering, Independent, Inference

PROCEDURES: Mapping[str, Inference] = {
    "independent": Independent(n_exemplars=0),
    "undirected": Clustering("undirected", n_exemplars=0),
    "directed": Clustering("arborescence", n_exemplars=0),
    "independent, exemplars": Independent(n_exemplars=8),
    "undirected, exemplars": Clustering("undirected"),
    "directed, exemplars": Clustering("arborescence"),
}


def procedures(stages: LinkingStages) -> dict[str, LinkingStages]:
    """The stages with each inference procedure."""
    return {
        name: with_inference(stages, inference)
        for name, inference in PROCEDURES.items()
    }


def on_one_curve(stages: LinkingStages) -> dict[str, LinkingStages]:
    """The procedures with the curve of entities for all edges, as the paper has one scale."""
    curves = Calibration(*[stages.calibration.entity] * len(KINDS))
    return procedures(replace(stages, calibration=curves))


def outcomes_in_one_graph(
    nlp: Language, examples: Sequence[Example], variants: Variants, folds: int = 0
) -> dict[str, list[Outcome]]:
    """As ``outcomes_of_stages``, where all documents are linked in one graph."""
    linker, found = find_linker(nlp), defaultdict(list)
    extension, threshold = linker.cfg["extension"], linker.threshold
    parts = [examples[i::folds] for i in range(folds)] or [examples]
    keeping = linker.caching_stages()
    for i, part in enumerate(parts):
        rest = [eg for j, other in enumerate(parts) if j != i for eg in other]
        stages = keeping
        if rest:
            fitted = fit_calibration(
                linker, [eg.reference for eg in rest], stages=stages, from_scratch=True
            )
            stages = fitted.within(stages)
        for name, variant in variants(stages).items():
            documents = DocumentLinker(
                variant, threshold, extension, linker.cfg["overwrite"]
            )
            docs = [example.predicted.copy() for example in (*part, *rest)]
            corpus = CorpusLinker(variant, documents, NewEntities())
            linked = corpus.link(docs, threshold=threshold)
            pairs = [Example(doc, eg.reference) for doc, eg in zip(linked, part)]
            found[name] += outcomes(
                pairs, linker.mentions.getter, extension, linker.kb
            )
    return found


def as_markdown(results: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> str:
    """Two tables, with a row for each pipeline."""
    recall = [["recall@k, entities alone", *map(str, RECALLS)]]
    accuracy = [["accuracy (seen / unseen)", *PROCEDURES]]
    for name, scores in results.items():
        recalls = (scores["independent"][f"arbo_recall_at_{k}"] for k in RECALLS)
        recall.append([name, *map(percent, recalls)])
        accuracy.append([name, *map(accuracies, scores.values())])
    return "\n".join(map(table, (recall, accuracy)))


def as_rows(
    results: Mapping[str, Mapping[str, Mapping[str, Any]]],
) -> dict[str, dict[str, Any]]:
    """One row of scores for each pipeline, for docs/build_results.py."""
    rows = {}
    for name, scores in results.items():
        recalls = {k: v for k, v in scores["independent"].items() if "recall" in k}
        rows[name] = {**scores["directed, exemplars"], **recalls}
    return rows


def accuracies(scores: Mapping[str, Any]) -> str:
    keys = ("arbo_acc", "arbo_acc_seen", "arbo_acc_unseen")
    return "{} ({} / {})".format(*(percent(scores[key]) for key in keys))


def percent(value: Any) -> str:
    return "–" if value is None else f"{100 * value:.2f}"


def table(rows: list[list[str]]) -> str:
    lines = [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join([lines[0], "|---" * len(rows[0]) + "|", *lines[1:], ""])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", type=Path, nargs="+")
    parser.add_argument("data", type=Path)
    parser.add_argument(
        "--folds", type=int, default=0, help="calibrate on the other parts"
    )
    parser.add_argument(
        "--one-graph", action="store_true", help="link all documents in one graph"
    )
    parser.add_argument(
        "--one-curve", action="store_true", help="one scale for all edges"
    )
    parser.add_argument("--output", type=Path, help="a JSON file of the scores")
    args = parser.parse_args()
    variants, results = on_one_curve if args.one_curve else procedures, {}
    for model in args.models:
        nlp = spacy.load(model)
        examples = list(MentionCorpus(args.data)(nlp))
        found = (
            outcomes_in_one_graph(nlp, examples, variants, args.folds)
            if args.one_graph
            else outcomes_of_stages(nlp, examples, variants, folds=args.folds)
        )
        # training/ncbi/in_batch/model-best is called in_batch.
        name = model.parent.name if model.name.startswith("model-") else model.name
        results[name] = score_rows(nlp, found)
    print(as_markdown(results))
    if args.output:
        srsly.write_json(args.output, as_rows(results))


if __name__ == "__main__":
    main()
