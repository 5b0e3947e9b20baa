"""Files with a header line and a checksum. The checksum is of all that follows."""

from ..storage.manifest import Checksum

_PACKAGE = "spacy-arbo-el"


def seal(kind: str, content: bytes) -> bytes:
    """The content of a file behind its first line. kind: What the file is, such as "checkpoint"."""
    return _first_line(kind, content) + content


def unseal(kind: str, data: bytes) -> bytes:
    """Open the result of ``seal``. ValueError if it is another kind of file, damaged or cut
    short.
    """
    start = len(_first_line(kind, b""))
    content = data[start:]
    if data[:start] != _first_line(kind, content):
        raise ValueError("it is damaged, or of another version")
    return content


def _first_line(kind: str, content: bytes) -> bytes:
    return f"{_PACKAGE} {kind} {Checksum.of(content).hash}\n".encode()
