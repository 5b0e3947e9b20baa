"""The manifest of a folder: the checksum of each file, and its own."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import srsly


@dataclass(frozen=True)
class Checksum:
    """The length and the hash of a file."""

    size: int
    hash: str

    @classmethod
    def of(cls, data: bytes) -> "Checksum":
        return cls(len(data), hashlib.blake2b(data, digest_size=16).hexdigest())

    def problem(self, data: bytes) -> str:
        """Error in the file's bytes; "" if unchanged."""
        found = Checksum.of(data)
        if found == self:
            return ""
        if found.size != self.size:
            return f"it has {found.size} bytes instead of {self.size}"
        return "its checksum is wrong"


@dataclass(frozen=True)
class Manifest:
    """List of what was written into a folder.

    files: The checksum of each file.
    about: What else is known of them, JSON-serialisable.
    """

    files: Mapping[str, Checksum]
    about: Mapping[str, Any]

    def to_bytes(self, format: str, version: int) -> bytes:
        """JSON with the name and the version of a format."""
        files = {name: [sum.size, sum.hash] for name, sum in self.files.items()}
        content = {"format": format, "version": version, "files": files, **self.about}
        return srsly.json_dumps({**content, "checksum": _checksum(content)}).encode("utf8")

    @classmethod
    def from_bytes(cls, data: bytes, format: str, version: int) -> "Manifest":
        """Load the result of ``to_bytes``; ValueError if invalid. It is something else."""
        try:
            content: dict[str, Any] = dict(srsly.json_loads(data.decode("utf8")))
            if (content.get("format"), content.get("version")) != (format, version):
                raise ValueError(f"format version {content.get('version')!r:.20}")
            if content.pop("checksum") != _checksum(content):
                raise ValueError("its checksum is wrong")
            del content["format"], content["version"]
            files = {
                str(name): Checksum(int(size), str(hash))
                for name, (size, hash) in content.pop("files").items()
            }
            return cls(files, content)
        except (KeyError, TypeError, AttributeError, RecursionError) as error:
            raise ValueError(f"{type(error).__name__}: {error}") from None


def _checksum(content: Mapping[str, Any]) -> str:
    return Checksum.of(json.dumps(content, sort_keys=True).encode("utf8")).hash
