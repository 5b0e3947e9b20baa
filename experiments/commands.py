"""Commands of ``arbo`` for scripts."""

import subprocess
import sys
from typing import Any


def run(command: str, *arguments: Any) -> None:
    """Run a command of ``python -m spacy arbo``."""
    subprocess.run(
        [sys.executable, "-m", "spacy", "arbo", command, *map(str, arguments)],
        check=True,
    )


def options_of(settings: dict[str, Any]) -> list[str]:
    """Settings of a config as options of ``run``."""
    return [
        str(word) for name, value in settings.items() for word in (f"--{name}", value)
    ]
