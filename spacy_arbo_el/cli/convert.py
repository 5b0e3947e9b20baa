"""``arbo convert``: annotated corpora to ``.spacy``."""

from pathlib import Path
from typing import Dict, Optional

from spacy.cli._util import Arg, Opt
from wasabi import msg

from ._util import errors_for_people


def convert_command(
    # fmt: off
    source: Path = Arg(..., help="Corpus to read"),
    output: Path = Arg(..., help="The .spacy file to write"),
    format: str = Opt("jsonl", "--format", "-f", help="pubtator, jsonl or medmentions"),
    labels: str = Opt("", "--labels", "-l", help="Labels to keep, separated by commas"),
    concepts: Optional[Path] = Opt(
        None,
        "--concepts",
        "-c",
        help="Map equivalent ids to concepts: concept_map.json or a knowledge base",
    ),
    exclude: Optional[Path] = Opt(
        None, "--exclude", "-x", help="File with ids of documents to leave out, one per line"
    ),
    lang: str = Opt("en", "--lang", help="Language of the tokenizer"),
    # fmt: on
) -> None:
    """Convert an annotated corpus to .spacy. Mentions keep their exact character offsets."""
    import spacy

    from ..corpora.convert import convert_corpus
    from ..corpora.files import read_ids

    with errors_for_people():
        counts = convert_corpus(
            source,
            output,
            format=format,
            nlp=spacy.blank(lang),
            labels=[label.strip() for label in labels.split(",") if label.strip()] or None,
            concept_map=_concept_map(concepts) if concepts else None,
            exclude_ids=read_ids(exclude) if exclude else None,
        )
    summary = ", ".join(f"{count} {name}" for name, count in counts.items() if count)
    msg.good(f"{output}: {summary}")


def _concept_map(path: Path) -> Dict[str, str]:
    """From equivalent id to concept: of a concept_map.json, or of a knowledge base."""
    from spacy.vocab import Vocab

    from ..corpora.concepts import concept_map_of, read_concept_map
    from ..kb.loaders import KBFromPath

    if path.suffix == ".json" or (path / "concept_map.json").exists():
        return read_concept_map(path)
    return concept_map_of(KBFromPath(path)(Vocab()).entities)
