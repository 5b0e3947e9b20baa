"""Text of others in HTML. Titles, ids and addresses may come from anywhere."""

import re
from html import escape
from urllib.parse import quote

from .errors import Errors

_WEB = re.compile(r"https?://[^/]", re.IGNORECASE)
# Where an address has no meaning in a link, as displaCy writes it.
NO_ADDRESS = "#"
# The characters that an address may have; all others are quoted.
_OF_ADDRESSES = ":/?#[]@!$&'()*+,;=%~"


def escaped(text: object) -> str:
    """Escape a text for HTML elements and quoted attributes.

    Half characters (lone surrogates), which no file can hold, become question marks.
    """
    return escape(str(text).encode("utf8", "replace").decode("utf8"), quote=True)


def check_template(template: str) -> None:
    """Raise an error unless a template gives web addresses."""
    if not template.startswith("{}") and not _WEB.match(template.replace("{}", "x")):
        raise ValueError(Errors.E750.format(value=template))


def web_address(template: str, kb_id: str) -> str:
    """Address of an entity for an attribute. "#" where it is none of the web.

    template: ``{}`` stands for the id.
    """
    kb_id = kb_id.encode("utf8", "replace").decode("utf8")
    address = template.replace("{}", quote(kb_id, safe=_OF_ADDRESSES))
    return escaped(address) if _WEB.match(address) else NO_ADDRESS
