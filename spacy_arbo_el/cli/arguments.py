"""Arguments and options that several commands have."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spacy.cli._util import Arg, Opt, import_code, setup_gpu

from ..base.errors import Errors

if TYPE_CHECKING:
    from spacy.language import Language

    from ..linker import ArboLinker


# These callbacks are called before a command runs, which need not look at the values.
def _import(code: Path | None) -> Path | None:
    import_code(code)
    return code


def _use_gpu(gpu_id: int) -> int:
    setup_gpu(gpu_id)
    return gpu_id


# A pipeline comes first, then documents. Each is recognised where they swap.
MODEL = Arg(..., help="Pipeline with a linker: a folder, or an installed package")
DATA = Arg(..., help="Annotated .spacy file, or a folder of them")
KB = Arg(..., help="Folder of a knowledge base")
_CODE: Any = {"help": "Python file with registered functions", "callback": _import}
CODE = Opt(None, "--code", **_CODE)
SHORT_CODE = Opt(None, "--code", "-c", **_CODE)
CONFIG = Opt(None, "--config", "-c", help="Config; by default the package's")
EXCLUDE = Opt(
    None,
    "--exclude",
    "-x",
    help="File with ids of documents to leave out, one per line",
)
GPU = Opt(-1, "--gpu-id", "-g", help="GPU, or -1 for the CPU", callback=_use_gpu)
LANG = Opt("en", "--lang", "-l", help="Language of the tokenizer")
LIMIT = Opt(0, "--limit", help="Maximum number of documents; 0 for no limit")
RESUME = Opt(False, "--resume", help="Resume an interrupted run from its checkpoint")

MODEL_OR_LIST = Arg(
    ...,
    help="Pipeline with a linker; or a list of entities: a file, or a knowledge base",
)

# Files that hold documents or entities, and no pipeline.
DATA_SUFFIXES = (".spacy", ".jsonl", ".json", ".csv", ".tsv", ".txt", ".parquet")


def check_model(path: Path) -> None:
    """Raise ValueError unless a path can be a pipeline."""
    if path.suffix.lower() in DATA_SUFFIXES and path.is_file():
        raise Errors.E785(path=path, found=f"a {path.suffix} file")
    if path.is_dir() and not is_pipeline(path):
        for name, kind in (
            ("entities.sqlite", "a knowledge base"),
            ("*.spacy", "documents"),
        ):
            if any(path.glob(name)):
                raise Errors.E785(path=path, found=kind)


def is_list(path: Path) -> bool:
    """Return whether a path is that of entities, in a file or in the folder of a KB."""
    if path.is_file():
        return path.suffix.lower() not in (".spacy", ".txt")
    from ..kb.database import DATABASE

    return not is_pipeline(path) and (path / DATABASE).is_file()


def check_data(path: Path) -> None:
    """Raise ValueError if a pipeline is given as documents."""
    if is_pipeline(path):
        raise Errors.E786(path=path)


def check_annotated(path: Path) -> None:
    """Raise ValueError unless a path can be ``.spacy`` documents."""
    check_data(path)
    suffix = path.suffix.lower()
    if suffix in DATA_SUFFIXES and suffix != ".spacy" and path.is_file():
        raise Errors.E787(path=path, target=path.with_suffix(".spacy"))


def is_pipeline(path: Path) -> bool:
    return (path / "config.cfg").is_file() and (path / "meta.json").is_file()


def open_model(model: Path, data: Path | None = None, **settings: Any) -> "Language":
    """Load the pipeline that a command was given.

    model: A folder, or the name of an installed package.
    data: The annotated documents that it was given too, which are checked first.
    settings: For ``spacy.load``.
    """
    check_model(model)
    if data is not None:
        check_annotated(data)
    from ..pipelines import load_pipeline

    return load_pipeline(model if model.exists() else str(model), **settings)


def open_model_or_list(model: Path, overrides: Mapping[str, Any]) -> "Language":
    """Load the pipeline that a command was given, or make one from a list of entities."""
    if not is_list(model):
        return open_model(model, config=overrides)
    from spacy.util import dot_to_dict

    from ..pipelines import pipeline_from_list

    settings = dot_to_dict(dict(overrides))
    lang = settings.get("nlp", {}).get("lang", "en")
    return pipeline_from_list(model, lang, settings.get("components", {}))


def load_linker(model: Path) -> "ArboLinker":
    from ..linker import find_linker

    return find_linker(open_model(model))


def check_needs(options: Mapping[str, bool], needed: str, why: str) -> None:
    """Raise ValueError for an option that would have no effect.

    options: Whether each option has another value than its default.
    """
    for option, is_given in options.items():
        if is_given:
            raise Errors.E896(option=option, other=needed, why=why)
