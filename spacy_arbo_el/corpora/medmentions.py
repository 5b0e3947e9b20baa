"""MedMentions as JSONL of tokenised sentences, one document per line.

    {"pmid": "1", "sents": [{"tokens": ["Cystic", "fibrosis", "."],
                             "mentions": [[0, 2, "C0010674", "cystic fibrosis"]]}]}

A document is on one line. A mention consists of its first token, the token after its last, the UMLS
id (CUI) of its concept and its text. Tokens and sentences are joined by spaces, so that offsets are
exact. An uncased encoder sees the same word pieces as in running text.
"""

from typing import Any, Dict, Iterator, List, Tuple

from ..io import PathLike, json_kind, throw
from .annotated import AnnotatedMention, AnnotatedText, split_ids
from .fields import Problem, check_integer, check_object, check_text, list_in, string
from .records import OnBad, read_each

# These files have no types.
LABEL = "CONCEPT"


def read_medmentions(path: PathLike, bad: OnBad = throw) -> Iterator[AnnotatedText]:
    """Yield the documents of a file. Empty lines are skipped.

    Raises ValueError with file, line and problem at the first invalid line.

    bad: Takes the errors of invalid lines, which are then left out; by default they are raised.
    """
    return read_each(path, _annotated_text, bad)


def _annotated_text(record: Dict[str, Any], _: str) -> AnnotatedText:
    id_ = string(record, "pmid")
    words: List[str] = []
    mentions: List[AnnotatedMention] = []
    at = 0
    for position, sentence in enumerate(list_in(record, "sents"), 1):
        try:
            tokens, found = _sentence(sentence, at)
        except Problem as problem:
            raise Problem(f"sentence {position}: {problem}") from None
        words += tokens
        mentions += found
        at += sum(map(len, tokens)) + len(tokens)
    return AnnotatedText(id_, " ".join(words), tuple(mentions))


def _sentence(sentence: Any, at: int) -> Tuple[List[str], List[AnnotatedMention]]:
    """The tokens and the mentions of a sentence. at: The offset of its first character."""
    check_object(sentence)
    tokens = list_in(sentence, "tokens")
    for token in tokens:
        check_text(token, "each of 'tokens'")
        if not token.strip():
            raise Problem("'tokens' must be a list of strings, none empty.")
    starts = []
    for token in tokens:
        starts.append(at)
        at += len(token) + 1
    mentions = []
    for position, mention in enumerate(list_in(sentence, "mentions"), 1):
        try:
            first, after, cui = _fields(mention, len(tokens))
        except Problem as problem:
            raise Problem(f"mention {position}: {problem}") from None
        end = starts[after - 1] + len(tokens[after - 1])
        mentions.append(AnnotatedMention(starts[first], end, LABEL, split_ids(cui)))
    return tokens, mentions


def _fields(mention: Any, length: int) -> Tuple[int, int, str]:
    """The first token, the token after the last, and the concept of a mention."""
    if not isinstance(mention, list) or len(mention) < 3:
        raise Problem(f"must be a list of first token, end and concept, got {json_kind(mention)}.")
    first, after, cui, *_ = mention
    check_integer(first, "the first token")
    check_integer(after, "the token after the last")
    check_text(cui, "the concept")
    if not 0 <= first < after <= length:
        raise Problem(
            f"a mention from token {first} to {after} doesn't fit {length} tokens; the end is "
            "exclusive."
        )
    return first, after, cui
