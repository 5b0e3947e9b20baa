"""Names of removed parts: a config that names one gets an error that says what replaced it.

Each is listed in the entry points of ``setup.cfg`` under the name it had.
"""

from inspect import Parameter, Signature
from typing import Any, Callable

from .errors import Errors


def removed(name: str, instead: str, *settings: str) -> Callable[..., Any]:
    """A registered function that raises an error.

    name: The registered name, without ``spacy-arbo-el.``.
    instead: What to do instead, one or more sentences.
    settings: The names of the settings it had, which a config may still give.
    """

    def build(**values: Any) -> Any:
        raise ValueError(Errors.E990.format(name=name, instead=instead))

    parameters = [Parameter(s, Parameter.KEYWORD_ONLY, default=None) for s in settings]
    build.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    return build


MARGIN = removed(
    "Margin.v1",
    "Use the inference procedure inside of it, such as Clustering.v1.",
    "inference",
    "min_difference",
)
