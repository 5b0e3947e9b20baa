"""Silver mentions: dictionary names in raw text, replacing annotation.

BioCoM (§3.1) makes its training data so: sentences that have a name of the dictionary, of each name
some. A silver mention can be wrong where a name means something else, which is why the number of
mentions of a name is limited.
"""

import tempfile
from array import array
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np
from spacy.language import Language
from spacy.tokens import Doc, Span

from ...base.arrays import int_array
from ...corpora.annotated import AnnotatedText
from ...corpora.docbin import read_docs, write_parts
from ...corpora.docs import copied, to_doc
from ...corpora.read import files_of, read, read_source, relative_name
from ...find.dictionary import Dictionary, Name
from ...mentions.record import document_id
from ...records.source import Source
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


def read_plain_documents(
    path: Path,
    nlp: Language,
    format: str = "",
    keep: Callable[[str], bool] = lambda id_: True,
) -> Iterator[Doc]:
    """Yield documents of a file or folder with only text and id.

    Each line of a ``.txt`` file is a document, so that files of any size fit into memory.
    Documents without text are left out. Raises ValueError as ``read_documents`` does, and for an
    unknown format.

    nlp: Only its tokenizer and its vocabulary are used.
    format: The format of all files, a name in ``corpus_formats``; "" goes by their suffixes.
    keep: Whether a document is wanted, by its id.
    """
    for file in files_of(path, any_suffix=bool(format)):
        source = Source(file, name=relative_name(path, file))
        for text in (
            read(file, format) if format else read_source(source, by_line=True)
        ):
            if text.text.strip() and keep(text.id):
                doc = to_doc(nlp, AnnotatedText(text.id, text.text))
                doc.spans.clear()
                yield doc


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

    exclude: The ids of documents to leave out, such as those of a test set.
    hidden: The numbers of names that are found, but are no mentions, see ``hidden.py``.
    """
    with tempfile.TemporaryDirectory() as folder:
        scan = Scan(dictionary, Path(folder) / "found")
        write_parts(scan.read(docs, exclude, hidden), scan.folder)
        yield scan


class Scan:
    """The mentions of a scan. Their documents wait in a folder.

    left_out: How many documents and mentions were left out, by reason.
    """

    def __init__(self, dictionary: Dictionary, folder: Path) -> None:
        self.dictionary = dictionary
        self.folder = folder
        self.left_out: Counter = Counter()
        # Of each mention: the number of its document among those that have some, and of its name.
        self._docs = array("q")
        self._names = array("q")

    @property
    def names(self) -> np.ndarray:
        """(n,) int64, the number of the name of each mention."""
        return int_array(self._names)

    def read(
        self, docs: Iterable[Doc], exclude: Container[str], hidden: Container[int]
    ) -> Iterator[Doc]:
        """Copy the documents that have mentions, with these. See ``scanned``."""
        names = self.dictionary.names
        if not names:
            raise PaperMessages.E840(count=self.dictionary.unusable)
        n_read = 0
        n_docs = 0
        for doc in docs:
            n_read += 1
            if document_id(doc) in exclude:
                self.left_out["excluded"] += 1
                continue
            hits = self.dictionary.hits(doc)
            clear = [hit for hit in hits if names[hit.name].kb_id is not None]
            visible_hits = [hit for hit in clear if hit.name not in hidden]
            self.left_out["ambiguous"] += len(hits) - len(clear)
            self.left_out["hidden"] += len(clear) - len(visible_hits)
            if not visible_hits:
                self.left_out["without"] += 1
                continue
            self._docs.extend([n_docs] * len(visible_hits))
            self._names.extend(hit.name for hit in visible_hits)
            n_docs += 1
            copy = copied(doc, None)
            copy.ents = [
                name_span(copy, *hit[:2], names[hit.name]) for hit in visible_hits
            ]
            yield copy
        if not n_docs:
            details = {"docs": f"{n_read:,}", "names": f"{len(names):,}"}
            raise PaperMessages.E841(**details)

    def write(
        self, output: Path, chosen: np.ndarray, more: Iterable[Doc] = ()
    ) -> None:
        """Write the documents that have some of the chosen mentions.

        chosen: (n,) bool, which mentions are chosen.
        more: Documents to write after them.
        """
        docs = read_docs(self.folder, self.dictionary.vocab)
        write_parts(chain(_chosen(docs, iter(chosen.tolist())), more), output)

    def report(self, chosen: np.ndarray) -> SilverReport:
        """The report on these mentions."""
        names = self.dictionary.names
        of_docs = int_array(self._docs)
        chosen_names = np.unique(self.names[chosen]).tolist()
        counts = {
            **dict.fromkeys(REASONS, 0),
            "docs": len(np.unique(of_docs[chosen])),
            "mentions": int(chosen.sum()),
            "entities": len({names[name].kb_id for name in chosen_names}),
            "names": len(chosen_names),
            "unusable": self.dictionary.unusable,
            "surplus": int((~chosen).sum()),
            **self.left_out,
        }
        most = Counter(self._names).most_common(FREQUENT)
        return SilverReport(
            counts, [(names[name].text, count) for name, count in most]
        )


def name_span(doc: Doc, start: int, end: int, name: Name) -> Span:
    """The mention that has a name of the dictionary."""
    return Span(doc, start, end, label=name.label, kb_id=name.kb_id or "")


def _chosen(docs: Iterable[Doc], is_chosen: Iterator[bool]) -> Iterator[Doc]:
    """The documents that have some of the chosen mentions, with these alone."""
    for doc in docs:
        ents = [ent for ent in doc.ents if next(is_chosen)]
        if ents:
            # Tokens of the document would keep the ids of the others.
            copy = copied(doc, None)
            copy.ents = ents
            yield copy


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
