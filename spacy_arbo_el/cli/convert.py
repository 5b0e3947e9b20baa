"""``arbo convert``: annotated corpora to ``.spacy``."""

from pathlib import Path

from spacy.cli._util import Arg, Opt
from wasabi import msg

from ..storage.formats import corpus_formats, names_of
from ._util import user_errors, visible
from .arguments import CODE, EXCLUDE

FORMATS = f"{', '.join(names_of(corpus_formats))}, or one that --code adds"


FORMAT = Opt("", "--format", "-f", help=f"By default by name and content. {FORMATS}")
LABELS = Opt("", "--labels", "-l", help="Labels to keep, separated by commas")
CONCEPTS = Opt(
    None, "--concepts", "-c", help="Knowledge base whose further ids are mapped to the main ones"
)
OFFSETS = Opt(
    "", "--offsets", help="How offsets count: utf16, lf, bytes or another of the documentation"
)
ID_KEY = Opt(
    "",
    "--id-key",
    help="Field of mentions with their ids, where a format leaves it open",
)
SKIP_BAD = Opt(
    False, "--skip-bad", help="List all invalid lines and leave them out, instead of failing"
)


def convert_command(
    source: Path = Arg(..., help="Corpus to read"),
    output: Path = Arg(..., help="The .spacy file to write"),
    format: str = FORMAT,
    labels: str = LABELS,
    concepts: Path | None = CONCEPTS,
    exclude: Path | None = EXCLUDE,
    lang: str = Opt("en", "--lang", help="Language of the tokenizer"),
    offsets: str = OFFSETS,
    id_key: str = ID_KEY,
    skip_bad: bool = SKIP_BAD,
    code: Path | None = CODE,
) -> None:
    """Convert an annotated corpus to .spacy.

    Mentions keep their exact character offsets. Ids of documents are made up if there are none.

    \b
    Example:
      python -m spacy arbo convert train.jsonl train.spacy
      python -m spacy arbo convert annotations.csv train.spacy --skip-bad
      python -m spacy arbo convert mine.xml train.spacy --format mine --code readers.py
    """
    import spacy

    from ..corpora.convert import convert_corpus
    from ..corpora.read import read_ids
    from ..storage.lines import throw

    problems: list[ValueError] = []

    def keep(problem: ValueError) -> None:
        problems.append(problem)
        msg.warn(visible(problem))

    with user_errors():
        counts = convert_corpus(
            source,
            output,
            format=format,
            nlp=spacy.blank(lang),
            labels=[label.strip() for label in labels.split(",") if label.strip()] or None,
            concept_map=_concept_map(concepts) if concepts else None,
            exclude_ids=read_ids(exclude) if exclude else None,
            offsets=offsets,
            id_key=id_key,
            bad=keep if skip_bad else throw,
        )
    pieces = [f"{count} {name}" for name, count in counts.items() if count]
    if problems:
        pieces.append(f"{len(problems)} bad lines left out")
    msg.good(f"{output}: {', '.join(pieces)}")


def _concept_map(kb: Path) -> dict[str, str]:
    from spacy.vocab import Vocab

    from ..corpora.convert import concept_map_of
    from ..kb.loaders import KBFromPath

    return concept_map_of(KBFromPath(kb)(Vocab()).entities)
