"""What each setting of training contributes to accuracy on dev.

    python benchmarks/ablations.py CONFIG TRAIN.spacy DEV.spacy KB OUTPUT

Trains CONFIG once as it is and once with each change of ``VARIANTS``, for the same number of steps,
and prints a Markdown table. Variants with results in OUTPUT are not trained again, so that several
runs (``--only``) or machines can share them. Accuracies are those of ``arbo compare``: independent
linking by the texts of entities alone, and directed clustering with exemplars.
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
VERBALIZATION = f"{LINKER}.retriever.verbalization"


def misc(section: str, name: str, **settings: Any) -> Dict[str, Any]:
    """A change of the config: another registered part in a section."""
    return {section: {"@misc": f"spacy-arbo-el.{name}.v1", **settings}}


VARIANTS: Dict[str, Dict[str, Any]] = {
    "as configured": {},
    "cache refreshed each epoch only": misc(
        f"{LINKER}.objective.refresh", "CacheRefresh", every=0, on_the_fly=False
    ),
    "in-batch negatives": misc(f"{LINKER}.objective.negatives", "InBatchNegatives"),
    "pooling: cls": misc(POOLING, "ClsPooling"),
    "pooling: start": misc(POOLING, "StartPooling"),
    "pooling: first_last": misc(POOLING, "FirstLastPooling"),
    "window: 32": {f"{LINKER}.model.mention.window": 32},
    "window: 64": {f"{LINKER}.model.mention.window": 64},
    "one text: the name alone": misc(VERBALIZATION, "TitleDescription", aliases=False, types=False),
    "one text: name + aliases": misc(VERBALIZATION, "TitleDescription", aliases=True, types=False),
}


def configured(options: argparse.Namespace, changes: Dict[str, Any]) -> Config:
    paths = {"train": options.train, "dev": options.dev, "kb": options.kb}
    overrides: Dict[str, Any] = {f"paths.{name}": str(path) for name, path in paths.items()}
    overrides["training.optimizer.learn_rate.total_steps"] = options.steps + 2
    overrides["system.seed"] = options.seed
    return load_config(options.config, overrides={**overrides, **changes}, interpolate=False)


def trained(options: argparse.Namespace, changes: Dict[str, Any]) -> Language:
    """A pipeline after the given number of steps, without evaluations in between."""
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
    independent, directed = results["independent"], results["directed, exemplars"]
    return {
        "names alone": independent["arbo_acc"],
        "R@64": independent["arbo_recall_at_64"],
        "with exemplars": directed["arbo_acc"],
        "seen": directed["arbo_acc_seen"],
        "unseen": directed["arbo_acc_unseen"],
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
    results = {}
    for name in VARIANTS:
        path = options.output / f"{name.replace(' ', '_').replace(':', '')}.json"
        if not path.exists() and name in wanted:
            write_file(path, json.dumps(run(options, name)).encode("utf8"))
        if path.exists():
            results[name] = json.loads(path.read_text("utf8"))
    columns = list(next(iter(results.values())))[:-1]
    print("| " + " | ".join(["", *columns, "training"]) + " |")
    print("|---" * (len(columns) + 2) + "|")
    for name, scores in results.items():
        cells = [f"{100 * scores[c]:.2f}" if scores[c] is not None else "–" for c in columns]
        print("| " + " | ".join([name, *cells, f"{scores['seconds']:.0f} s"]) + " |")


if __name__ == "__main__":
    main()
