"""The add-on of ARCHITECTURE.md, installed beside the package."""

import os
import re
import subprocess
import sys
from pathlib import Path

PAGE = (Path(__file__).parents[2] / "ARCHITECTURE.md").read_text("utf8")
SECTION = PAGE.partition("### An add-on\n")[2].partition("\n### ")[0]
CODE = re.search(r"```python\n(.*?)```", SECTION, re.S)[1]
PROJECT = re.search(r"```toml\n(.*?)```", SECTION, re.S)[1]
# Entry points are known when Python starts, so that another process must be started.
USE = """
import sys
from pathlib import Path

import numpy as np
import spacy
from typer.testing import CliRunner

from spacy_arbo_el.cli import arbo_cli
from spacy_arbo_el.kb.knowledge_base import ArboKB


def output(*arguments):
    result = CliRunner().invoke(arbo_cli, arguments)
    assert result.exit_code == 0, (result.output, result.exception)
    return result.output


Path("list.txt").write_text("Port Veil\\nAlder Bank\\n", "utf8")
output("kb", "build", "list.txt", "kb", "--format", "names")
assert [one.id for one in ArboKB.for_reading("kb")] == ["Port Veil", "Alder Bank"]
assert output("greet", "Ada") == "Hello Ada\\n"
assert "greet" in output("--help")
part = spacy.registry.resolve({"one": {"@misc": "my.Lowercase.v1"}})["one"]
assert part("Port", np.arange(4))[0] == "port"
"""


def entry_points(project):
    """What installing the project writes: the tables of entry points, without quotes."""
    tables = project.partition("[project.entry-points.")[2]
    return re.sub(r"\[project\.entry-points\.", "[", f"[{tables}").replace('"', "")


def test_a_package_beside_adds_a_format_a_command_and_a_part(tmp_path):
    about = tmp_path / "my_package-0.1.dist-info"
    about.mkdir()
    (tmp_path / "my_package.py").write_text(CODE, "utf8")
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: my-package\nVersion: 0.1\n")
    (about / "entry_points.txt").write_text(entry_points(PROJECT), "utf8")
    paths = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": paths}
    command = [sys.executable, "-c", USE]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
