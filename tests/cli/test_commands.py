"""Commands of spaCy and of this package on saved pipelines."""

import importlib
import json
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from spacy.cli import app
from spacy.cli.evaluate import evaluate
from spacy.cli.package import package
from typer.testing import CliRunner

from .. import commands
from ..linker.conftest import NGRAMS, build
from ..linker.world import DEV, TRAIN, annotated, as_jsonl

ROOT = Path(__file__).parents[2]


def output(*arguments, cwd, code=0):
    """What a process of spaCy prints."""
    command = [sys.executable, "-m", "spacy", *map(str, arguments)]
    result = subprocess.run(command, capture_output=True, text=True, cwd=cwd)
    assert result.returncode == code, result.stdout + result.stderr
    return result.stdout + result.stderr


def arbo(*arguments, cwd, code=0):
    """What a command of ours prints, without a process of its own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(cwd)
        return commands.run(*arguments, code=code)


@pytest.fixture(scope="module")
def folder(app, tmp_path_factory):
    """A saved pipeline, its entities and a dev set."""
    return shutil.copytree(app, tmp_path_factory.mktemp("app") / "app")


@pytest.mark.slow
def test_spacy_evaluate(folder):
    evaluate(folder / "model", folder / "dev.spacy", folder / "scores.json")
    scores = json.loads((folder / "scores.json").read_text())
    assert scores["arbo_mentions"] == len(DEV)
    assert scores["nel_micro_f"] >= 0.75


@pytest.mark.slow
@pytest.mark.parametrize(
    "command, printed",
    [
        ("benchmark speed model dev.spacy --batches 30 --warmup 1", "words/s"),
        (
            "find-threshold model dev.spacy arbo_linker threshold nel_micro_f --n_trials 2",
            "value of 0.75",
        ),
        (
            "debug data model/config.cfg --paths.train dev.spacy --paths.dev dev.spacy",
            "can be initialized",
        ),
    ],
)
def test_spacys_own_commands_run(folder, command, printed, monkeypatch):
    monkeypatch.chdir(folder)
    assert printed in CliRunner().invoke(app, command.split()).output


@pytest.mark.slow
def test_arbo_convert_calibrate_and_evaluate(folder):
    (folder / "train.jsonl").write_text(as_jsonl(TRAIN))
    printed = arbo("convert", "train.jsonl", "train.spacy", cwd=folder)
    assert f"{len(TRAIN)} docs" in printed
    assert "8 entities" in arbo("kb", "build", "kb.jsonl", "kb", cwd=folder)
    assert "Names of several entities" in arbo("kb", "info", "kb", cwd=folder)
    arguments = ("model", "dev.spacy", "--strategy", "calibrated", "-o", "calibrated")
    assert "calibrated, with all 8 documents" in arbo("fit", *arguments, cwd=folder)
    arguments = ("model", "dev.spacy", "-o", "table.json")
    printed = arbo("evaluate", *arguments, cwd=folder)
    assert "names alone" in printed
    assert "as configured" in printed
    rows = json.loads((folder / "table.json").read_text())
    error = rows["model: as configured"]["arbo_calibration_error"]
    assert f"expected calibration error {error:.3f}" in printed
    assert rows["model: names alone"]["arbo_acc"] > 0.3
    arguments = ("calibrated", "dev.spacy", "--drop", "0.5", "-o", "dropped.json")
    assert "50% of the entities dropped" in arbo("evaluate", *arguments, cwd=folder)
    dropped = json.loads((folder / "dropped.json").read_text())["calibrated: as configured"]
    assert dropped["arbo_acc"] < 1
    assert dropped["arbo_nil_r"] is not None
    pipelines = ("model", "calibrated", "dev.spacy", "-o", "rows.json")
    arbo("evaluate", *pipelines, cwd=folder)
    rows = json.loads((folder / "rows.json").read_text())
    assert len(rows) == 6


@pytest.mark.slow
def test_invalid_input_is_a_message_without_a_traceback(folder):
    (folder / "broken.jsonl").write_text('{"id": "a", "title": "A"}\n{"id": "b", \n')
    printed = output("arbo", "kb", "build", "broken.jsonl", "nowhere", cwd=folder, code=1)
    assert "broken.jsonl, line 2" in printed
    assert "Traceback" not in printed
    assert not (folder / "nowhere").exists()


@pytest.mark.slow
def test_spacy_package_builds_a_wheel_that_links(folder, monkeypatch):
    build(model=NGRAMS).to_disk(folder / "packed")
    package(folder / "packed", folder, name="arbo_test", version="0.0.1", create_wheel=True)
    (wheel,) = (folder / "xx_arbo_test-0.0.1" / "dist").glob("*.whl")
    # A wheel is installed by unpacking it.
    zipfile.ZipFile(wheel).extractall(folder / "installed")
    monkeypatch.syspath_prepend(folder / "installed")
    nlp = importlib.import_module("xx_arbo_test").load()
    assert nlp(annotated(nlp, "A [quicksilver|x].")).ents[0].kb_id_ == "metal"
    requirements = (folder / "xx_arbo_test-0.0.1" / "meta.json").read_text()
    assert "spacy_arbo_el" in requirements or "spacy-arbo-el" in requirements


@pytest.mark.slow
def test_example_existing_app_runs(folder):
    printed = commands.run_script(ROOT / "examples" / "existing_app.py", str(folder / "model"))
    assert "['entity_ruler', 'arbo_linker']" in printed
    assert "the same after saving and loading" in printed


@pytest.mark.slow
def test_linking_benchmark_runs(folder, saved_tiny):
    files = str(saved_tiny), str(folder / "dev.spacy")
    script = ROOT / "benchmarks" / "linking.py"
    assert "ratio" in commands.run_script(script, *files, "--rounds", "1")
