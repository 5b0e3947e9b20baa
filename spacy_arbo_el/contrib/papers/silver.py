"""Silver mentions: dictionary names in raw text, replacing annotation.

BioCoM (§3.1) makes its training data so: sentences that have a name of the dictionary, of each name
some. A silver mention can be wrong where a name means something else, which is why the number of
mentions of a name is limited.
"""

import tempfile
from array import array
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, groupby
from pathlib import Path
from typing import NamedTuple

import numpy as np
from spacy.tokens import Doc, Span

from ...base.errors import ArboError
from ...corpora.docbin import read_docs, write_parts
from ...corpora.docs import copied
from ...corpora.names import Dictionary, Hit
from .errors import PaperMessages

# What each number of what was left out counts.
REASONS = {
    "excluded": "documents by their ids",
    "without": "documents without a mention",
    "unusable": "names that are a single character, a number or a stop word",
    "ambiguous": "mentions of names that several entities have",
    "hidden": "mentions of hidden names",
    "surplus": "mentions of names that have enough",
}
# The most mentions of one name.
PER_NAME = 20
# How many of the most frequent names a report lists.
FREQUENT = 10


class SilverReport(NamedTuple):
    """Counts of written and skipped mentions.

    counts: The numbers of documents ("docs") and mentions written, of entities and names with a
        mention, and of what was left out by the keys of ``REASONS``.
    frequent: The most frequent names, with the number of their mentions. A common word among them
        is a reason to take it out of the dictionary.
    """

    counts: dict[str, int]
    frequent: list[tuple[str, int]]

    @property
    def left_out(self) -> dict[str, int]:
        """Counts of skipped documents and mentions, by kind."""
        return {text: self.counts[reason] for reason, text in REASONS.items()}


def write_chosen(
    scan: "Scan", output: Path, per_name: int = PER_NAME, seed: int = 0
) -> SilverReport:
    """Choose among the found mentions and write their documents.

    output: A ``.spacy`` file, or a folder of them for corpora that don't fit into memory.
    per_name: The most mentions of one name, chosen at random; 0 for all.
    seed: Determines which mentions of a frequent name are kept.
    """
    chosen = choose(scan.names, per_name, seed)
    scan.write(output, chosen)
    return scan.report(chosen)


@contextmanager
def scanned(
    docs: Iterable[Doc],
    dictionary: Dictionary,
    exclude: Container[str] = (),
    hidden: Container[int] = (),
) -> Iterator["Scan"]:
    """Scan documents for names, within a context.

    Nothing but the tokens of the documents and their ids is used: annotations cannot be reached.
    The documents are read once. What they contain waits in a temporary folder.

    Raises ValueError if there is no mention, or no name that can be one.

    docs: The documents.
    exclude: The ids of documents to leave out, such as those of a test set.
    hidden: The numbers of names that are found, but are no mentions, see ``hidden.py``.
    """
    found = Found()
    with tempfile.TemporaryDirectory() as folder:
        kept = with_names(docs, dictionary, exclude, hidden, found)
        write_parts(kept, Path(folder) / "found")
        yield Scan(dictionary, found, Path(folder))


class Scan:
    """The mentions of a scan, stored in a folder.

    Raises ValueError where there is no mention.

    dictionary: The names.
    found: The mentions.
    folder: Where the documents are.
    """

    def __init__(self, dictionary: Dictionary, found: "Found", folder: Path) -> None:
        if not found.names:
            docs = f"{found.n_read:,}"
            names = f"{len(dictionary.names):,}"
            raise ArboError(PaperMessages.E841.format(docs=docs, names=names))
        self.dictionary = dictionary
        self.found = found
        self.folder = folder
        # (n,) int64, the number of the name of each mention.
        self.names = np.array(found.names, dtype=np.int64)

    def write(self, output: Path, chosen: np.ndarray, more: Iterable[Doc] = ()) -> None:
        """Write the documents that have some of the chosen mentions.

        chosen: (n,) bool, which mentions are chosen.
        more: Documents to write after them.
        """
        waiting = read_docs(self.folder, self.dictionary.vocab)
        docs = _chosen(waiting, self.dictionary, self.found, chosen)
        write_parts(chain(docs, more), output)

    def report(self, chosen: np.ndarray) -> SilverReport:
        """The report on these mentions."""
        names = self.dictionary.names
        of_docs = np.array(self.found.docs, dtype=np.int64)
        kept = np.unique(self.names[chosen]).tolist()
        counts = {
            **dict.fromkeys(REASONS, 0),
            "docs": len(np.unique(of_docs[chosen])),
            "mentions": int(chosen.sum()),
            "entities": len({names[name].kb_id for name in kept}),
            "names": len(kept),
            "unusable": self.dictionary.unusable,
            "surplus": int((~chosen).sum()),
            **self.found.left_out,
        }
        most = Counter(self.found.names).most_common(FREQUENT)
        return SilverReport(counts, [(names[name].text, count) for name, count in most])


class Found:
    """The mentions in the documents that have some, in order.

    docs: The number of the document of each mention, among those that have some.
    starts: Its first token.
    ends: The token after its last one.
    names: The number of its name.
    left_out: How many documents and mentions were left out, by reason.
    n_read: How many documents were read.
    n_docs: How many documents have mentions.
    """

    def __init__(self) -> None:
        self.docs, self.starts, self.ends, self.names = (array("q") for _ in range(4))
        self.left_out: Counter = Counter()
        self.n_read = 0
        self.n_docs = 0

    def add(self, hits: Sequence[Hit]) -> None:
        """Add the mentions of the next document."""
        self.docs.extend([self.n_docs] * len(hits))
        for values, of_hits in zip((self.starts, self.ends, self.names), zip(*hits)):
            values.extend(of_hits)
        self.n_docs += 1


def choose(names: np.ndarray, per_name: int, seed: int) -> np.ndarray:
    """Draw some mentions of each name.

    names: (n,) int64, the number of the name of each mention.
    per_name: 0 for all.
    RETURNS: (n,) bool.
    """
    if not per_name:
        return np.ones(len(names), dtype=bool)
    shuffled = np.random.default_rng(seed).permutation(len(names))
    order = shuffled[np.argsort(names[shuffled], kind="stable")]
    # The rank of each mention among those of its name.
    first = np.searchsorted(names[order], names[order])
    chosen = np.zeros(len(names), dtype=bool)
    chosen[order[np.arange(len(names)) - first < per_name]] = True
    return chosen


def with_names(
    docs: Iterable[Doc],
    dictionary: Dictionary,
    exclude: Container[str],
    hidden: Container[int],
    found: Found,
) -> Iterator[Doc]:
    """Copy the documents that have mentions, adding to ``found``.

    The other parameters are those of ``scanned``. ValueError where there are no names.
    """
    if not dictionary.names:
        raise ArboError(PaperMessages.E840.format(count=dictionary.unusable))
    for doc in docs:
        found.n_read += 1
        if str(doc.user_data.get("doc_id", "")) in exclude:
            found.left_out["excluded"] += 1
            continue
        hits = dictionary.hits(doc)
        clear = [hit for hit in hits if dictionary.names[hit.name].kb_id is not None]
        kept = [hit for hit in clear if hit.name not in hidden]
        found.left_out["ambiguous"] += len(hits) - len(clear)
        found.left_out["hidden"] += len(clear) - len(kept)
        if kept:
            found.add(kept)
            yield copied(doc, None)
        else:
            found.left_out["without"] += 1


def _chosen(
    docs: Iterable[Doc], dictionary: Dictionary, found: Found, chosen: np.ndarray
) -> Iterator[Doc]:
    rows = iter(np.nonzero(chosen)[0].tolist())
    by_doc = groupby(rows, lambda row: found.docs[row])
    number, of_doc = next(by_doc, (-1, iter(())))
    for position, doc in enumerate(docs):
        if position != number:
            continue
        names = [(row, dictionary.names[found.names[row]]) for row in of_doc]
        doc.ents = [
            Span(doc, found.starts[row], found.ends[row], label=name.label, kb_id=name.kb_id or "")
            for row, name in names
        ]
        yield doc
        number, of_doc = next(by_doc, (-1, iter(())))
