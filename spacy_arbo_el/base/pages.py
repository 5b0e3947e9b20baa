"""HTML from the templates of ``templates/``: pages, and parts of pages for notebooks.

Templates escape all texts. Half characters (lone surrogates), which no file can hold, become
question marks.
"""

import base64
import hashlib
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .display import counted, one_line, shortened, shown_probability

if TYPE_CHECKING:
    from jinja2 import Environment


def page(name: str, **values: Any) -> str:
    """Make a page from its template, with the values that it names."""
    return _whole(environment().get_template(f"{name}.html").render(values))


def part(name: str, *values: Any) -> str:
    """A part of a page from its macro in ``templates/parts.html``."""
    return _whole(
        getattr(environment().get_template("parts.html").module, name)(*values)
    )


@cache
def environment() -> "Environment":
    """The templates and their filters."""
    from jinja2 import (  # linking need not wait for its import
        Environment,
        FileSystemLoader,
    )

    env = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        trim_blocks=True,
    )
    env.filters.update(
        p=shown_probability, line=one_line, shortened=shortened, counted=counted
    )
    env.filters["sha256"] = _sha256
    return env


def _sha256(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode("utf8")).digest()).decode(
        "ascii"
    )


def _whole(html: str) -> str:
    return html.encode("utf8", "replace").decode("utf8")
