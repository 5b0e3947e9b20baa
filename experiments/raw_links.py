"""Links of raw text: mentions by exact names, by near names, and by SimString windows.

    python raw_links.py CORPUS.spacy:KB [CORPUS.spacy:KB ...] [--documents N] [--output FILE.jsonl]
    python raw_links.py --foreign CORPUS.spacy:KB [...]

The default linker links the mentions that each way finds in the bare texts of a corpus. Spans and
links are compared with the gold ones: strict, with the same characters, and overlapping, with one
in common. SimString windows are found as QuickUMLS does (Soldaini and Goharian 2016): windows of up
to five tokens whose character 3-grams are similar to those of a name (Jaccard), the most similar
first, without overlaps; ``pip install simstring-fast``. They are linked by the same linker, and by
the name itself. Seconds are of the processor; windows are found once for all thresholds.

``--foreign`` are texts that are not about the entities of the list. Links are counted for each
thousand words, and the most frequent strings are printed: no gold says which are right.
"""

import argparse
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import spacy
import srsly
from spacy.language import Language
from spacy.tokens import Doc, Span
from spacy.util import filter_spans

from spacy_arbo_el.corpora.docbin import read_docs
from spacy_arbo_el.find.finders import ArboNames
from spacy_arbo_el.linker import ArboLinker
from spacy_arbo_el.mentions.record import gold_ids

# Those of QuickUMLS: similarity from which a window is a match, tokens of a window, characters.
LEAST, MOST_TOKENS, MIN_CHARACTERS = 0.7, 5, 3
THRESHOLDS = (0.7, 0.8, 0.9)
SHOWN = 30

# From a document to its mentions, each with the entity of the name that it is like, or "".
Finds = Callable[[Doc], list[tuple[Span, str]]]


@dataclass(frozen=True)
class Matches:
    """Windows of a text that are similar to a name.

    similarity: Of each span to the name. entity: That of the name.
    """

    similarity: dict[tuple[int, int], float]
    entity: dict[tuple[int, int], str]


@dataclass
class SimString:
    """Finds windows that are similar to a name of a list."""

    linker: ArboLinker
    stop_words: set[str]
    _nearest: dict[str, tuple[float, str]] = field(default_factory=dict)
    _matches: dict[str, Matches] = field(default_factory=dict)

    def __post_init__(self) -> None:
        from simstring.database.dict import DictDatabase
        from simstring.feature_extractor.character_ngram import (
            CharacterNgramFeatureExtractor,
        )
        from simstring.measure.jaccard import JaccardMeasure
        from simstring.searcher import Searcher

        database = DictDatabase(CharacterNgramFeatureExtractor(3))
        self.owners: dict[str, str] = {}
        for entity in self.linker.kb:
            for name in entity.names:
                self.owners.setdefault(name.lower(), entity.id)
        for name in self.owners:
            if len(name) >= MIN_CHARACTERS:
                database.add(name)
        self.searcher = Searcher(database, JaccardMeasure())

    def matches(self, doc: Doc) -> Matches:
        """All windows of a document that are similar to a name."""
        found = self._matches.get(doc.text)
        if found is not None:
            return found
        similarity: dict[tuple[int, int], float] = {}
        entity: dict[tuple[int, int], str] = {}
        for start in range(len(doc)):
            for end in range(start + 1, min(start + MOST_TOKENS, len(doc)) + 1):
                if not self._may_be(doc[start], doc[end - 1]):
                    continue
                text = doc[start:end].text.lower()
                if len(text) < MIN_CHARACTERS or "\n" in text:
                    continue
                score, name = self._search(text)
                if score >= LEAST:
                    similarity[start, end] = score
                    entity[start, end] = self.owners[name]
        self._matches[doc.text] = Matches(similarity, entity)
        return self._matches[doc.text]

    def _may_be(self, first: spacy.tokens.Token, last: spacy.tokens.Token) -> bool:
        edges = (first, last)
        return not any(
            t.is_punct or t.is_space or t.lower_ in self.stop_words for t in edges
        )

    def _search(self, text: str) -> tuple[float, str]:
        """The most similar name, of equal ones the first in the alphabet."""
        found = self._nearest.get(text)
        if found is None:
            ranked = self.searcher.ranked_search(text, LEAST)
            pairs = [(-score, name) for name, score in ranked.items()]
            best = min(pairs, default=(0.0, ""))
            found = self._nearest[text] = (-best[0], best[1])
        return found

    def find(self, doc: Doc, threshold: float) -> list[tuple[Span, str]]:
        """The mentions with a similarity of at least the threshold."""
        matches = self.matches(doc)
        chosen = [
            place for place, score in matches.similarity.items() if score >= threshold
        ]
        chosen.sort(
            key=lambda place: (-matches.similarity[place], place[0] - place[1], place)
        )
        taken = [False] * len(doc)
        mentions = []
        for start, end in chosen:
            if not any(taken[start:end]):
                taken[start:end] = [True] * (end - start)
                mentions.append(
                    (Span(doc, start, end, label="NAME"), matches.entity[start, end])
                )
        return mentions


@dataclass
class Counts:
    """Mentions and links of texts beside the gold ones.

    found, linked: Of the texts. gold: Of the corpus. Others are how many of these are right:
    ``strict``, with the same characters, and ``near``, with one in common; ``covered`` and
    ``answered`` are the gold ones that have a near one.
    """

    gold: int = 0
    found: int = 0
    linked: int = 0
    strict: int = 0
    near: int = 0
    covered: int = 0
    right: int = 0
    near_right: int = 0
    answered: int = 0

    def add(
        self, gold: dict[tuple[int, int], set[str]], found: dict[tuple[int, int], str]
    ) -> None:
        """Count a document: places in characters with the ids of their entities."""
        linked = {place: id_ for place, id_ in found.items() if id_ not in ("", "NIL")}
        self.gold += len(gold)
        self.found += len(found)
        self.linked += len(linked)
        self.strict += len(set(gold) & set(found))
        self.near += sum(any(map(partial(_overlap, place), gold)) for place in found)
        self.covered += sum(
            any(map(partial(_overlap, place), found)) for place in gold
        )
        self.right += sum(id_ in gold.get(place, ()) for place, id_ in linked.items())
        self.near_right += sum(
            any(_overlap(place, one) and id_ in ids for one, ids in gold.items())
            for place, id_ in linked.items()
        )
        self.answered += sum(
            any(_overlap(place, one) and id_ in ids for one, id_ in linked.items())
            for place, ids in gold.items()
        )

    def rates(self) -> dict[str, float]:
        """Precision, recall and F1 in percent."""
        pairs = {
            "spans": (self.strict / max(1, self.found), self.strict / self.gold),
            "spans, overlapping": (
                self.near / max(1, self.found),
                self.covered / self.gold,
            ),
            "links": (self.right / max(1, self.linked), self.right / self.gold),
            "links, overlapping": (
                self.near_right / max(1, self.linked),
                self.answered / self.gold,
            ),
        }
        rates = {}
        for name, (precision, recall) in pairs.items():
            f1 = 2 * precision * recall / max(precision + recall, 1e-9)
            for kind, value in (("P", precision), ("R", recall), ("F1", f1)):
                rates[f"{name} {kind}"] = round(100 * value, 1)
        return rates


def _overlap(one: tuple[int, int], other: tuple[int, int]) -> bool:
    return one[0] < other[1] and other[0] < one[1]


def pipeline(kb: Path) -> tuple[Language, ArboLinker]:
    """The default linker over a knowledge base, its names encoded."""
    nlp = spacy.blank("en")
    linker = nlp.add_pipe("arbo_linker")
    linker.set_kb(kb)
    linker.refresh()
    return nlp, linker


def ways(nlp: Language, linker: ArboLinker) -> dict[str, Finds]:
    """The ways to find mentions, by name."""
    finds: dict[str, Finds] = {}
    for forms in ("exact", "near"):
        names = ArboNames(nlp.Defaults.stop_words, lambda *_: linker, forms=forms)
        finds[forms] = partial(_by_component, names)
    by_windows = SimString(linker, nlp.Defaults.stop_words)
    for threshold in THRESHOLDS:
        finds[f"SimString, {threshold}"] = partial(
            by_windows.find, threshold=threshold
        )
    return finds


def _by_component(names: ArboNames, doc: Doc) -> list[tuple[Span, str]]:
    return [(span, "") for span in names(doc).ents]


def measure(
    nlp: Language, linker: ArboLinker, finds: Finds, golds: Sequence[Doc]
) -> tuple[dict[str, float], dict[str, float]]:
    """Link the texts of documents with one way. RETURNS: Rates and seconds; those of the names."""
    counts, named = Counts(), Counts()
    finding = linking = 0.0
    # Indexes are built, and functions compiled, before the clock starts.
    finds(nlp.make_doc(golds[0].text))
    for reference in golds:
        doc = nlp.make_doc(reference.text)
        start = time.process_time()
        found = finds(doc)
        doc.ents = filter_spans([span for span, _ in found])
        finding += time.process_time() - start
        start = time.process_time()
        linker(doc)
        linking += time.process_time() - start
        gold = {
            (e.start_char, e.end_char): set(gold_ids(e))
            for e in reference.ents
            if e.kb_id_
        }
        counts.add(gold, {(e.start_char, e.end_char): e.kb_id_ for e in doc.ents})
        named.add(gold, {(span.start_char, span.end_char): id_ for span, id_ in found})
    seconds = {"finding, s": round(finding, 2), "linking, s": round(linking, 2)}
    return {
        "found": counts.found,
        "gold": counts.gold,
        **counts.rates(),
        **seconds,
    }, named.rates()


def compare(corpus: Path, kb: Path, count: int | None) -> Iterable[dict[str, object]]:
    """Yield a row for each way."""
    nlp, linker = pipeline(kb)
    golds = list(read_docs(corpus, nlp.vocab))[:count]
    about = {"corpus": corpus.stem, "kb": kb.name, "documents": len(golds)}
    for name, finds in ways(nlp, linker).items():
        linked, named = measure(nlp, linker, finds, golds)
        yield {**about, "way": name, **linked}
        if name.startswith("SimString"):
            yield {
                **about,
                "way": f"{name}, the name's entity",
                "found": linked["found"],
                **named,
            }


def count_links(
    corpus: Path, kb: Path, count: int | None
) -> Iterable[dict[str, object]]:
    """Yield how many mentions are found and linked in texts of another kind."""
    nlp, linker = pipeline(kb)
    texts = [doc.text for doc in read_docs(corpus, nlp.vocab)][:count]
    for name, finds in ways(nlp, linker).items():
        strings: Counter[str] = Counter()
        found = words = 0
        for text in texts:
            doc = nlp.make_doc(text)
            words += sum(token.is_alpha for token in doc)
            doc.ents = filter_spans([span for span, _ in finds(doc)])
            found += len(doc.ents)
            strings.update(
                e.text for e in linker(doc).ents if e.kb_id_ not in ("", "NIL")
            )
        thousands = words / 1000
        yield {
            "corpus": corpus.stem,
            "kb": kb.name,
            "way": name,
            "words": words,
            "found": found,
            "links": strings.total(),
            "found, of 1,000 words": round(found / thousands, 2),
            "links, of 1,000 words": round(strings.total() / thousands, 2),
            "most frequent": dict(strings.most_common(SHOWN)),
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pairs", nargs="+", help="CORPUS.spacy:KB")
    parser.add_argument(
        "--documents", type=int, help="Only the first so many of each corpus"
    )
    parser.add_argument(
        "--foreign", action="store_true", help="The corpora have no gold links"
    )
    parser.add_argument("--output", type=Path, help="JSONL file of the rows")
    args = parser.parse_args()
    rows = []
    for pair in args.pairs:
        corpus, kb = pair.split(":")
        make_rows = count_links if args.foreign else compare
        for row in make_rows(Path(corpus), Path(kb), args.documents):
            print(row, flush=True)
            rows.append(row)
            if args.output:
                srsly.write_jsonl(args.output, rows)


if __name__ == "__main__":
    main()
