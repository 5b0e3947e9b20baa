"""Recall of DEER by the number of training mentions, for as many steps each.

    python deer_growth.py TRAIN.spacy DEV.spacy OUTPUT METRICS.json

All mentions of TRAIN are names in the knowledge base; 5,000, 20,000 and 80,000 are trained on.
"""

import subprocess
import sys

# Documents of MedMentions that have about so many mentions.
DOCUMENTS = {"5k": 110, "20k": 440, "80k": 1760}
STEPS = 480
LIMIT = ["--corpora.train.limit"]


def main(train: str, dev: str, output: str, metrics: str) -> None:
    settings = {
        "paths.train": train,
        "paths.dev": dev,
        "corpora.dev.limit": 100,
        "training.max_steps": STEPS,
        "training.eval_frequency": STEPS,
        "training.optimizer.learn_rate.total_steps": STEPS + 20,
        # Four rounds of steps of 100 mentions.
        "components.arbo_linker.objective.refresh.every": STEPS * 25,
        "initialize.components.arbo_linker.kb_loader.@misc": "spacy-arbo-el.KBFromCorpus.v1",
        "initialize.components.arbo_linker.kb_loader.path": train,
    }
    options = [str(word) for name, value in settings.items() for word in (f"--{name}", value)]
    models = {f"{output}/{name}": limit for name, limit in DOCUMENTS.items()}
    for model, limit in models.items():
        arbo(
            "train",
            "training/deer.cfg",
            "--output",
            model,
            "--corpora.train.limit",
            limit,
            *options,
        )
    trained = [f"{model}/model-last" for model in models]
    arbo("evaluate", *trained, dev, "--baselines", "--output", metrics)


def arbo(*words: object) -> None:
    subprocess.run([sys.executable, "-m", "spacy", "arbo", *map(str, words)], check=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
