"""Accuracy by folds: a config is trained on the other folds of a corpus, and scored on each.

    python benchmarks/folds.py verbalized.cfg corpus/zelda_wned-wiki.spacy kb/wikipedia \
        --steps 60 --folds 5 [--section.key VALUE …]

Documents are assigned to folds by chance. The untrained pipeline is scored on the same documents.
A mention is right if it is linked to a gold entity. It is scored apart whether an entity of the
mention has a description.
"""

import argparse
import copy
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Iterator, List, Sequence

import numpy as np
import spacy
from spacy.cli._util import parse_config_overrides
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example
from spacy.util import load_config, load_model_from_config, registry
from thinc.api import Config, fix_random_seed, set_dropout_rate

from spacy_arbo_el.corpora.reader import read_docs, unlinked
from spacy_arbo_el.kb.knowledge_base import ArboKB
from spacy_arbo_el.linker import ArboLinker, find_linker
from spacy_arbo_el.mentions.labels import gold_ids


def split(docs: Sequence[Doc], folds: int) -> List[List[Doc]]:
    """Documents in so many parts, by chance, or in as many as there are documents.

    Raises ValueError for less than two folds or documents: nothing would be left to train on.
    """
    parts = min(folds, len(docs))
    if parts < 2:
        raise ValueError(f"Two folds and two documents are needed, not {folds} and {len(docs)}")
    part = np.random.default_rng(0).permutation(len(docs)) % parts
    return [[docs[i] for i in np.flatnonzero(part == p)] for p in range(parts)]


def others_of(part: List[Doc], parts: Sequence[List[Doc]]) -> List[Doc]:
    """The documents of all other parts."""
    return [doc for other in parts if other is not part for doc in other]


def initialized(config: Config, docs: Sequence[Doc], kb: Path) -> Language:
    """The untrained pipeline of a config, with a copy of the knowledge base in memory."""
    fix_random_seed(config["training"]["seed"] or 0)
    nlp = load_model_from_config(copy.deepcopy(config), auto_fill=True)
    examples = [Example(unlinked(doc), doc) for doc in docs]
    find_linker(nlp).initialize(
        lambda: examples,
        nlp=nlp,
        kb_loader=lambda vocab: ArboKB(vocab, list(ArboKB(vocab).from_disk(kb))),
    )
    return nlp


@contextmanager
def trained(config: Config, docs: Sequence[Doc], kb: Path, steps: int) -> Iterator[Language]:
    """The pipeline after so many steps on documents, with averaged weights where there are any."""
    nlp = initialized(config, docs, kb)
    training = registry.resolve({"training": config["training"]})["training"]
    set_dropout_rate(find_linker(nlp).model, training["dropout"])
    for batch in islice(training["batcher"](_forever(docs)), steps):
        nlp.update(batch, sgd=training["optimizer"])
        training["optimizer"].step_schedules()
    with nlp.use_params(training["optimizer"].averages):
        yield nlp


def _forever(docs: Sequence[Doc]) -> Iterator[Example]:
    while True:
        for i in np.random.permutation(len(docs)):
            yield Example(unlinked(docs[i]), docs[i])


def rights(nlp: Language, docs: Sequence[Doc]) -> np.ndarray:
    """(m,) bool, whether each mention is linked to a gold entity."""
    linker = find_linker(nlp)
    linked = nlp.pipe([unlinked(doc) for doc in docs])
    return np.array(
        [
            span.kb_id_ in gold_ids(gold)
            for doc, one in zip(docs, linked)
            for gold, span in zip(linker.reader.all_mentions(doc), linker.reader.all_mentions(one))
        ],
        dtype=bool,
    )


def are_described(linker: ArboLinker, docs: Sequence[Doc]) -> np.ndarray:
    """(m,) bool, whether a gold entity of each mention has a description."""
    entities = (
        (linker.kb.get(i) for i in gold_ids(s)) for d in docs for s in linker.reader.all_mentions(d)
    )
    return np.array([any(e and e.description for e in one) for one in entities], dtype=bool)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("config", type=Path)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("kb", type=Path)
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=60)
    options, rest = parser.parse_known_args()
    overrides = parse_config_overrides(rest, env_var=None)
    paths = {"train": options.corpus, "dev": options.corpus, "kb": options.kb}
    overrides.update({f"paths.{name}": str(path) for name, path in paths.items()})
    config = load_config(options.config, overrides=overrides, interpolate=True)
    docs = list(read_docs(options.corpus, spacy.blank(config["nlp"]["lang"]).vocab))
    parts = split(docs, options.folds)
    untrained = initialized(config, docs, options.kb)
    described = [are_described(find_linker(untrained), part) for part in parts]
    before = [rights(untrained, part) for part in parts]
    after = []
    for number, part in enumerate(parts):
        with trained(config, others_of(part, parts), options.kb, options.steps) as model:
            after.append(rights(model, part))
        print(f"fold {number + 1}: {before[number].mean():.4f}, {after[-1].mean():.4f}", flush=True)
    chosen = np.concatenate(described)
    print(f"\n| | all {len(chosen)} mentions | {chosen.sum()} with a description | others |")
    print("|---|---|---|---|")
    for name, right in (("untrained", before), ("trained", after)):
        one = np.concatenate(right)
        print(
            f"| {name} | {one.mean():.4f} | {one[chosen].mean():.4f} | {one[~chosen].mean():.4f} |"
        )


if __name__ == "__main__":
    main()
