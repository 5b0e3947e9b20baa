"""Recall of DEER by the number of training mentions, for as many steps each.

    python deer_growth.py TRAIN.spacy DEV.spacy OUTPUT METRICS.json

The surface forms of TRAIN are the names in the knowledge base; 5,000, 20,000 and 80,000 of its
mentions are trained on.
"""

import sys
from collections import Counter, defaultdict
from collections import Counter as Counts
from pathlib import Path

import spacy
import srsly
from commands import options_of, run

from spacy_arbo_el.corpora.docbin import read_docs

# Documents of MedMentions that have about so many mentions.
DOCUMENTS = {"5k": 110, "20k": 440, "80k": 1760}
STEPS, NAMES = 480, 6


def write_entities(train: str, path: Path) -> None:
    """Write the entities of a corpus with their most frequent surface forms."""
    forms: dict[str, Counts[str]] = defaultdict(Counter)
    for doc in read_docs(Path(train), spacy.blank("en").vocab):
        for span in doc.ents:
            forms[span.kb_id_][span.text] += 1
    names = {
        id_: [name for name, _ in found.most_common(NAMES)]
        for id_, found in forms.items()
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = (
        {"id": i, "title": all_[0], "aliases": all_[1:]}
        for i, all_ in names.items()
        if i
    )
    srsly.write_jsonl(path, lines)


def main(train: str, dev: str, output: str, metrics: str) -> None:
    entities = Path(output, "entities.jsonl")
    write_entities(train, entities)
    run("kb", "build", entities, f"{output}/kb", "--replace")
    settings = {
        "paths.train": train,
        "paths.dev": dev,
        "paths.kb": f"{output}/kb",
        "corpora.dev.limit": 100,
        "training.max_steps": STEPS,
        "training.eval_frequency": STEPS,
        # Four rounds of steps of 100 mentions.
        "components.arbo_linker.objective.refresh.every": STEPS * 25,
    }
    models = {f"{output}/{name}": limit for name, limit in DOCUMENTS.items()}
    for model, limit in models.items():
        documents = "--corpora.train.limit", limit
        run(
            "train",
            "training/deer.cfg",
            "--output",
            model,
            *options_of(settings),
            *documents,
        )
    trained = [f"{model}/model-last" for model in models]
    run("evaluate", *trained, dev, "--output", metrics)


if __name__ == "__main__":
    main(*sys.argv[1:])
