"""Messages of the readers, each with a code."""

from ...base.errors import Message


class FormatMessages:
    E107 = Message("Reading SKOS needs rdflib, which is not installed. Run: pip install rdflib")
    W100 = Message(
        "{path}, line {line}: document {id!r} came before. The first one is kept, this one is left "
        "out."
    )
