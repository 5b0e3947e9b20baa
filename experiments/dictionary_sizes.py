"""BioCoM beside pretraining on synonyms and TF-IDF, by the size of the dictionary (its §5.1).

    python dictionary_sizes.py RAW.jsonl KB OUTPUT DEV.spacy [DEV.spacy ...] [--steps 150]

A smaller dictionary has the titles of all entities and a share of their other names, chosen by a
hash, so that each dictionary has the names of those before it. Its names are tagged in RAW.jsonl.
BioCoM learns from these mentions and links by the nearest one. SapBERT learns synonyms: each name
approaches another one of its entity, with the same loss and for as many steps. R@1 of the mentions
with an entity, with the 95 % interval of the difference, over documents.
"""

import argparse
import zlib
from collections.abc import Mapping, Sequence
from functools import reduce
from itertools import islice
from operator import getitem
from pathlib import Path
from typing import Any

import numpy as np
import spacy
from baselines import NameTfidf
from commands import run
from entity_folds import interval
from nearest_names import outcomes_of
from spacy.tokens import Doc
from spacy.training.initialize import init_nlp
from thinc.api import Config

from spacy_arbo_el.corpora.docbin import read_docs, write_docbin
from spacy_arbo_el.kb.entity import Entity
from spacy_arbo_el.kb.importers.jsonl import write_entities_jsonl
from spacy_arbo_el.kb.knowledge_base import ArboKB
from spacy_arbo_el.linker import ArboLinker, find_linker
from spacy_arbo_el.retrieval.exemplars import ExemplarStore
from spacy_arbo_el.runs.loop import train

SAMPLES = 2000
SHARES = (0.1, 0.3, 1.0)
# Documents that probabilities are fitted on, which do not change first candidates here.
CALIBRATED = 30
RANKER = {"@misc": "spacy-arbo-el.BestEvidence.v1"}
# By system, the sections of the component that differ from it.
SYSTEMS: dict[str, dict[str, Any]] = {
    # With few contexts, the nearest one decides best.
    "biocom": {"inference.n_exemplars": 1, "model.mention.passage": 64},
    # SapBERT: the default, with nothing but names.
    "linker": {
        "reranker": RANKER,
        "objective": {
            "@misc": "spacy-arbo-el.Objective.v1",
            "positives": {"@misc": "spacy-arbo-el.SynonymPositives.v1"},
            "negatives": {"@misc": "spacy-arbo-el.InBatchNegatives.v1"},
            "queries": {"@misc": "spacy-arbo-el.NameQueries.v1", "n": 64},
            "loss": {
                "@losses": "spacy-arbo-el.MultiSimilarity.v1",
                "base": 1.0,
                "margin": 0.1,
            },
            "refresh": {"@misc": "spacy-arbo-el.CacheRefresh.v1", "every": -1},
        },
    },
}


def write_dictionary(kb: ArboKB, share: float, path: Path) -> int:
    """Write the entities with a share of their other names. RETURNS: The number of names."""
    entities = []
    for entity in kb:
        kept = (
            name
            for name in entity.aliases
            if zlib.crc32(name.encode()) < share * 2**32
        )
        entities.append(Entity(entity.id, entity.title, aliases=tuple(kept)))
    write_entities_jsonl(entities, path)
    return sum(len(entity.names) for entity in entities)


def trained(system: str, folder: Path, steps: int) -> ArboLinker:
    """Train a system on the dictionary and the silver mentions of a folder."""
    overrides = {
        "paths.train": str(folder / "silver.spacy"),
        "paths.dev": str(folder / "calibrated.spacy"),
        "paths.kb": str(folder / "kb"),
        "training.max_epochs": 0,
        "training.max_steps": steps,
        "training.eval_frequency": steps,
        "training.optimizer.learn_rate.initial_rate": 0.00005,
    }
    config = Config().from_disk(Path("training", f"{system}.cfg"), interpolate=False)
    for section, value in SYSTEMS[system].items():
        *parents, last = "components", "arbo_linker", *section.split(".")
        reduce(getitem, parents, config)[last] = value
    nlp = init_nlp(
        Config().from_str(config.to_str(), overrides=overrides, interpolate=False)
    )
    train(nlp, folder / system)
    return find_linker(spacy.load(folder / system / "model-last"))


def score(folder: Path, steps: int, corpora: Mapping[str, Sequence[Doc]]) -> None:
    """Train both systems on a dictionary, and print R@1 on the corpora."""
    nlp = spacy.blank("en")
    untrained: Any = nlp.add_pipe("arbo_linker", config={"reranker": RANKER})
    untrained.set_kb(folder / "kb")
    linkers = {"untrained": untrained, "BioCoM": trained("biocom", folder, steps)}
    linkers["SapBERT"] = trained("linker", folder, steps)
    linkers["SapBERT"].datastore.exemplars = ExemplarStore()
    for linker in linkers.values():
        linker.refresh()
    tfidf = NameTfidf.build(untrained.kb.entities.items())
    ids = {position: entity.id for position, entity in untrained.kb.entities.items()}
    for name, docs in corpora.items():
        linked = {
            system: [one for one in outcomes_of(linker, docs, 0.0) if one.gold]
            for system, linker in linkers.items()
        }
        outcomes = linked["untrained"]
        found = tfidf([one.span.text for one in outcomes]).first(1).ids[:, 0].tolist()
        hits = {
            "TF-IDF": np.array([ids.get(p) in o.gold for p, o in zip(found, outcomes)])
        }
        for system, each in linked.items():
            hits[system] = np.array(
                [not set(o.link.ids[:1]).isdisjoint(o.gold) for o in each]
            )
        cells = ", ".join(
            f"{system} {100 * column.mean():.1f}" for system, column in hits.items()
        )
        documents = np.unique(
            [id(one.span.doc) for one in outcomes if one.span], return_inverse=True
        )[1]
        gains = hits["BioCoM"].astype(float) - hits["SapBERT"]
        low, high = 100 * interval(gains, documents, SAMPLES)
        gained = f"BioCoM less SapBERT {100 * gains.mean():+.1f} ({low:+.1f} to {high:+.1f})"
        print(f"{name}, {len(outcomes)} mentions: {cells}; {gained}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("raw", "kb", "output"):
        parser.add_argument(name, type=Path)
    parser.add_argument("dev", type=Path, nargs="+")
    parser.add_argument("--steps", type=int, default=150)
    parser.add_argument("--shares", type=float, nargs="*", default=SHARES)
    args = parser.parse_args()
    vocab = spacy.blank("en").vocab
    corpora = {
        path.stem: [d for d in read_docs(path, vocab) if d.ents] for path in args.dev
    }
    whole = ArboKB.open(args.kb)
    for share in args.shares:
        folder = args.output / f"{share:g}"
        folder.mkdir(parents=True, exist_ok=True)
        count = write_dictionary(whole, share, folder / "entities.jsonl")
        run("kb", "build", folder / "entities.jsonl", folder / "kb", "--replace")
        (folder / "silver.spacy").unlink(missing_ok=True)
        run("silver", args.raw, "--kb", folder / "kb", "-o", folder / "silver.spacy")
        docs = list(islice(read_docs(folder / "silver.spacy", vocab), CALIBRATED))
        write_docbin(docs, folder / "calibrated.spacy")
        print(f"{count} names", flush=True)
        score(folder, args.steps, corpora)


if __name__ == "__main__":
    main()
