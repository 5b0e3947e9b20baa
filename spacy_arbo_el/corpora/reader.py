"""The corpus reader for ``spacy train``. Documents with mentions, but without links."""

import random
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example
from spacy.util import registry

from ..base.errors import ArboError, Errors
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
            raise ArboError(Errors.E115)
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
