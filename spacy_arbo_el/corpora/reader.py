"""The corpus reader for ``spacy train``: documents with mentions, but without links."""

import random
from itertools import islice
from pathlib import Path
from typing import Callable, Iterable, Iterator, Optional

from spacy.language import Language
from spacy.tokens import Doc, DocBin, Span
from spacy.training import Example
from spacy.util import registry
from spacy.vocab import Vocab

from ..errors import Errors
from ..storage.lines import check_exists

SUFFIX = ".spacy"


@registry.readers("spacy-arbo-el.MentionCorpus.v1")
def create_mention_corpus(
    path: Optional[Path],
    gold_mentions: bool = True,
    limit: int = 0,
    shuffle: bool = False,
    seed: int = 0,
) -> Callable[[Language], Iterable[Example]]:
    """Read examples for linking from ``.spacy`` files. Use it for training and for evaluation::

        [corpora.train]
        @readers = "spacy-arbo-el.MentionCorpus.v1"
        path = ${paths.train}

    The settings are those of ``MentionCorpus``.
    """
    return MentionCorpus(path, gold_mentions=gold_mentions, limit=limit, shuffle=shuffle, seed=seed)


class MentionCorpus:
    """Reads examples for linking from ``.spacy`` files.

    The predicted document has the tokens of the reference. By default it has its mentions too:
    entities and span groups with their labels, but without ``kb_id_`` and ``id_``. With these,
    ``spacy train`` and ``nlp.evaluate`` work for a pipeline that has only a linker.

    Raises ValueError if there is no path, or for a file that is not a ``.spacy`` file. Raises
    FileNotFoundError if there is no such file.

    path: A file, or a folder of ``.spacy`` files, which are read in the order of their names.
    gold_mentions: Whether predicted documents have mentions. Use False for a pipeline that finds
        the mentions itself.
    limit: The maximum number of documents; 0 for no limit.
    shuffle: Whether the documents come in another order in each pass.
    seed: Determines these orders.
    """

    def __init__(
        self,
        path: Optional[Path],
        *,
        gold_mentions: bool = True,
        limit: int = 0,
        shuffle: bool = False,
        seed: int = 0,
    ) -> None:
        if path is None:
            raise ValueError(Errors.E115)
        self.path = Path(path)
        self.gold_mentions = gold_mentions
        self.limit = limit
        self.shuffle = shuffle
        self.random = random.Random(seed)

    def __call__(self, nlp: Language) -> Iterator[Example]:
        references: Iterable[Doc] = read_docs(self.path, nlp.vocab)
        if self.limit > 0:
            references = islice(references, self.limit)
        if self.shuffle:
            references = list(references)
            self.random.shuffle(references)
        for reference in references:
            yield Example(unlinked(reference, mentions=self.gold_mentions), reference)


def read_docs(path: Path, vocab: Vocab) -> Iterator[Doc]:
    """Yield the documents of a ``.spacy`` file or of a folder of them. Empty ones are skipped."""
    path = check_exists(path, "Convert the corpus first, or correct the path.")
    files = sorted(path.rglob(f"*{SUFFIX}")) if path.is_dir() else [path]
    if not files:
        hint = "The folder holds no such file: convert the corpus first."
        raise FileNotFoundError(Errors.E101.format(path=path / f"*{SUFFIX}", hint=hint))
    for file in files:
        yield from _read_docbin(file, vocab)


def _read_docbin(path: Path, vocab: Vocab) -> Iterator[Doc]:
    try:
        for doc in DocBin().from_bytes(path.read_bytes()).get_docs(vocab):
            if len(doc):
                yield doc
    except OSError:
        raise
    # zlib, msgpack, NumPy and spaCy raise different errors on invalid bytes.
    except Exception as err:
        raise ValueError(Errors.E116.format(path=path, problem=err)) from err


def unlinked(doc: Doc, *, mentions: bool = True) -> Doc:
    """A copy with the same tokens, but without links.

    mentions: Whether the copy has the same mentions.
    """
    return copied(doc, _unlinked_span if mentions else None)


def copied(doc: Doc, change: Optional[Callable[[Doc, Span], Span]]) -> Doc:
    """A copy with the same tokens and ``doc_id``.

    change: Makes a span of the copy from the copy and a span of the Doc, one of ``doc.ents`` or
        ``doc.spans``. None copies no spans.
    """
    copy = Doc(
        doc.vocab,
        words=[token.text for token in doc],
        spaces=[bool(token.whitespace_) for token in doc],
    )
    if "doc_id" in doc.user_data:
        copy.user_data["doc_id"] = doc.user_data["doc_id"]
    if change is not None:
        copy.set_ents([change(copy, span) for span in doc.ents])
        for key, group in doc.spans.items():
            copy.spans[key] = [change(copy, span) for span in group]
    return copy


def _unlinked_span(doc: Doc, span: Span) -> Span:
    return Span(doc, span.start, span.end, label=span.label)
