"""Judge checkpoints of a training by what generalizes: another corpus and withheld entities.

    python judges.py train CONFIG TRAIN.spacy DEV.spacy KB OUTPUT [--seed 0] [--override KEY=VALUE]
    python judges.py score OUTPUT TRAIN.spacy DEV.spacy --other OTHER_DEV.spacy [--start-share 0.5]
    python judges.py table OUTPUT [OUTPUT ...]

``train`` withholds a tenth of the entities, chosen by a hash: their mentions are neither trained on
nor stored. It keeps the weights at each evaluation. ``score`` fits the ranker on DEV for each of
them and scores the first candidate of DEV (in five parts, held out), of the withheld mentions and
of the other corpus; with ``--start-share``, for weights between those before and after training,
whose scores are in a folder beside OUTPUT. ``table`` prints the scores with paired intervals over
documents.
"""

import argparse
import itertools
import json
import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import spacy
from entity_folds import interval
from scipy.stats import spearmanr
from spacy import util
from spacy.tokens import Doc, DocBin
from spacy.training.initialize import init_nlp
from spacy.training.loop import create_train_batches, train_while_improving
from spacy.util import registry, resolve_dot_names

from spacy_arbo_el.corpora.docbin import read_docs
from spacy_arbo_el.corpora.docs import unlinked_examples
from spacy_arbo_el.evaluation.outcomes import Outcome
from spacy_arbo_el.evaluation.report import linked_outcomes, seen_by
from spacy_arbo_el.evaluation.seen import Seen
from spacy_arbo_el.fitting.calibrate import divided, fit_in_parts
from spacy_arbo_el.fitting.thresholds import best_row, pooled_rows, sweep_linking
from spacy_arbo_el.linker import ArboLinker, find_linker
from spacy_arbo_el.mentions.labels import current_ids
from spacy_arbo_el.runs.averaging import average_weights

WITHHELD, FOLDS, SAMPLES = 10, 5, 2000


def is_withheld(kb_id: str) -> bool:
    """Whether an entity's mentions are withheld from training."""
    return zlib.crc32(kb_id.encode()) % WITHHELD == 0


def keep_mentions(linker: ArboLinker, docs: Iterable[Doc], withheld: bool) -> list[Doc]:
    """Copies of documents with the mentions of withheld entities, or with all others."""
    kept = []
    for doc in docs:
        ids = current_ids(linker.kb, [span.kb_id_.split("|") for span in doc.ents])
        copy = doc.copy()
        copy.ents = [
            span for span, gold in zip(copy.ents, ids) if any(map(is_withheld, gold)) is withheld
        ]
        kept.append(copy)
    return [doc for doc in kept if doc.ents]


def train(args: argparse.Namespace) -> None:
    """Train, and write the encoder's weights at each evaluation."""
    args.output.mkdir(parents=True, exist_ok=True)
    paths = {"train": args.output / "train.spacy", "dev": args.dev, "kb": args.kb}
    overrides: dict[str, Any] = {f"paths.{name}": str(path) for name, path in paths.items()}
    overrides.update({"system.seed": args.seed, "training.max_steps": args.steps})
    overrides.update(
        dict(json.loads(f'["{k}", {v}]') for k, v in (o.split("=") for o in args.override))
    )
    config = util.load_config(args.config, overrides=overrides, interpolate=False)
    config["training"].pop("eval_entities", None)
    blank = spacy.blank("en")
    plain = blank.add_pipe("arbo_linker")
    plain.set_kb(args.kb)
    kept = keep_mentions(plain, read_docs(args.train, blank.vocab), False)
    DocBin(docs=kept, store_user_data=True).to_disk(paths["train"])
    nlp = init_nlp(config)
    settings = registry.resolve(nlp.config.interpolate()["training"])
    (corpus,) = resolve_dot_names(nlp.config.interpolate(), [settings["train_corpus"]])
    linker = find_linker(nlp)
    nlp.to_disk(args.output / "start")

    def keep() -> Any:
        step = next(steps_done)
        (args.output / f"weights-{step}.bin").write_bytes(linker.model.to_bytes())
        print("kept", step, flush=True)
        return float(step), {}

    steps_done = itertools.count(0, args.every)
    batches = create_train_batches(nlp, corpus, settings["batcher"], settings["max_epochs"])
    loop = train_while_improving(
        nlp,
        settings["optimizer"],
        batches,
        keep,
        dropout=0.0,
        accumulate_gradient=1,
        patience=0,
        max_steps=args.steps + 1,
        eval_frequency=args.every,
        exclude=[],
        annotating_components=[],
        before_update=None,
    )
    for _, info, _ in loop:
        print(
            info["step"],
            round(info["losses"].get("arbo_linker", 0.0), 3),
            info["seconds"],
            flush=True,
        )


def first_candidates(results: Sequence[Outcome], seen: Seen) -> list[dict[str, Any]]:
    """A row for each annotated mention."""
    order: dict[int, int] = {}
    rows = []
    for result in results:
        if result.gold is None or result.link is None:
            continue
        document = order.setdefault(id(result.span.doc), len(order))
        first = result.link.ids[0] if len(result.link.ids) else ""
        rows.append(
            {
                "document": document,
                "gold": bool(result.gold),
                "first": bool(first in result.gold),
                "probability": float(result.link.scores[0]) if first else 0.0,
                "linked": bool(result.is_correct),
                "unseen": not seen.ids & set(result.gold),
                "new": result.span.text.casefold() not in seen.strings,
            }
        )
    return rows


def score(args: argparse.Namespace) -> None:
    """Score each checkpoint, and write a row for each mention to a file."""
    nlp = spacy.load(args.output / "start")
    linker = find_linker(nlp)
    dev = [doc for doc in read_docs(args.dev, nlp.vocab) if doc.ents]
    other = [doc for doc in read_docs(args.other, nlp.vocab) if doc.ents]
    withheld = keep_mentions(linker, read_docs(args.train, nlp.vocab), True)
    start = find_linker(spacy.load(args.output / "start")).model
    output = args.output
    if args.start_share:
        output = args.output.with_name(f"{args.output.name}_{args.start_share:g}")
        output.mkdir(exist_ok=True)
    steps = sorted(int(path.stem.split("-")[1]) for path in args.output.glob("weights-*.bin"))
    for step in args.step or steps:
        target = output / f"scores-{step}.json"
        if target.exists():
            continue
        if step:
            linker.model.from_bytes((args.output / f"weights-{step}.bin").read_bytes())
            average_weights(start, linker.model, args.start_share)
            linker.encoder.weights_changed(trained=True)
        linker.encoder.end_training()
        target.write_text(json.dumps(_score(linker, dev, other, withheld)))
        print("scored", step, flush=True)


def _score(
    linker: ArboLinker, dev: list[Doc], other: list[Doc], withheld: list[Doc]
) -> dict[str, Any]:
    seen, default = seen_by(linker), 0.3
    keeping = linker.keeping_stages()
    fitted, without = fit_in_parts(linker, dev, FOLDS, stages=keeping)
    stages = fitted.within(keeping)
    found: list[Outcome] = []
    sweeps = []
    for (_, part), refitted in zip(divided(dev, FOLDS), without):
        held_out = refitted.within(keeping)
        found += linked_outcomes(linker, held_out, unlinked_examples(part), default)
        sweeps.append(sweep_linking(linker, part, stages=held_out))
    rows = pooled_rows(sweeps)
    threshold = float(rows[best_row(rows, "nel_micro_f")]["threshold"])
    judged = {"dev": first_candidates(found, seen), "threshold": threshold}
    for name, docs in (("other", other), ("withheld", withheld)):
        results = linked_outcomes(linker, stages, unlinked_examples(docs), default)
        judged[name] = first_candidates(results, seen)
        results = linked_outcomes(linker, stages, unlinked_examples(docs), threshold)
        judged[name + "_tuned"] = first_candidates(results, seen)
    return judged


# The judges: which mentions, and which of them.
JUDGES = {
    "dev": ("dev", None),
    "dev unseen": ("dev", "unseen"),
    "dev new": ("dev", "new"),
    "other": ("other", None),
    "other unseen": ("other", "unseen"),
    "other new": ("other", "new"),
    "withheld": ("withheld", None),
}


def table(args: argparse.Namespace) -> None:
    """Print the scores of each step, the differences to step 0 and rank correlations."""
    for output in args.outputs:
        paths = sorted(output.glob("scores-*.json"), key=lambda path: int(path.stem.split("-")[1]))
        steps = [int(path.stem.split("-")[1]) for path in paths]
        scores = [json.loads(path.read_text()) for path in paths]
        print(output, [one["threshold"] for one in scores])
        means: dict[str, list[float]] = {}
        for name, (corpus, only) in JUDGES.items():
            cells = []
            base = None
            for one in scores:
                rows = [row for row in one[corpus] if row["gold"] and (only is None or row[only])]
                if not rows:
                    continue
                right = np.array([row["first"] for row in rows], dtype=float)
                documents = np.array([row["document"] for row in rows])
                base = right if base is None else base
                means.setdefault(name, []).append(right.mean())
                low, high = 100 * interval(right - base, documents, SAMPLES)
                cells.append(f"{100 * right.mean():.1f} ({low:+.1f} to {high:+.1f})")
            if not cells:
                continue
            print(f"{name} ({len(rows)}): " + ", ".join(map(" ".join, zip(map(str, steps), cells))))
        dev = np.array(means["dev"])
        means["balanced"] = list((np.array(means["dev unseen"]) + _seen(scores)) / 2)
        print("balanced", [f"{100 * value:.1f}" for value in means["balanced"]], dev.round(3))
        for name, values in means.items():
            if name != "other" and len(values) > 2:
                rank = spearmanr(values, means["other"]).statistic
                print(f"  rank correlation with the other corpus: {name} {rank:.2f}")
        for name in ("other", "withheld"):
            for suffix in ("", "_tuned"):
                linked = [
                    np.mean([row["linked"] for row in one[name + suffix] if row["gold"]])
                    for one in scores
                ]
                print(
                    f"  linked right, {name}{suffix}: " + " ".join(f"{100 * x:.1f}" for x in linked)
                )


def _seen(scores: Sequence[dict[str, Any]]) -> np.ndarray:
    return np.array(
        [
            np.mean([row["first"] for row in one["dev"] if row["gold"] and not row["unseen"]])
            for one in scores
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(required=True)
    one = commands.add_parser("train")
    for name in ("config", "train", "dev", "kb", "output"):
        one.add_argument(name, type=Path)
    one.add_argument("--seed", type=int, default=0)
    one.add_argument("--steps", type=int, default=588)
    one.add_argument("--every", type=int, default=147)
    one.add_argument("--override", action="append", default=[])
    one.set_defaults(run=train)
    one = commands.add_parser("score")
    one.add_argument("output", type=Path)
    one.add_argument("train", type=Path)
    one.add_argument("dev", type=Path)
    one.add_argument("--start-share", type=float, default=0.0)
    one.add_argument("--step", type=int, action="append", default=[])
    one.add_argument("--other", type=Path, required=True)
    one.set_defaults(run=score)
    one = commands.add_parser("table")
    one.add_argument("outputs", type=Path, nargs="+")
    one.set_defaults(run=table)
    args = parser.parse_args()
    args.run(args)


if __name__ == "__main__":
    main()
