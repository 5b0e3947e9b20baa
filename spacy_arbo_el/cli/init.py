"""The commands ``arbo init`` and ``arbo init-config``: a pipeline of a list; a training config."""

from pathlib import Path

import typer
from spacy.cli._util import Arg, Opt
from wasabi import msg

from ..base.errors import Errors
from ..config_sources import SYSTEMS, complete_config
from ._util import config_overrides, user_errors, visible
from .arguments import LANG, SHORT_CODE, check_data


def init_command(
    # fmt: off
    source: Path = Arg(
        ..., metavar="LIST", help="Entities: a table, JSONL, an ontology, a KB"
    ),
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
    from ..linker import find_linker
    from ..pipelines import pipeline_from_list, save_pipeline

    with user_errors():
        check_language(lang)
        check_data(source)
        if output.exists() and not force:
            raise Errors.E795(path=output)
        nlp = pipeline_from_list(source, lang)
        kb = find_linker(nlp).kb
        save_pipeline(nlp, output)
    counts = f"{len(kb)} entities, {kb.entities.count_names()} names"
    link = f"python -m spacy arbo link {output} TEXTS -o OUT.csv"
    msg.good(visible(f"{output}: {counts}. Link: {link}"))


def init_config_command(
    # fmt: off
    ctx: typer.Context,
    output: Path = Arg(..., help="Config to write, such as linker.cfg"),
    system: str = Opt(
        "linker",
        "--system",
        "-s",
        help=f"A file with what differs from the default, or one of: {', '.join(SYSTEMS)}",
    ),
    code: Path | None = SHORT_CODE,
    force: bool = Opt(False, "--force", "-F", help="Replace a file that is there"),
    # fmt: on
) -> None:
    """Write a training config with tuned settings.

    "linker", the recommended system, trains the component that nlp.add_pipe("arbo_linker") gives.
    A system says only what differs from it: "exemplars_only" has entities without names. Settings
    are overridden as in spacy train, such as --nlp.lang de, or --paths.encoder with the name of a
    Hugging Face model.

    \b
    Example:
      python -m spacy arbo init-config linker.cfg
      python -m spacy arbo init-config moleman.cfg --system moleman --nlp.lang de
    """
    from ..storage.files import write_file

    with user_errors():
        if output.exists() and not force:
            raise Errors.E795(path=output)
        overrides = config_overrides(ctx)
        check_language(overrides.get("nlp.lang", "en"))
        text = complete_config(system, overrides)
        write_file(output, text.encode("utf8"))
    msg.good(f"{output}: train with python -m spacy arbo train {output} --output out")


def check_language(lang: str) -> None:
    """Raises ValueError for a language that spaCy does not have."""
    from spacy.util import get_lang_class

    try:
        get_lang_class(lang)
    except ImportError as error:
        raise ValueError(str(error)) from None
