"""One factor of training at a time, on dev: what each is worth.

    python benchmarks/ablations.py CONFIG TRAIN.spacy DEV.spacy KB OUTPUT

Trains CONFIG once as it is and once with each change of ``VARIANTS``, for as many steps, and prints
a Markdown table. What is in OUTPUT already is not trained again, so the variants may be spread over
runs (``--only``) or machines. Accuracies are those of ``arbo compare``: from entities' texts alone
each for itself, and with exemplars by directed clustering.
"""

import argparse
import json
import time
from itertools import islice
from pathlib import Path
from typing import Any, Dict

from spacy.language import Language
from spacy.schemas import ConfigSchemaTraining
from spacy.training.initialize import init_nlp
from spacy.training.loop import create_train_batches
from spacy.util import load_config, registry, resolve_dot_names
from thinc.api import Config, fix_random_seed

from spacy_arbo_el.corpora.reader import MentionCorpus, read_docs
from spacy_arbo_el.evaluation.calibrate import calibrate_pipeline
from spacy_arbo_el.evaluation.comparison import compare_procedures
from spacy_arbo_el.io import write_file

LINKER = "components.arbo_linker"
POOLING = f"{LINKER}.model.mention.pooling"


def misc(section: str, name: str, **settings: Any) -> Dict[str, Any]:
    """A registered function in place of the one a section of the config names."""
    return {section: {"@misc": f"spacy-arbo-el.{name}.v1", **settings}}


VARIANTS: Dict[str, Dict[str, Any]] = {
    "as configured": {},
    "cache refreshed each epoch only": misc(
        f"{LINKER}.refresh", "CacheRefresh", every=0, on_the_fly=False
    ),
    "in-batch negatives": misc(f"{LINKER}.negatives", "InBatchNegatives"),
    "pooling: cls": misc(POOLING, "ClsPooling"),
    "pooling: start": misc(POOLING, "StartPooling"),
    "pooling: first_last": misc(POOLING, "FirstLastPooling"),
    "window: 32": {f"{LINKER}.model.mention.window": 32},
    "window: 64": {f"{LINKER}.model.mention.window": 64},
    "one text: the name alone": misc(
        f"{LINKER}.verbalization", "TitleDescription", aliases=False, types=False
    ),
    "one text: name + aliases": misc(
        f"{LINKER}.verbalization", "TitleDescription", aliases=True, types=False
    ),
}


def configured(options: argparse.Namespace, changes: Dict[str, Any]) -> Config:
    paths = {"train": options.train, "dev": options.dev, "kb": options.kb}
    overrides: Dict[str, Any] = {f"paths.{name}": str(path) for name, path in paths.items()}
    overrides["training.optimizer.learn_rate.total_steps"] = options.steps + 2
    overrides["system.seed"] = options.seed
    config = load_config(options.config, overrides=overrides, interpolate=False)
    for path, value in changes.items():
        section = config
        *parents, last = path.split(".")
        for name in parents:
            section = section[name]
        section[last] = value
    return config


def trained(options: argparse.Namespace, changes: Dict[str, Any]) -> Language:
    """A pipeline after so many steps, without evaluations on the way."""
    nlp = init_nlp(configured(options, changes))
    settings = nlp.config.interpolate()
    T = registry.resolve(settings["training"], schema=ConfigSchemaTraining)
    (corpus,) = resolve_dot_names(settings, [T["train_corpus"]])
    fix_random_seed(options.seed)
    batches = create_train_batches(nlp, corpus, T["batcher"], -1)
    for _, batch in islice(batches, options.steps):
        nlp.update(batch, sgd=T["optimizer"], drop=T["dropout"])
        T["optimizer"].step_schedules()
    return nlp


def run(options: argparse.Namespace, name: str) -> Dict[str, Any]:
    start = time.perf_counter()
    nlp = trained(options, VARIANTS[name])
    seconds = time.perf_counter() - start
    calibrate_pipeline(nlp, list(read_docs(options.dev, nlp.vocab)))
    results = compare_procedures(nlp, list(MentionCorpus(options.dev)(nlp)))
    alone, together = results["independent"], results["directed, exemplars"]
    return {
        "names alone": alone["arbo_acc"],
        "R@64": alone["arbo_recall_at_64"],
        "with exemplars": together["arbo_acc"],
        "seen": together["arbo_acc_seen"],
        "unseen": together["arbo_acc_unseen"],
        "seconds": seconds,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("config", "train", "dev", "kb", "output"):
        parser.add_argument(name, type=Path)
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="variants, separated by semicolons")
    options = parser.parse_args()
    wanted = [name.strip() for name in options.only.split(";") if name.strip()] or list(VARIANTS)
    options.output.mkdir(parents=True, exist_ok=True)
    found = {}
    for name in VARIANTS:
        path = options.output / f"{name.replace(' ', '_').replace(':', '')}.json"
        if not path.exists() and name in wanted:
            write_file(path, json.dumps(run(options, name)).encode("utf8"))
        if path.exists():
            found[name] = json.loads(path.read_text("utf8"))
    columns = list(next(iter(found.values())))[:-1]
    print("| " + " | ".join(["", *columns, "training"]) + " |")
    print("|---" * (len(columns) + 2) + "|")
    for name, scores in found.items():
        cells = [f"{100 * scores[c]:.2f}" if scores[c] is not None else "–" for c in columns]
        print("| " + " | ".join([name, *cells, f"{scores['seconds']:.0f} s"]) + " |")


if __name__ == "__main__":
    main()
