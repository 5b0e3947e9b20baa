"""Settings that may change at run time, mirrored in configs."""

import copy
import weakref
from collections.abc import Callable, Mapping
from typing import Any

from spacy.language import Language


class LiveSettings(dict[str, Any]):
    """The settings in force, by name. Each change is written to the config of the pipeline too.

    So what ``nlp.config`` says and ``nlp.to_disk`` saves is in force, and what a config
    says on loading needs no other source.
    """

    def __init__(self, values: Mapping[str, Any]):
        super().__init__(values)
        self._component: Callable[[], Any] = lambda: None
        self._nlp: Callable[[], Language | None] = lambda: None

    def belong_to(self, component: Any, nlp: Language) -> None:
        """Write changes to the config of a pipeline.

        nlp: The pipeline that it is made for. It need not be in there yet.
        """
        self._component = weakref.ref(component)
        self._nlp = weakref.ref(nlp)

    @property
    def nlp(self) -> Language | None:
        """The pipeline that the component was made for, while it exists."""
        return self._nlp()

    def __setitem__(self, name: str, value: Any) -> None:
        super().__setitem__(name, value)
        nlp = self.nlp
        present_name = (
            None if nlp is None else name_in_pipeline(self._component(), nlp)
        )
        if nlp is not None and present_name is not None:
            nlp.get_pipe_config(present_name)[name] = copy.deepcopy(value)

    def update(self, *values: Any, **named: Any) -> None:
        for name, value in dict(*values, **named).items():
            self[name] = value

    def write_to(self, nlp: Language, name: str) -> None:
        """Write all settings to the config of the component ``name``.

        For a component that was made for another pipeline, which nothing tells it that it has left.
        """
        nlp.get_pipe_config(name).update(copy.deepcopy(dict(self)))


def name_in_pipeline(component: Any, nlp: Language) -> str | None:
    """Name of a component in a pipeline, which may have renamed it; None where it is not there."""
    return next((name for name, pipe in nlp.components if pipe is component), None)
