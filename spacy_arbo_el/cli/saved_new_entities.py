"""Read and write saved new entities without loading the encoder."""

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Iterator

import srsly
from spacy import util

from ..serve.journal import is_pending
from .arguments import check_model

if TYPE_CHECKING:
    from ..discovery.new_entities import NewEntities

PART = "new_entities"


def read_new_entities(model: Path) -> "NewEntities":
    """The new entities that a pipeline keeps."""
    component = _component(model)
    if is_pending(model):
        from ..linker import find_linker
        from ..pipelines import load_pipeline  # which makes the decisions

        return find_linker(load_pipeline(model)).new_entities
    return _read(component)


@contextmanager
def edited_new_entities(model: Path) -> Iterator["NewEntities"]:
    """The new entities that a pipeline keeps. They are saved if no error occurs.

    Only they are written: the rest of the pipeline stays as it is.
    """
    from ..linking.saving import ComponentFolder
    from ..pipelines import changing_pipeline, edit_pipeline

    component = _component(model)
    if is_pending(model):
        with edit_pipeline(model):
            pass
    with changing_pipeline(component.parent):
        new_entities = _read(component)
        yield new_entities
        ComponentFolder(component).write({PART: new_entities.to_bytes}, None)


def _read(component: Path) -> "NewEntities":
    """Read a component's new entities."""
    from ..discovery.new_entities import NewEntities
    from ..linking.saving import ComponentFolder

    return NewEntities.from_bytes(ComponentFolder(component).read([PART], None)[PART])


def _component(model: Path) -> Path:
    """The folder of the linker in a pipeline. Raises ValueError if there is none."""
    from ..errors import ArboError, Errors
    from ..storage.folders import restore
    from ..storage.lines import check_exists

    restore(model)
    check_model(model)
    check_exists(model / "meta.json", "Give the folder of a pipeline.")
    config = util.load_config(model / "config.cfg", interpolate=False)
    for name in srsly.read_json(model / "meta.json").get("pipeline", ()):
        component = config.get("components", {}).get(name, {})
        if component.get("factory") == "arbo_linker":
            return model / name
    raise ArboError(Errors.E792.format(path=model, name=""))
