"""The command ``arbo init``: make a pipeline from a list of entities."""

from pathlib import Path

from spacy.cli._util import Arg, Opt
from wasabi import msg

from ._util import errors_for_people, visible
from .arguments import LANG, check_data
from .init_config import check_language


def init_command(
    # fmt: off
    source: Path = Arg(..., metavar="LIST", help="Entities: a table, JSONL, an ontology, a KB"),
    output: Path = Arg(..., metavar="MODEL", help="Folder of the pipeline"),
    lang: str = LANG,
    force: bool = Opt(False, "--force", "-F", help="Replace a pipeline that is there"),
    # fmt: on
) -> None:
    """Make a pipeline that links to a list.

    It finds the names of the list in raw text, and links them. Nothing is trained. A table whose
    columns have other names is read by `arbo kb build` first.

    \b
    Example:
      python -m spacy arbo init entities.csv MODEL
    """
    from ..base.errors import ArboError, Errors
    from ..linker import find_linker
    from ..pipelines import pipeline_from_list, save_pipeline

    with errors_for_people():
        check_language(lang)
        check_data(source)
        if output.exists() and not force:
            raise ArboError(Errors.E795.format(path=output))
        nlp = pipeline_from_list(source, lang)
        kb = find_linker(nlp).kb
        save_pipeline(nlp, output)
    counts = f"{len(kb)} entities, {kb.get_size_aliases()} names"
    link = f"python -m spacy arbo link {output} TEXTS -o OUT.csv"
    msg.good(visible(f"{output}: {counts}. Link: {link}"))
