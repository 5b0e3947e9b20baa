"""Tables of cases in ``tests/data/cases``: one in a line, as JSON. Lines with # are comments."""

import json
from pathlib import Path

FOLDER = Path(__file__).parent / "data" / "cases"


def cases(name):
    """The cases of a table, for ``pytest.mark.parametrize``: lists of several arguments."""
    lines = (FOLDER / f"{name}.txt").read_text(encoding="utf8").split("\n")
    return [json.loads(line) for line in lines if line and not line.startswith("#")]
