"""Variants of VERBALIZED (its Tables 3 and 4), trained alike on wned-wiki.

    python verbalized_parts.py NAME [NAME ...]

After the workflow `wikipedia-data`. Each variant has a training log with its curve on tweeki.
"""

import sys
from pathlib import Path
from typing import Any

from commands import options_of, run
from thinc.api import Config

LINKER = ("components", "arbo_linker")
MEAN = {"model.mention.pooling": {"@misc": "spacy-arbo-el.SpanMeanPooling.v1"}}
# Sections of the component that take the place of those in papers/verbalized.cfg.
VARIANTS: dict[str, dict[str, Any]] = {
    "first_last": {},
    "mean": MEAN,
    "mean_cosine": {
        **MEAN,
        "retriever.similarity": {"@misc": "spacy-arbo-el.Cosine.v1"},
        "objective.loss": {"@losses": "spacy-arbo-el.CrossEntropy.v1", "scale": 20.0},
    },
}
STEPS = 160


def main(names: list) -> None:
    for name in names:
        config = Config().from_disk("training/verbalized.cfg", interpolate=False)
        for section, value in VARIANTS[name].items():
            *parents, last = (*LINKER, *section.split("."))
            place = config
            for parent in parents:
                place = place[parent]
            place[last] = value
        path = Path("training") / f"verbalized_{name}.cfg"
        config.to_disk(path)
        settings = {
            "paths.train": "corpus/wned-wiki.spacy",
            "paths.dev": "corpus/tweeki.spacy",
            "paths.kb": "kb/wikipedia",
            "training.max_epochs": 0,
            "training.max_steps": STEPS,
            "training.eval_frequency": 40,
        }
        run(
            "train",
            path,
            "--output",
            f"training/verbalized_{name}",
            *options_of(settings),
        )


if __name__ == "__main__":
    main(sys.argv[1:] or list(VARIANTS))
