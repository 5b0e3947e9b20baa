"""A laboratory for objectives: those of systems, trained with a small encoder of n-grams.

    python laboratory.py write OUT SYSTEM...
    python laboratory.py score MODEL... DEV.spacy --output metrics/laboratory.json

*write* makes a config of each system with its objective alone: the encoder of ``student`` in place
of the transformer, which begins as a distilled one (``--paths.encoder``), names without
descriptions, cosine, 128 mentions a step. A step takes a fifth of a second of one core. *score*
compares raw similarities, without calibration or ranker: by names alone, by the training mentions
alone, and by the more similar of both.
"""

import argparse
import json
from pathlib import Path

import numpy as np
import spacy
from spacy.util import load_config_from_str

from spacy_arbo_el.config_sources import complete_config
from spacy_arbo_el.corpora.docbin import read_docs
from spacy_arbo_el.linker import ArboLinker, find_linker
from spacy_arbo_el.mentions.labels import annotated_batches, gold_positions, is_gold
from spacy_arbo_el.storage.files import write_file

INFERENCE = {"@misc": "spacy-arbo-el.Independent.v1", "n_exemplars": 1}
BATCHER = {"@batchers": "spacy-arbo-el.batch_by_mention.v1", "size": 128}


def write(out: Path, system: str) -> None:
    """The config of a system's objective."""
    config = load_config_from_str(complete_config(system), interpolate=False)
    base = load_config_from_str(complete_config("arborescence"), interpolate=False)
    student = load_config_from_str(complete_config("student"), interpolate=False)
    linker = base["components"]["arbo_linker"]
    linker["objective"] = config["components"]["arbo_linker"]["objective"]
    linker["model"] = student["components"]["arbo_linker"]["model"]
    linker["inference"] = INFERENCE
    base["training"].update(batcher=BATCHER, before_to_disk=None, max_epochs=0)
    base["training"]["optimizer"]["L2"] = 0.0
    base["training"]["optimizer"]["learn_rate"]["initial_rate"] = 0.001
    base.to_disk(out / f"{Path(system).stem}.cfg")


def score(linker: ArboLinker, docs: Path) -> dict[str, float]:
    """Shares of the mentions by what they are compared with."""
    stages, parts = linker.stages, []
    for spans in annotated_batches(stages.reader, read_docs(docs, linker.vocab)):
        batch = stages.encode(stages.read(spans))
        found = stages.retrieve(batch)
        gold = gold_positions(linker.kb, [record.kb_ids for record in batch.records])
        names, mentions = found.entities.ids, found.exemplar_entities[:, :1]
        nearer = found.exemplars.scores[:, :1] > found.entities.scores[:, :1]
        both = np.where(nearer & (mentions >= 0), mentions, names[:, :1])
        right = [is_gold(ids, gold) for ids in (names, mentions, both)]
        parts.append(
            np.stack([right[0][:, 0], right[0].any(axis=1), *(r[:, 0] for r in right[1:])])
        )
    means = np.concatenate(parts, axis=1).mean(axis=1).round(4).tolist()
    return dict(zip(("names", "names R@64", "mentions", "both"), means))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    writing, scoring = commands.add_parser("write"), commands.add_parser("score")
    writing.add_argument("out", type=Path)
    writing.add_argument("systems", nargs="+")
    scoring.add_argument("models", type=Path, nargs="+")
    scoring.add_argument("dev", type=Path)
    scoring.add_argument("--output", type=Path, required=True)
    args = parser.parse_args()
    if args.command == "write":
        args.out.mkdir(parents=True, exist_ok=True)
        for system in args.systems:
            write(args.out, system)
        return
    results = {
        path.parent.name: score(find_linker(spacy.load(path)), args.dev) for path in args.models
    }
    write_file(args.output, (json.dumps(results, indent=1) + "\n").encode("utf8"))
    print(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
