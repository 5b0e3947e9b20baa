"""Annotated text as the readers return it, before tokenization."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Protocol

from ..base.errors import Errors
from ..records.formats import Sniffing
from ..records.lines import OnBad, PathLike
from ..records.offsets import offsets_problem

NIL = "NIL"
JOINER = "|"
# What corpora write for "no concept".
NO_CONCEPT = ("", "-1", "-", "CUI-less", "CUI_less", NIL)
# Label of a mention that has none.
LABEL = "ENTITY"


@dataclass(frozen=True)
class AnnotatedMention:
    """A mention in a text.

    start: The offset of its first character.
    end: The offset after its last character.
    label: Its type, such as "Disease".
    kb_ids: The ids of its entities, in the order of the annotation. A composite mention ("breast
        and ovarian cancer") has several. A NIL mention has none.
    cluster: The new entity that a NIL mention belongs to; empty if it is not annotated.
    counted: How the file counts offsets, where it has the words of the mention too and these are
        there; empty where it has offsets alone.
    """

    start: int
    end: int
    label: str
    kb_ids: tuple[str, ...] = ()
    cluster: str = ""
    counted: str = field(default="", compare=False)

    @property
    def kb_id(self) -> str:
        """Join the ids by ``|`` for ``span.kb_id_``; "NIL" stands for no id."""
        return JOINER.join(self.kb_ids) or NIL


@dataclass(frozen=True)
class AnnotatedText:
    """A document with its mentions. White space at the ends of mentions is left out.

    Raises ValueError if a mention is empty or lies outside the text.

    mentions: Its mentions, in the order of the annotation.
    in_pieces: How many mentions in several pieces were left out, since a span can't have any.
    unread: The names of fields that may have the id of a mention without one, for each of them.
    """

    id: str
    text: str
    mentions: tuple[AnnotatedMention, ...] = ()
    in_pieces: int = field(default=0, compare=False)
    unread: tuple[str, ...] = field(default=(), compare=False)

    def __post_init__(self) -> None:
        # Annotators mark blanks at the ends of words, which are no part of a name.
        trimmed = tuple(_trimmed(mention, self.text) for mention in self.mentions)
        object.__setattr__(self, "mentions", trimmed)
        for mention in self.mentions:
            if not 0 <= mention.start < mention.end <= len(self.text):
                problem = offsets_problem(mention.start, mention.end, len(self.text))
                raise Errors.E110(doc=self.id, problem=problem)


class CorpusFormat(Sniffing, Protocol):
    """A reader of annotated text, registered as a format: a frozen dataclass of its options.

    Where it has the fields ``offsets`` and ``id_key``, ``arbo convert`` has these options for it.
    A class attribute ``reads_folders = True`` says that it reads folders.
    A reader without ``sniff`` reads what ``--format`` names it for.
    """

    def read(
        self, path: PathLike, bad: OnBad, counts: Counter
    ) -> Iterator[AnnotatedText]:
        """Yield the documents of a file. Raises ValueError where it is not valid.

        bad: Takes the errors of invalid lines, which are then left out.
        counts: Counts documents that are left out, under "duplicates" and "excluded".
        """


def _trimmed(mention: AnnotatedMention, text: str) -> AnnotatedMention:
    """A mention without white space at its ends. One that is nothing else stays as it is."""
    words = text[max(mention.start, 0) : mention.end]
    if (
        not words.strip()
        or len(words.strip()) == len(words)
        or mention.end > len(text)
    ):
        return mention
    start = mention.start + len(words) - len(words.lstrip())
    return replace(mention, start=start, end=start + len(words.strip()))


def split_ids(value: str, separators: str = JOINER) -> tuple[str, ...]:
    """Split an annotation such as ``D001943|D010051`` into its ids. In order, without duplicates.

    Empty parts, ``NIL``, and what stands for "no concept" (``-1`` in BC5CDR, ``-`` in PubTator,
    ``CUI-less``) are left out. A NIL mention has no ids.

    separators: Characters that separate ids.
    """
    for separator in separators:
        value = value.replace(separator, JOINER)
    return unique(piece.strip() for piece in value.split(JOINER))


def unique(ids: Iterable[str]) -> tuple[str, ...]:
    """The ids that name a concept, without duplicates, in order."""
    return tuple(dict.fromkeys(id_ for id_ in ids if id_ not in NO_CONCEPT))
