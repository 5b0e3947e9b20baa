"""Annotated text as the readers hand it on, before any tokenizer has seen it."""

from dataclasses import dataclass
from typing import Iterable, Tuple

from ..errors import Errors

NIL = "NIL"
JOINER = "|"


@dataclass(frozen=True)
class AnnotatedMention:
    """A stretch of text that names something.

    start, end: Character offsets into the text, end exclusive.
    label: Its type ("Disease").
    kb_ids: The entities it names. Several mean a composite ("breast and ovarian
        cancer"), in the order of the annotation; none means NIL, no entity.
    cluster: Which new entity a NIL mention belongs to; empty where that isn't known.
    """

    start: int
    end: int
    label: str
    kb_ids: Tuple[str, ...] = ()
    cluster: str = ""

    @property
    def kb_id(self) -> str:
        """What goes into ``span.kb_id_``: the ids joined by ``|``, or "NIL"."""
        return JOINER.join(self.kb_ids) or NIL


@dataclass(frozen=True)
class AnnotatedText:
    """A document with its mentions, in the order of the annotation.

    Raises ValueError where a mention is empty or lies outside the text.
    """

    id: str
    text: str
    mentions: Tuple[AnnotatedMention, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "mentions", tuple(self.mentions))
        for mention in self.mentions:
            if not 0 <= mention.start < mention.end <= len(self.text):
                problem = offsets_problem(mention.start, mention.end, len(self.text))
                raise ValueError(Errors.E110.format(doc=self.id, problem=problem))


def offsets_problem(start: int, end: int, length: int) -> str:
    """Say what is wrong with offsets that fit no text of this length."""
    return (
        f"a mention from {start} to {end} doesn't fit a text of {length} characters. Offsets "
        "count characters from 0, the end is exclusive and greater than the start."
    )


def split_ids(value: str, separators: str = JOINER) -> Tuple[str, ...]:
    """The ids of an annotation such as ``D001943|D010051``, each once, in order.

    Empty parts, ``-1`` (BC5CDR's "no concept") and ``NIL`` are left out, so that
    nothing left means NIL.
    """
    for separator in separators:
        value = value.replace(separator, JOINER)
    return unique(part.strip() for part in value.split(JOINER))


def unique(ids: Iterable[str]) -> Tuple[str, ...]:
    """The ids that stand for something, each once, in order."""
    return tuple(dict.fromkeys(id_ for id_ in ids if id_ not in ("", "-1", NIL)))
