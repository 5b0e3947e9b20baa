"""Common arguments: a pipeline first, then documents. Each is recognised where they swap."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, Optional

from spacy.cli._util import Arg, Opt, import_code

from ..errors import Errors

if TYPE_CHECKING:
    from spacy.language import Language

MODEL = Arg(..., help="Pipeline with a linker: a folder, or an installed package")
DATA = Arg(..., help="Annotated .spacy file, or a folder of them")


def _import(code: Optional[Path]) -> Optional[Path]:
    """Import a Python file while a command's options are read."""
    import_code(code)
    return code


# A command imports it before it runs, so that it need not look at its value.
CODE = Opt(None, "--code", help="Python file with registered functions", callback=_import)

# Files that hold documents or entities, and no pipeline.
DATA_SUFFIXES = (".spacy", ".jsonl", ".json", ".csv", ".tsv", ".txt", ".parquet")


def check_model(path: Path) -> None:
    """Raise ValueError unless a path can be a pipeline."""
    if path.suffix.lower() in DATA_SUFFIXES and path.is_file():
        raise ValueError(Errors.E785.format(path=path, found=f"a {path.suffix} file"))
    if path.is_dir() and not is_pipeline(path):
        for name, found in (("entities.sqlite", "a knowledge base"), ("*.spacy", "documents")):
            if any(path.glob(name)):
                raise ValueError(Errors.E785.format(path=path, found=found))


def check_data(path: Path) -> None:
    """Raise ValueError if a pipeline is given as documents."""
    if is_pipeline(path):
        raise ValueError(Errors.E786.format(path=path))


def check_annotated(path: Path) -> None:
    """Raise ValueError unless a path can be ``.spacy`` documents."""
    check_data(path)
    suffix = path.suffix.lower()
    if suffix in DATA_SUFFIXES and suffix != ".spacy" and path.is_file():
        raise ValueError(Errors.E787.format(path=path, target=path.with_suffix(".spacy")))


def is_pipeline(path: Path) -> bool:
    """Return whether a folder holds a saved pipeline."""
    return (path / "config.cfg").is_file() and (path / "meta.json").is_file()


def open_model(model: Path, data: Optional[Path] = None, **settings: Any) -> "Language":
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
