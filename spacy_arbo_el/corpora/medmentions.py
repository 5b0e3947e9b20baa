"""MedMentions as JSONL of tokenised sentences, one document per line.

    {"pmid": "1", "sents": [{"tokens": ["Cystic", "fibrosis", "."],
                             "mentions": [[0, 2, "C0010674", "cystic fibrosis"]]}]}

A document is on one line. A mention consists of its first token, the token after its last, the UMLS
id (CUI) of its concept and its text. Tokens and sentences are joined by spaces, so that offsets are
exact. An uncased encoder sees the same word pieces as in running text.
"""

from typing import Any, Dict, Iterator, List, Tuple

from ..io import PathLike, line_error
from .annotated import AnnotatedMention, AnnotatedText, split_ids
from .jsonl import read_records

# These files have no types.
LABEL = "CONCEPT"


def read_medmentions(path: PathLike) -> Iterator[AnnotatedText]:
    """Yield the documents of a file. Empty lines are skipped.

    Raises ValueError with file, line and problem at the first invalid line.
    """
    lines_of: Dict[str, int] = {}
    for number, record in read_records(path):
        try:
            id_, sentences = record["pmid"], record["sents"]
            if not isinstance(id_, str) or not id_ or not isinstance(sentences, list):
                raise TypeError("'pmid' must be a string and 'sents' a list")
            if id_ in lines_of:
                raise ValueError(f"the document {id_!r} came before, in line {lines_of[id_]}")
            lines_of[id_] = number
            text, mentions = _joined(sentences)
            yield AnnotatedText(id_, text, tuple(mentions))
        except KeyError as missing:
            raise line_error(path, number, f"the key {missing} is missing.") from None
        except (TypeError, ValueError) as problem:
            raise line_error(path, number, f"{problem}.") from None


def _joined(sentences: List[Any]) -> Tuple[str, List[AnnotatedMention]]:
    words: List[str] = []
    mentions = []
    at = 0
    for i, sentence in enumerate(sentences, 1):
        tokens = sentence["tokens"]
        if not isinstance(tokens, list) or not all(isinstance(t, str) and t for t in tokens):
            raise TypeError(f"sentence {i}: 'tokens' must be a list of strings, none empty")
        starts = []
        for token in tokens:
            starts.append(at)
            at += len(token) + 1
        words += tokens
        for first, after, cui, *_ in sentence["mentions"]:
            if not 0 <= first < after <= len(tokens):
                raise ValueError(
                    f"sentence {i}: a mention from token {first} to {after} doesn't fit "
                    f"{len(tokens)} tokens; the end is exclusive"
                )
            if not isinstance(cui, str):
                raise TypeError(f"sentence {i}: a mention's concept must be a string")
            end = starts[after - 1] + len(tokens[after - 1])
            mentions.append(AnnotatedMention(starts[first], end, LABEL, split_ids(cui)))
    return " ".join(words), mentions
