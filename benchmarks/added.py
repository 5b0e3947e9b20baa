"""Adding an entity without retraining: by exemplars, by its title, by a description.

    python benchmarks/added.py MODEL CORPUS.spacy ... --exclude TRAIN.spacy
        [--obo HumanDO.obo] [--own-text]

Entities that the encoder never saw, those without a mention in --exclude, are removed from the
knowledge base. Then all are added again, in one of these ways:

- with 1, 3 or 10 exemplars, without title and description
- with the title alone
- with title and description, the description from an ontology whose xrefs contain the entity's id;
  it follows the title, or with --own-text it is a text of its own
- with all names
- with the title or all names, and exemplars

The exemplars and the scored mentions are from different documents. "accuracy" is the mean over the
entities of the share of their mentions that are linked to them. "other entities" is the accuracy on
the mentions of other entities in the same documents.
"""

import argparse
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Dict, List, NamedTuple

import numpy as np
import spacy
from spacy.tokens import Doc, Span

from spacy_arbo_el.corpora.reader import read_docs, unlinked
from spacy_arbo_el.kb.entity import Entity
from spacy_arbo_el.kb.importers.obo import read_obo
from spacy_arbo_el.linker import find_linker
from spacy_arbo_el.mentions.records import gold_ids

COUNTS = (1, 3, 10)
NAMES = "spacy-arbo-el.Names.v1"


class Chosen(NamedTuple):
    """The mentions of an entity that are used.

    exemplars: The spans to store, in this order.
    documents: The numbers of the documents to score.
    """

    exemplars: List[Span]
    documents: List[int]


def choose(linker, docs: List[Doc], seen: set, count: int, seed: int) -> Dict[str, Chosen]:
    """Choose entities with enough mentions at random, without those seen in training."""
    spans: Dict[str, Dict[int, List[Span]]] = defaultdict(lambda: defaultdict(list))
    for number, doc in enumerate(docs):
        for span in linker.reader.all_mentions(doc):
            ids = gold_ids(span)
            if len(ids) == 1:
                spans[ids[0]][number].append(span)
    rng = np.random.default_rng(seed)
    chosen: Dict[str, Chosen] = {}
    for kb_id in rng.permutation(sorted(spans)).tolist():
        if kb_id in seen or kb_id not in linker.kb:
            continue
        order = rng.permutation(sorted(spans[kb_id])).tolist()
        first: List[List[Span]] = []
        while order and sum(map(len, first)) < max(COUNTS):
            first.append(spans[kb_id][order.pop()])
        if not order or sum(map(len, first)) < max(COUNTS):
            continue
        # One mention of each document, then a second one of each, and so on.
        turns = range(max(map(len, first)))
        exemplars = [group[turn] for turn in turns for group in first if turn < len(group)]
        chosen[kb_id] = Chosen(exemplars, sorted(order))
        if len(chosen) == count:
            break
    return chosen


def accuracy(nlp, linker, docs: List[Doc], chosen: Dict[str, Chosen]):
    """The accuracy on the mentions of each chosen entity, and on those of all other entities."""
    numbers = sorted({number for one in chosen.values() for number in one.documents})
    linked = nlp.pipe([unlinked(docs[number]) for number in numbers])
    pairs = {
        number: list(zip(linker.reader.all_mentions(docs[number]), linker.reader.all_mentions(doc)))
        for number, doc in zip(numbers, linked)
    }
    scores = {}
    for kb_id, one in chosen.items():
        mentions = (pair for number in one.documents for pair in pairs[number])
        correct = [p.kb_id_ == kb_id for gold, p in mentions if gold_ids(gold) == (kb_id,)]
        scores[kb_id] = float(np.mean(correct))
    others = []
    for number in numbers:
        for gold, predicted in pairs[number]:
            ids = gold_ids(gold)
            if not set(ids) & set(chosen) and any(kb_id in linker.kb for kb_id in ids):
                others.append(predicted.kb_id_ in ids)
    return scores, float(np.mean(others))


def definitions(path: Path) -> Dict[str, str]:
    """The definitions of an ontology's terms, by the ids in their xrefs."""
    texts: Dict[str, str] = {}
    for entity in read_obo(path):
        for xref in entity.meta.get("xrefs", []):
            kind, _, name = xref.partition(":")
            if entity.description and kind in ("MESH", "MSH", "OMIM"):
                texts.setdefault(name, entity.description)
                texts.setdefault(f"OMIM:{name}", entity.description)
    return texts


def store(linker, chosen: Dict[str, Chosen], count: int) -> List[Span]:
    """Store the first exemplars of each entity."""
    spans = [span for one in chosen.values() for span in one.exemplars[:count]]
    by_doc: Dict[int, List[Span]] = defaultdict(list)
    for span in spans:
        by_doc[id(span.doc)].append(span)
    copies = []
    for group in by_doc.values():
        copy = unlinked(group[0].doc, mentions=False)
        copy.set_ents([Span(copy, s.start, s.end, s.label, kb_id=s.kb_id) for s in group])
        copies.append(copy)
    linker.add_exemplars(copies)
    return spans


def reading_descriptions(model: Path, own_text: bool) -> Dict:
    """Changes of a pipeline's config so that the encoder reads descriptions of entities.

    own_text: Whether a description is a text of its own. Otherwise it follows each name.
    """
    components = spacy.util.load_config(model / "config.cfg")["components"]
    names = [
        name
        for name, config in components.items()
        if config.get("retriever", {}).get("verbalization", {}).get("@misc") == NAMES
    ]
    setting = "definition" if own_text else "description"
    change = {"retriever": {"verbalization": {setting: True}}}
    return {"components": dict.fromkeys(names, change)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("corpora", type=Path, nargs="+")
    parser.add_argument("--exclude", type=Path, nargs="+", required=True)
    parser.add_argument("--obo", type=Path)
    parser.add_argument("--own-text", action="store_true")
    parser.add_argument("--entities", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    nlp = spacy.load(options.model, config=reading_descriptions(options.model, options.own_text))
    linker = find_linker(nlp)
    docs = [doc for path in options.corpora for doc in read_docs(path, nlp.vocab)]
    excluded = (doc for path in options.exclude for doc in read_docs(path, nlp.vocab))
    seen = {i for doc in excluded for s in linker.mentions.getter(doc) for i in gold_ids(s)}
    chosen = choose(linker, docs, seen, options.entities, options.seed)
    entities = {kb_id: linker.kb.get(kb_id) for kb_id in chosen}
    texts_of = definitions(options.obo) if options.obo else {}
    described = {
        kb_id: next((texts_of[i] for i in (kb_id, *e.meta.get("ids", ())) if i in texts_of), "")
        for kb_id, e in entities.items()
    }
    with_text = [kb_id for kb_id, text in described.items() if text]
    mentions = sum(
        gold_ids(s) == (kb_id,)
        for kb_id, one in chosen.items()
        for number in one.documents
        for s in linker.reader.all_mentions(docs[number])
    )
    print(
        f"{len(chosen)} entities, {len(with_text)} of them with a description, {mentions} mentions"
    )
    linker.kb.remove(list(chosen))
    bare = {kb_id: Entity(kb_id, types=e.types) for kb_id, e in entities.items()}
    titles = {kb_id: Entity(kb_id, e.title, types=e.types) for kb_id, e in entities.items()}
    texts = {kb_id: replace(e, description=described[kb_id]) for kb_id, e in titles.items()}
    conditions = [(f"{n} exemplars", bare, n) for n in COUNTS]
    conditions += [
        ("title", titles, 0),
        ("title + description", texts, 0),
        ("all names", entities, 0),
    ]
    conditions += [(f"title + {n} exemplars", titles, n) for n in COUNTS]
    conditions += [(f"all names + {n} exemplars", entities, n) for n in COUNTS]
    print("| added with | accuracy | of those with a description | other entities |")
    print("|---|---|---|---|")
    with linker.cached_encoder():
        for name, added, count in conditions:
            linker.kb.add(list(added.values()))
            spans = store(linker, chosen, count)
            scores, others = accuracy(nlp, linker, docs, chosen)
            overall, part = (np.mean([scores[i] for i in ids]) for ids in (chosen, with_text))
            print(f"| {name} | {overall:.3f} | {part:.3f} | {others:.3f} |", flush=True)
            linker.remove_exemplars(spans)
            linker.kb.remove(list(chosen))


if __name__ == "__main__":
    main()
