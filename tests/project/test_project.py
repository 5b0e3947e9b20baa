"""The workflows of project.yml and experiments/project.yml, from end to end on tiny data."""

import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import spacy
import srsly
from weasel.util.config import substitute_project_variables

from spacy_arbo_el.config_sources import SYSTEMS
from spacy_arbo_el.kb.importers import write_entities_jsonl

from ..commands import run, run_script
from ..linker.world import DEV, ENTITIES, TRAIN, as_jsonl

ROOT = Path(__file__).parents[2]


def read_project(folder, **variables):
    project = srsly.read_yaml(folder / "project.yml")
    return substitute_project_variables(project, {f"vars.{n}": v for n, v in variables.items()})


def run_in_process(name, folder, **variables):
    """Run a workflow or command without a process for each line."""
    project, printed = read_project(folder, **variables), []
    scripts = {command["name"]: command["script"] for command in project["commands"]}
    steps = project["workflows"].get(name, [name])
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for line in [line for step in steps for line in scripts[step]]:
            words = shlex.split(line)
            if words[:4] == ["python", "-m", "spacy", "arbo"]:
                printed.append(run(*words[4:]))
            elif words[1] in ("-m", "-c"):
                done = subprocess.run([sys.executable, *words[1:]], capture_output=True, text=True)
                assert done.returncode == 0, done.stderr
            else:
                printed.append(run_script(folder / words[1], *words[2:]))
    return "\n".join(printed)


@pytest.mark.parametrize("folder", [ROOT, ROOT / "experiments"], ids=["project", "experiments"])
def test_configs_scripts_and_data_of_the_commands_exist(folder):
    scripts = [line for command in read_project(folder)["commands"] for line in command["script"]]
    ours = ("configs/", "benchmarks/", "assets/")
    words = {word for line in scripts for word in line.split()}
    paths = {word for word in words if word.replace("../", "").startswith(ours)}
    assert paths, paths
    assert all((folder / path).exists() for path in paths), paths
    systems = {s for line in scripts for s in re.findall(r"--system (\S+)", line)}
    configs = {s for line in scripts for s in re.findall(r"training/(\w+)\.cfg", line)}
    known = {*SYSTEMS, *paths, *(path.stem for path in (ROOT / "configs").glob("*.cfg"))}
    assert systems <= known, systems | configs
    assert systems or configs <= known, systems | configs


# The project for users


@pytest.mark.slow
def test_demo_and_discover_workflows_on_own_data(tiny_bert, tmp_path):
    shutil.copy(ROOT / "project.yml", tmp_path)
    (tmp_path / "configs").mkdir()
    config = (ROOT / "configs" / "demo.cfg").read_text(encoding="utf8")
    # What the tiny encoder can read.
    (tmp_path / "configs" / "demo.cfg").write_text(config.replace("= 64", "= 32\ntext = 32"))
    data = tmp_path / "mine"
    data.mkdir()
    for name, texts in {"train": TRAIN, "dev": [*DEV, *TRAIN], "test": DEV}.items():
        (data / f"{name}.jsonl").write_text(as_jsonl(texts))
    write_entities_jsonl(ENTITIES, data / "entities.jsonl")
    settings = {"dataset": "tiny", "data_dir": "mine", "encoder": str(tiny_bert)}
    run_in_process("config", tmp_path, **settings)
    run_in_process("convert", tmp_path, **settings)
    printed = run_in_process("demo", tmp_path, **settings)
    assert "model-best: as configured" in printed
    assert "linked to" in printed
    scores = json.loads((tmp_path / "metrics" / "tiny.json").read_text())
    assert scores["model-best: as configured"]["arbo_mentions"] == len(DEV)
    run_in_process("discover", tmp_path, dataset="tiny", data_dir="mine")
    assert (tmp_path / "metrics" / "tiny_new.jsonl").exists()
    assert (tmp_path / "metrics" / "tiny_new.html").exists()
    assert spacy.load(tmp_path / "training" / "tiny" / "tuned").pipe_names == ["arbo_linker"]


# The experiments
