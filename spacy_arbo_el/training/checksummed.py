"""Files with a first line that says what they are, and a checksum of all that follows."""

import hashlib

_PACKAGE = "spacy-arbo-el"
# Hexadecimals of a checksum.
_SIZE = 32


def seal(kind: str, content: bytes) -> bytes:
    """The content of a file behind its first line. kind: What the file is, such as "checkpoint"."""
    return _first_line(kind, content) + content


def unseal(kind: str, data: bytes) -> bytes:
    """What ``seal`` was given; ValueError if it is another kind of file, damaged or cut short."""
    start = len(_first_line(kind, b""))
    content = data[start:]
    if data[:start] != _first_line(kind, content):
        raise ValueError("it is damaged, or of another version")
    return content


def _first_line(kind: str, content: bytes) -> bytes:
    checksum = hashlib.blake2b(content, digest_size=_SIZE // 2).hexdigest()
    return f"{_PACKAGE} {kind} {checksum}\n".encode()
