"""Linking with nothing but a list of entities, against a table of names and TF-IDF.

    python benchmarks/zero_shot.py CORPUS.spacy=KB … [--concepts concept_map.json]

For each pair, the linker is made by two lines, ``add_pipe`` and ``set_kb``, with the default
config, and is not trained. It links the annotated mentions of the corpus. All methods get the same
mentions and the same knowledge base. KB is a folder, or an ontology in OBO format.

- "in KB": the share of the mentions whose entity is in the knowledge base. The methods are scored
  on these mentions alone, by their first candidate.
- "alias table": the entity that has the mention's string as a name, ignoring case.
- "TF-IDF": the entity with the most similar name, by character unigrams and bigrams.
- "vectors alone": the entity with the nearest text.
- "default": the first candidate of the default config.
- "with NIL": mentions whose entity is not in the KB should be NIL, at the default threshold.
- "ECE": how far the default config's probabilities are from how often its first candidate is right
  (expected calibration error, ten bins of equal width), on mentions whose entity is in the KB.
- "ECE, all": the same on all mentions. Where many entities are missing, it is larger.

An entity is right if its id is annotated, or if ``meta["ids"]`` or the cross-references of an
ontology (to MeSH and OMIM) have the annotated id, or an id of the same concept (--concepts).
"""

import argparse
from collections import defaultdict
from pathlib import Path
from typing import Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple

import numpy as np
import spacy
from spacy.tokens import Doc, Span

from spacy_arbo_el.corpora.concepts import read_concept_map
from spacy_arbo_el.corpora.reader import read_docs, unlinked
from spacy_arbo_el.evaluation.baselines import NameTfidf
from spacy_arbo_el.evaluation.reliability import reliability
from spacy_arbo_el.evaluation.report import with_inference
from spacy_arbo_el.inference.independent import Independent
from spacy_arbo_el.kb.entity import Entity
from spacy_arbo_el.kb.importers.obo import read_obo
from spacy_arbo_el.linker import ArboLinker
from spacy_arbo_el.linking.stages import LinkingStages
from spacy_arbo_el.mentions.records import gold_ids

# Cross-references whose ids are those of the corpora.
PREFIXES = ("MSH", "MESH", "OMIM")
METHODS = ("alias table", "TF-IDF", "vectors alone", "default")


class Mentions(NamedTuple):
    """The annotated mentions of a corpus.

    docs: The documents.
    spans: All mentions, in order.
    gold: The ids of the entities of the KB that are right for each mention.
    """

    docs: List[Doc]
    spans: List[Span]
    gold: List[Set[str]]

    @classmethod
    def read(cls, docs: List[Doc], equivalent: Mapping[str, Set[str]]) -> "Mentions":
        spans = [span for doc in docs for span in doc.ents if span.kb_id_]
        gold = [
            set().union(*(equivalent.get(kb_id, set()) for kb_id in gold_ids(span)))
            for span in spans
        ]
        return cls(docs, spans, gold)


def equivalent_ids(
    entities: Sequence[Entity], concepts: Mapping[str, str]
) -> Mapping[str, Set[str]]:
    """From the ids of corpora to those of the entities that are right for them."""
    equivalent: Dict[str, Set[str]] = defaultdict(set)
    for entity in entities:
        equivalent[entity.id].add(entity.id)
        for id_ in entity.meta.get("ids", ()):
            equivalent[id_].add(entity.id)
        for xref in entity.meta.get("xrefs", ()):
            prefix, _, id_ = xref.partition(":")
            if prefix in PREFIXES:
                equivalent[concepts.get(id_, id_)].add(entity.id)
    return equivalent


def by_names(mentions: Mentions, entities: Sequence[Entity]) -> List[str]:
    """The first entity with the mention's string as a name; "" for none."""
    owner: Dict[str, str] = {}
    for entity in entities:
        for name in entity.names:
            owner.setdefault(name.lower(), entity.id)
    return [owner.get(span.text.lower(), "") for span in mentions.spans]


def by_tfidf(mentions: Mentions, entities: Sequence[Entity]) -> List[str]:
    """The entity with the most similar name, by character unigrams and bigrams."""
    found = NameTfidf.build(list(enumerate(entities)))([span.text for span in mentions.spans])
    return [entities[i].id if i >= 0 else "" for i in found.ids[:, 0].tolist()]


def by_linker(
    linker: ArboLinker, mentions: Mentions, stages: Optional[LinkingStages] = None
) -> List[Tuple[str, float]]:
    """(id, probability) of each mention's link; the id "NIL" for none."""
    links: List[Tuple[str, float]] = []
    for start in range(0, len(mentions.docs), 64):
        batch = mentions.docs[start : start + 64]
        for doc, of_doc in zip(batch, linker.link_docs([unlinked(doc) for doc in batch], stages)):
            for span in doc.ents:
                if span.kb_id_:
                    link = of_doc[(span.start_char, span.end_char)]
                    links.append((link.kb_id, link.score))
    return links


def measure(linker: ArboLinker, mentions: Mentions) -> Dict[str, str]:
    """The row of one corpus and one knowledge base."""
    entities = list(linker.kb)
    nearest = with_inference(linker.stages, Independent(n_exemplars=0))
    with linker.cached_encoder():
        decided = by_linker(linker, mentions)
        threshold, linker.threshold = linker.threshold, 0.0
        first = by_linker(linker, mentions)
        alone = by_linker(linker, mentions, nearest)
        linker.threshold = threshold
    predicted = {
        "alias table": by_names(mentions, entities),
        "TF-IDF": by_tfidf(mentions, entities),
        "vectors alone": [kb_id for kb_id, _ in alone],
        "default": [kb_id for kb_id, _ in first],
    }
    in_kb = np.array([bool(gold) for gold in mentions.gold])
    right = {
        name: np.array([kb_id in gold for kb_id, gold in zip(ids, mentions.gold)])
        for name, ids in predicted.items()
    }
    as_decided = [
        kb_id in gold if gold else kb_id == "NIL"
        for (kb_id, _), gold in zip(decided, mentions.gold)
    ]
    scores = np.array([score for _, score in first])
    errors = {
        "ECE": reliability(scores[in_kb], right["default"][in_kb]).error,
        "ECE, all": reliability(scores, right["default"]).error,
    }
    row = {"mentions": str(len(in_kb)), "in KB": f"{in_kb.mean():.3f}"}
    row.update((name, f"{right[name][in_kb].mean():.3f}") for name in METHODS)
    row["with NIL"] = f"{np.mean(as_decided):.3f}"
    return {**row, **{name: f"{error:.3f}" for name, error in errors.items()}}


def rows(pairs: Sequence[str], concepts: Mapping[str, str]) -> Iterator[Dict[str, str]]:
    """A row for each CORPUS=KB. Pairs of the same KB should follow each other."""
    previous, linker = "", None
    for pair in pairs:
        corpus, kb = pair.split("=")
        if kb != previous or linker is None:
            nlp = spacy.blank("en")
            linker = nlp.add_pipe("arbo_linker")
            linker.set_kb(kb if Path(kb).is_dir() else list(read_obo(kb)), reencode=True)
            previous = kb
        docs = list(read_docs(Path(corpus), linker.vocab))
        mentions = Mentions.read(docs, equivalent_ids(list(linker.kb), concepts))
        yield {"corpus": Path(corpus).stem, "KB": Path(kb).name, **measure(linker, mentions)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pairs", nargs="+", metavar="CORPUS.spacy=KB")
    parser.add_argument("--concepts", type=Path, help="concept_map.json")
    args = parser.parse_args()
    concepts = read_concept_map(args.concepts) if args.concepts else {}
    for number, row in enumerate(rows(args.pairs, concepts)):
        if not number:
            print(f"| {' | '.join(row)} |\n|{'---|' * len(row)}")
        print(f"| {' | '.join(row.values())} |", flush=True)


if __name__ == "__main__":
    main()
