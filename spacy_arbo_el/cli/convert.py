"""``arbo convert``: annotated corpora to ``.spacy``."""

from collections import Counter
from functools import partial
from pathlib import Path

from spacy.cli._util import Arg, Opt
from wasabi import msg

from ..records.formats import corpus_formats, names_of
from ._util import user_errors, visible, warn_of_lacking
from .arguments import CODE, EXCLUDE, check_needs

FORMATS = f"{', '.join(names_of(corpus_formats))}, or one that --code adds"


FORMAT = Opt("", "--format", "-f", help=f"By default by name and content. {FORMATS}")
LABELS = Opt("", "--labels", "-l", help="Labels to keep, separated by commas")
CONCEPTS = Opt(
    None,
    "--concepts",
    "-c",
    help="List, or folder of a KB, whose further ids become the main ones",
)
OPTIONS = Opt(
    [], "--option", help="Of the format of that list, as for arbo kb build: xrefs=MESH"
)
OFFSETS = Opt(
    "",
    "--offsets",
    help="How offsets count: utf16, lf, bytes or another of the documentation",
)
ID_KEY = Opt(
    "",
    "--id-key",
    help="Field of mentions with their ids, where a format leaves it open",
)
SKIP_BAD = Opt(
    False,
    "--skip-bad",
    help="List all invalid lines and leave them out, instead of failing",
)


def convert_command(
    source: Path = Arg(..., help="Corpus to read"),
    output: Path = Arg(..., help="The .spacy file to write"),
    format: str = FORMAT,
    labels: str = LABELS,
    concepts: Path | None = CONCEPTS,
    options: list[str] = OPTIONS,
    exclude: Path | None = EXCLUDE,
    lang: str = Opt("en", "--lang", help="Language of the tokenizer"),
    offsets: str = OFFSETS,
    id_key: str = ID_KEY,
    skip_bad: bool = SKIP_BAD,
    code: Path | None = CODE,
) -> None:
    """Convert an annotated corpus to .spacy.

    Mentions keep their exact offsets. Ids of documents are made up if there are none.

    \b
    Example:
      python -m spacy arbo convert train.jsonl train.spacy
      python -m spacy arbo convert annotations.csv train.spacy --skip-bad
      python -m spacy arbo convert abstracts.txt train.spacy -c doid.obo --option xrefs=MESH,OMIM
      python -m spacy arbo convert mine.xml train.spacy --format mine --code readers.py
    """
    import spacy

    from ..corpora.convert import convert_corpus
    from ..corpora.read import read_ids
    from ..records.lines import throw

    problems: list[ValueError] = []
    gold: Counter[str] = Counter()
    with user_errors():
        concept_map = _concept_map(concepts, options)
        counts = convert_corpus(
            source,
            output,
            format=format,
            nlp=spacy.blank(lang),
            labels=[label.strip() for label in labels.split(",") if label.strip()]
            or None,
            concept_map=concept_map,
            gold=gold,
            exclude_ids=read_ids(exclude) if exclude else None,
            offsets=offsets,
            id_key=id_key,
            bad=partial(_warn, problems) if skip_bad else throw,
        )
    if concept_map:
        warn_of_lacking(gold, set(concept_map.values()))
    counts["bad lines left out"] = len(problems)
    pieces = [f"{count} {name}" for name, count in counts.items() if count]
    msg.good(f"{output}: {', '.join(pieces)}")


def _warn(problems: list[ValueError], problem: ValueError) -> None:
    problems.append(problem)
    msg.warn(visible(problem))


def _concept_map(path: Path | None, options: list[str]) -> dict[str, str] | None:
    if path is None:
        check_needs(
            {"--option": bool(options)}, "--concepts", "it says how that list is read"
        )
        return None
    from spacy.vocab import Vocab

    from ..corpora.convert import concept_map_of
    from ..kb.knowledge_base import ArboKB
    from ..kb.loaders import import_into, load_kb, parsed_options_of

    if options:
        kb = ArboKB(Vocab())
        import_into(kb, path, **parsed_options_of(path, "", options))
    else:
        kb = load_kb(path, Vocab())
    return concept_map_of(kb.entities, kb.entities.redirects())
