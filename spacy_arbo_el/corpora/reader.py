"""What configs name a corpus for: examples to train on, and a knowledge base of its ids."""

import random
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example
from spacy.util import ensure_path, registry
from spacy.vocab import Vocab

from ..base.errors import Errors
from ..kb.entity import Entity
from ..kb.knowledge_base import ArboKB
from ..mentions.record import gold_ids
from .docbin import read_docs
from .docs import unlinked


# Not a dataclass: spaCy passes readers through pydantic.
@registry.readers("spacy-arbo-el.MentionCorpus.v1")
class MentionCorpus:
    """Reads linking examples from ``.spacy`` files. They serve training and evaluation::

        [corpora.train]
        @readers = "spacy-arbo-el.MentionCorpus.v1"
        path = ${paths.train}

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
        path: Path | None,
        gold_mentions: bool = True,
        limit: int = 0,
        shuffle: bool = False,
        seed: int = 0,
    ) -> None:
        if path is None:
            raise Errors.E115()
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


@registry.misc("spacy-arbo-el.KBFromCorpus.v1")
class KBFromCorpus:
    """A knowledge base of a corpus's gold ids, without names. The corpus is a ``.spacy`` file.

    Use it to link by exemplars alone (MOLEMAN, §3), with the verbalization ``NoText.v1``::

        [initialize.components.arbo_linker.kb_loader]
        @misc = "spacy-arbo-el.KBFromCorpus.v1"
        path = ${paths.train}

    path: The file, or a folder of files.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def __repr__(self) -> str:
        return f"KBFromCorpus(path={self.path!r})"

    def __call__(self, vocab: Vocab) -> ArboKB:
        spans = (
            span
            for doc in read_docs(ensure_path(self.path), vocab)
            for group in (doc.ents, *doc.spans.values())
            for span in group
        )
        ids = dict.fromkeys(kb_id for span in spans for kb_id in gold_ids(span))
        return ArboKB(vocab, [Entity(kb_id, meta={"unnamed": True}) for kb_id in ids])
