"""Messages of the readers, each with a code."""

from ...base.errors import Message


class FormatMessages:
    E107 = Message(
        "Reading SKOS needs rdflib, which is not installed. Run: pip install rdflib"
    )
    E109 = Message(
        "The id {id!r} has no prefix, as in DOID:4. Give the prefix of the list: --prefix DOID, or "
        'prefix="DOID".'
    )
    W100 = Message(
        "{path}, line {line}: document {id!r} came before. The first one is kept, this one is left "
        "out."
    )
