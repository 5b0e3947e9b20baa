"""Adding an entity without retraining: by exemplars, by its title, by a description.

    python benchmarks/added.py MODEL CORPUS.spacy ... --exclude TRAIN.spacy [--obo HumanDO.obo]

Entities that the encoder never saw (none of the mentions in --exclude are theirs) are taken out of
the knowledge base and added again, all at the same time: with 1, 3 or 10 exemplars and neither
title nor description, with the title alone, with all names, with title and description (from an
ontology whose xrefs name the entity), and with names and exemplars. Exemplars and the mentions that
are scored are of different documents. Accuracy is the mean over entities of the share of their
mentions that are linked to them, each document linked by itself; what the additions cost mentions
of other entities stands beside it.
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
from spacy_arbo_el.evaluation.report import encoding_once, find_linker
from spacy_arbo_el.kb.entity import Entity
from spacy_arbo_el.kb.importers.obo import read_obo
from spacy_arbo_el.mentions import find_mentions, gold_ids

COUNTS = (1, 3, 10)


class Chosen(NamedTuple):
    """exemplars: The spans to store, the first ones first. documents: Those that are scored."""

    exemplars: List[Span]
    documents: List[int]


def choose(linker, docs: List[Doc], known: set, count: int, seed: int) -> Dict[str, Chosen]:
    """Entities with enough mentions, at random."""
    spans: Dict[str, Dict[int, List[Span]]] = defaultdict(lambda: defaultdict(list))
    for number, doc in enumerate(docs):
        for span in find_mentions(doc, linker.span_getter):
            ids = gold_ids(span)
            if len(ids) == 1:
                spans[ids[0]][number].append(span)
    rng = np.random.default_rng(seed)
    found = {}
    for kb_id in rng.permutation(sorted(spans)).tolist():
        if kb_id in known or kb_id not in linker.kb:
            continue
        order = rng.permutation(sorted(spans[kb_id])).tolist()
        first: List[List[Span]] = []
        while order and sum(map(len, first)) < max(COUNTS):
            first.append(spans[kb_id][order.pop()])
        if not order or sum(map(len, first)) < max(COUNTS):
            continue
        # One of each document before the second of any.
        turns = range(max(map(len, first)))
        exemplars = [group[turn] for turn in turns for group in first if turn < len(group)]
        found[kb_id] = Chosen(exemplars, sorted(order))
        if len(found) == count:
            break
    return found


def accuracy(nlp, linker, docs: List[Doc], chosen: Dict[str, Chosen]):
    """For each entity the share of its mentions, in the documents scored, that link to it, and that
    of the mentions of all other entities of the knowledge base, in the same documents."""
    wanted = sorted({number for one in chosen.values() for number in one.documents})
    linked = dict(zip(wanted, nlp.pipe([unlinked(docs[number]) for number in wanted])))
    scores = {}
    for kb_id, one in chosen.items():
        right = []
        for number in one.documents:
            gold = find_mentions(docs[number], linker.span_getter)
            found = find_mentions(linked[number], linker.span_getter)
            pairs = zip(gold, found)
            right += [f.kb_id_ == kb_id for g, f in pairs if gold_ids(g) == (kb_id,)]
        scores[kb_id] = float(np.mean(right))
    others = []
    for number in wanted:
        gold = find_mentions(docs[number], linker.span_getter)
        found = find_mentions(linked[number], linker.span_getter)
        for span, predicted in zip(gold, found):
            ids = gold_ids(span)
            if not set(ids) & set(chosen) and any(kb_id in linker.kb for kb_id in ids):
                others.append(predicted.kb_id_ in ids)
    return scores, float(np.mean(others))


def definitions(path: Path) -> Dict[str, str]:
    """Definitions by the ids that terms refer to."""
    found = {}
    for entity in read_obo(path):
        for xref in entity.meta.get("xrefs", []):
            kind, _, name = xref.partition(":")
            if entity.description and kind in ("MESH", "MSH", "OMIM"):
                found.setdefault(name, entity.description)
                found.setdefault(f"OMIM:{name}", entity.description)
    return found


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


def reading_descriptions(model: Path) -> Dict:
    """What to change in a pipeline's config so that entities' descriptions are read."""
    components = spacy.util.load_config(model / "config.cfg")["components"]
    names = [
        name
        for name, config in components.items()
        if config.get("verbalization", {}).get("@misc") == "spacy-arbo-el.Names.v1"
    ]
    return {"components": {name: {"verbalization": {"description": True}} for name in names}}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("corpora", type=Path, nargs="+")
    parser.add_argument("--exclude", type=Path, nargs="+", required=True)
    parser.add_argument("--obo", type=Path)
    parser.add_argument("--entities", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    nlp = spacy.load(options.model, config=reading_descriptions(options.model))
    linker = find_linker(nlp)
    docs = [doc for path in options.corpora for doc in read_docs(path, nlp.vocab)]
    excluded = (doc for path in options.exclude for doc in read_docs(path, nlp.vocab))
    known = {i for doc in excluded for s in linker.span_getter(doc) for i in gold_ids(s)}
    chosen = choose(linker, docs, known, options.entities, options.seed)
    entities = {kb_id: linker.kb.get(kb_id) for kb_id in chosen}
    told = definitions(options.obo) if options.obo else {}
    described = {
        kb_id: next((told[i] for i in (kb_id, *e.meta.get("ids", ())) if i in told), "")
        for kb_id, e in entities.items()
    }
    with_text = [kb_id for kb_id, text in described.items() if text]
    mentions = sum(
        gold_ids(s) == (kb_id,)
        for kb_id, one in chosen.items()
        for number in one.documents
        for s in find_mentions(docs[number], linker.span_getter)
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
    with encoding_once(linker):
        for name, added, count in conditions:
            linker.kb.add(list(added.values()))
            spans = store(linker, chosen, count)
            scores, others = accuracy(nlp, linker, docs, chosen)
            whole, part = (np.mean([scores[i] for i in ids]) for ids in (chosen, with_text))
            print(f"| {name} | {whole:.3f} | {part:.3f} | {others:.3f} |", flush=True)
            linker.remove_exemplars(spans)
            linker.kb.remove(list(chosen))


if __name__ == "__main__":
    main()
