"""Score pipelines with a part of their labels (VERBALIZED, Tables 14 and 15).

    python labels.py MODEL... DEV.spacy --labels IDS.txt [--output SCORES.json]

The file of labels has an id per line. Mentions of other entities are NIL.
"""

import argparse
from collections.abc import Iterable
from pathlib import Path

import srsly
from rich.console import Console

from spacy_arbo_el import load_pipeline
from spacy_arbo_el.corpora.docs import unlinked_examples
from spacy_arbo_el.corpora.read import read_ids
from spacy_arbo_el.evaluation.holdout import with_removed_as_nil
from spacy_arbo_el.evaluation.report import (
    annotated_examples,
    as_table,
    inference_outcomes,
    score_rows,
)
from spacy_arbo_el.kb.knowledge_base import ArboKB
from spacy_arbo_el.linker import find_linker


def keep_entities(kb: ArboKB, ids: Iterable[str]) -> None:
    """Remove all other entities. ValueError for an id that is in no entity."""
    ids = sorted(ids)
    unknown = [id_ for id_ in ids if id_ not in kb]
    if unknown or not ids:
        raise ValueError(
            f"{len(unknown)} of {len(ids)} labels are unknown: {unknown[:5]}"
        )
    kept = {kb.get(id_).id for id_ in ids}
    kb.remove([entity.id for entity in kb if entity.id not in kept])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", type=Path, nargs="+")
    parser.add_argument("data", type=Path)
    parser.add_argument("--labels", type=Path, required=True)
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    rows = {}
    for model in options.models:
        nlp = load_pipeline(model)
        linker = find_linker(nlp)
        docs = [example.reference for example in annotated_examples(nlp, options.data)]
        keep_entities(linker.kb, read_ids(options.labels))
        docs = with_removed_as_nil(docs, linker.kb)
        outcomes = inference_outcomes(nlp, unlinked_examples(docs))
        rows.update(
            {
                f"{model}: {name}": row
                for name, row in score_rows(nlp, outcomes).items()
            }
        )
    Console(width=160).print(
        as_table(rows, f"{options.data}, labels of {options.labels}")
    )
    if options.output:
        srsly.write_json(options.output, rows)


if __name__ == "__main__":
    main()
