"""Judge checkpoints of a training by the entities that it has not seen.

    python judges.py train CONFIG TRAIN.spacy DEV.spacy KB OUTPUT [--fold 0] [--override KEY=VALUE]
    python judges.py score OUTPUT TRAIN.spacy DEV.spacy [--step 200] [--share 0.5] [--names 20000]
    python judges.py table OUTPUT [--output METRICS.json]

``train`` withholds a fifth of the entities, chosen by a hash: their mentions are neither trained on
nor stored. Its learning rate falls to 0 at the last of ``--steps``. It keeps the weights before the
first step, at half of the steps and at the end. ``score`` finds the first candidate of the withheld
mentions and of DEV, with a ranker fitted on DEV (DEV itself in five parts). With ``--both`` it also
ranks the withheld mentions with a ranker fitted on those of the other half of their entities too.
``--share`` gives the weights before training a share in those that are scored. ``table`` prints R@1
with paired intervals, over mentions and over entities.
"""

import argparse
import itertools
import json
import zlib
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import spacy
from entity_folds import interval
from spacy import util
from spacy.tokens import Doc, DocBin
from spacy.training.initialize import init_nlp
from spacy.training.loop import create_train_batches, train_while_improving
from spacy.util import registry, resolve_dot_names
from thinc.api import Model

from spacy_arbo_el.corpora.docbin import read_docs
from spacy_arbo_el.evaluation.report import seen_by
from spacy_arbo_el.evaluation.seen import Seen
from spacy_arbo_el.fitting.calibrate import (
    annotated_mentions,
    divided,
    fit_calibration,
    fit_folds,
)
from spacy_arbo_el.linker import ArboLinker, find_linker
from spacy_arbo_el.linking.stages import LinkingStages
from spacy_arbo_el.mentions.labels import current_ids, is_gold
from spacy_arbo_el.names.spellings import folded
from spacy_arbo_el.runs.evaluation import evaluated_entities

PARTS, FOLDS, SAMPLES = 5, 5, 2000
# In OUTPUT: the withheld part, the pipeline before training, and the weights of a step.
FOLD, START, WEIGHTS = "fold.json", "start", "weights-{}.bin"
# In a file of scores: withheld mentions with a ranker of dev, and with one of half of them too.
WITHHELD, BOTH = "withheld", "withheld, fitted on both"


def part_of(kb_id: str, parts: int, salt: str = "") -> int:
    """The part that an entity is in, by a hash of its id."""
    return zlib.crc32((kb_id + salt).encode()) % parts


def keep_mentions(
    linker: ArboLinker, docs: Iterable[Doc], fold: int, withheld: bool
) -> list[Doc]:
    """Copies of documents with the mentions of withheld entities, or with all others."""

    def is_kept(gold: Sequence[str]) -> bool:
        return any(part_of(kb_id, PARTS) == fold for kb_id in gold) is withheld

    return with_mentions(linker, docs, is_kept)


def half_of(linker: ArboLinker, docs: Iterable[Doc], half: int) -> list[Doc]:
    """Copies of documents with the mentions of one half of the entities."""
    return with_mentions(
        linker, docs, lambda gold: part_of(gold[0], 2, "half") == half
    )


def with_mentions(linker: ArboLinker, docs: Iterable[Doc], is_kept: Any) -> list[Doc]:
    """Copies of documents with some mentions, and without the documents that have none of them."""
    kept = []
    for doc in docs:
        ids = current_ids(linker.kb, [span.kb_id_.split("|") for span in doc.ents])
        copy = doc.copy()
        copy.ents = [span for span, gold in zip(copy.ents, ids) if is_kept(gold)]
        kept.append(copy)
    return [doc for doc in kept if doc.ents]


def train(args: argparse.Namespace) -> None:
    """Train, and write the encoder's weights at each evaluation."""
    args.output.mkdir(parents=True, exist_ok=True)
    (args.output / FOLD).write_text(json.dumps(args.fold))
    paths = {"train": args.output / "train.spacy", "dev": args.dev, "kb": args.kb}
    overrides: dict[str, Any] = {
        f"paths.{name}": str(path) for name, path in paths.items()
    }
    overrides["system.seed"] = args.seed
    overrides["training.max_epochs"] = 0
    overrides["training.max_steps"] = args.steps
    overrides.update(
        dict(
            json.loads(f'["{k}", {v}]')
            for k, v in (o.split("=") for o in args.override)
        )
    )
    config = util.load_config(args.config, overrides=overrides, interpolate=False)
    blank = spacy.blank("en")
    plain = blank.add_pipe("arbo_linker")
    plain.set_kb(args.kb)
    kept = keep_mentions(
        plain, read_docs(args.train, blank.vocab), args.fold, withheld=False
    )
    DocBin(docs=kept, store_user_data=True).to_disk(paths["train"])
    nlp = init_nlp(config)
    settings = registry.resolve(nlp.config.interpolate()["training"])
    (corpus,) = resolve_dot_names(nlp.config.interpolate(), [settings["train_corpus"]])
    linker = find_linker(nlp)
    nlp.to_disk(args.output / START)

    def keep() -> Any:
        step = next(steps_done)
        (args.output / WEIGHTS.format(step)).write_bytes(linker.model.to_bytes())
        print("kept", step, flush=True)
        return float(step), {}

    every = args.steps // 2
    steps_done = itertools.count(0, every)
    batches = create_train_batches(
        nlp, corpus, settings["batcher"], settings["max_epochs"]
    )
    loop = train_while_improving(
        nlp,
        settings["optimizer"],
        batches,
        keep,
        dropout=0.0,
        accumulate_gradient=1,
        patience=0,
        max_steps=args.steps,
        eval_frequency=every,
        exclude=[],
        annotating_components=[],
        before_update=None,
    )
    for _, info, _ in loop:
        loss = info["losses"].get("arbo_linker", 0.0)
        print(info["step"], round(loss, 3), info["seconds"], flush=True)


def average_weights(before: Model, after: Model, share: float) -> None:
    """Give transformers a share of the weights before training (WiSE-FT; Wortsman et al. 2022)."""
    pairs = [
        (a, b)
        for m, n in zip(before.walk(), after.walk())
        for a, b in zip(m.shims, n.shims)
    ]
    for start, trained in pairs:
        weights = dict(start._model.named_parameters())
        for name, parameter in trained._model.named_parameters():
            parameter.data.lerp_(weights[name].data, share)


def score(args: argparse.Namespace) -> None:
    """Score checkpoints, and write a row for each mention to a file of each."""
    nlp = spacy.load(args.output / START)
    linker = find_linker(nlp)
    start = find_linker(spacy.load(args.output / START)).model
    dev = [doc for doc in read_docs(args.dev, nlp.vocab) if doc.ents]
    fold = json.loads((args.output / FOLD).read_text())
    withheld = keep_mentions(
        linker, read_docs(args.train, nlp.vocab), fold, withheld=True
    )
    among = (
        evaluated_entities(linker, dev + withheld, args.names) if args.names else None
    )
    for step, share in itertools.product(args.step, args.share):
        target = args.output / f"scores-{step}-{share:g}.json"
        if target.exists() or (step == 0 and share):
            continue
        if step:
            linker.model.from_bytes((args.output / WEIGHTS.format(step)).read_bytes())
            average_weights(start, linker.model, share)
            linker.encoder.weights_changed(trained=True)
        linker.encoder.end_training()
        with (
            linker.datastore.limited_to(among) if among is not None else nullcontext()
        ):
            target.write_text(json.dumps(judge(linker, dev, withheld, args.both)))
        print("scored", step, share, flush=True)


def judge(
    linker: ArboLinker, dev: list[Doc], withheld: list[Doc], both: bool
) -> dict[str, Any]:
    """First candidates of withheld mentions and of dev. ``both`` adds those of a second ranker."""
    seen = seen_by(linker)
    keeping = linker.caching_stages()
    fitted, without = fit_folds(linker, dev, FOLDS, stages=keeping)
    judged: dict[str, Any] = {"dev": []}
    for (_, part), one in zip(divided(dev, FOLDS), without):
        judged["dev"] += first_candidates(one.within(keeping), part, seen)
    # The second ranker's mentions are in this order.
    halves = [half_of(linker, withheld, half) for half in (0, 1)]
    judged[WITHHELD] = []
    for half in halves:
        judged[WITHHELD] += first_candidates(fitted.within(keeping), half, seen)
    if both:
        judged[BOTH] = []
        for half, other in (halves, halves[::-1]):
            second = fit_calibration(
                linker, dev + other, stages=keeping, from_scratch=True
            )
            judged[BOTH] += first_candidates(second.within(keeping), half, seen)
    return judged


def first_candidates(
    stages: LinkingStages, docs: list[Doc], seen: Seen
) -> list[dict[str, Any]]:
    """A row for each mention that has an entity in the knowledge base."""
    found = annotated_mentions(stages, docs)
    if found is None:
        return []
    ranked = stages.rerank(found.batch, found.neighbours)
    right = is_gold(ranked.ranking.candidates.resized(1).ids, found.gold)[:, 0]
    nearest = is_gold(found.neighbours.entities.first(1).ids, found.gold)[:, 0]
    return [
        {
            "first": bool(right[row]),
            "nearest": bool(nearest[row]),
            "unseen": not seen.ids & set(record.kb_ids),
            "new": folded(record.text) not in seen.strings,
            "entity": record.kb_ids[0],
        }
        for row, record in enumerate(found.batch.records)
        if (found.gold[row] >= 0).any()
    ]


# The judges: the mentions, a part of them or all, and the column that is counted.
JUDGES = {
    "withheld": (WITHHELD, None, "first"),
    "withheld, new strings": (WITHHELD, "new", "first"),
    "withheld, nearest name": (WITHHELD, None, "nearest"),
    "dev": ("dev", None, "first"),
    "dev, unseen": ("dev", "unseen", "first"),
    "dev, new strings": ("dev", "new", "first"),
}
# A step and a share of the weights before training, and what each mention has with them.
Scores = dict[tuple[int, float], dict[str, list[dict[str, Any]]]]


def table(args: argparse.Namespace) -> None:
    """Print R@1 of each step and share, with the differences to step 0 and to share 0."""
    paths = [
        (path.stem.split("-"), path) for path in args.scored.glob("scores-*.json")
    ]
    scores = {
        (int(step), float(share)): json.loads(path.read_text())
        for (_, step, share), path in paths
    }
    scores = dict(sorted(scores.items()))
    for name, (corpus, only, what) in JUDGES.items():
        columns = {
            key: Column.of(one[corpus], only, what) for key, one in scores.items()
        }
        print(f"{name} ({len(columns[0, 0.0].right)}):")
        for (step, share), column in columns.items():
            line = f"  step {step}, share {share:g}: {100 * column.right.mean():.1f}"
            for base in sorted(
                {(0, 0.0), (step, 0.0)} & columns.keys() - {(step, share)}
            ):
                line += f"; on step {base[0]}, share 0 {column.over(columns[base])}"
            print(line)
    for (step, share), one in scores.items():
        if BOTH in one:
            both = Column.of(one[BOTH], None, "first")
            gain = both.over(Column.of(one[WITHHELD], None, "first"))
            shown = f"{100 * both.right.mean():.1f}, on the ranker of dev {gain}"
            print(
                f"ranker fitted on half of them too, step {step}, share {share:g}: {shown}"
            )
    if args.output:
        args.output.write_text(json.dumps({WITHHELD: summary(scores)}, indent=2))


def summary(scores: Scores) -> dict[str, Any]:
    """R@1 of the withheld mentions before and after training, and averaged, for docs/results.md."""
    last = max(step for step, _ in scores)
    keys = {"before": (0, 0.0), "trained": (last, 0.0), "averaged": (last, 0.5)}
    columns = {
        name: Column.of(scores[key][WITHHELD], None, "first")
        for name, key in keys.items()
    }
    gain = columns["trained"].difference(columns["before"])
    of_average = columns["averaged"].difference(columns["trained"])
    return {
        **{name: column.right.mean() for name, column in columns.items()},
        "trained_less_before": gain,
        "averaged_less_trained": of_average,
    }


class Column(NamedTuple):
    """What is counted of some mentions.

    right: As 0 and 1: (n,) float.
    entities: A number for the entity of each: (n,) int.
    """

    right: np.ndarray
    entities: np.ndarray

    @classmethod
    def of(cls, rows: list[dict[str, Any]], only: str | None, what: str) -> "Column":
        """A column of all rows, or of those that have ``only``."""
        chosen = [row for row in rows if only is None or row[only]]
        entities = np.unique([row["entity"] for row in chosen], return_inverse=True)[1]
        return cls(np.array([row[what] for row in chosen], dtype=float), entities)

    def difference(self, other: "Column") -> list[float]:
        """The mean of the difference to another column, and its interval over mentions."""
        gains = self.right - other.right
        return [gains.mean(), *interval(gains, np.arange(len(gains)), SAMPLES)]

    def over(self, other: "Column") -> str:
        """The difference in points, with its intervals over mentions and over entities."""
        mean, low, high = self.difference(other)
        least, most = interval(self.right - other.right, self.entities, SAMPLES)
        shown = f"{100 * mean:+.1f} ({100 * low:+.1f} to {100 * high:+.1f}; "
        return shown + f"{100 * least:+.1f} to {100 * most:+.1f} over entities)"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(required=True)
    one = commands.add_parser("train")
    for name in ("config", "train", "dev", "kb", "output"):
        one.add_argument(name, type=Path)
    one.add_argument("--fold", type=int, default=0)
    one.add_argument("--seed", type=int, default=0)
    one.add_argument("--steps", type=int, default=200)
    one.add_argument("--override", action="append", default=[])
    one.set_defaults(run=train)
    one = commands.add_parser("score")
    for name in ("output", "train", "dev"):
        one.add_argument(name, type=Path)
    one.add_argument("--step", type=int, action="append", required=True)
    one.add_argument("--share", type=float, action="append", required=True)
    one.add_argument(
        "--names", type=int, default=0, help="names that are searched; 0 for all"
    )
    one.add_argument(
        "--both", action="store_true", help="fit a second ranker on withheld mentions"
    )
    one.set_defaults(run=score)
    one = commands.add_parser("table")
    one.add_argument("scored", type=Path)
    one.add_argument(
        "--output", type=Path, help="write R@1 of the withheld mentions here"
    )
    one.set_defaults(run=table)
    args = parser.parse_args()
    args.run(args)


if __name__ == "__main__":
    main()
