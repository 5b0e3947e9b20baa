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

from spacy_arbo_el.base.calibration import Calibration
from spacy_arbo_el.config_sources import SOURCES, SYSTEMS
from spacy_arbo_el.kb.importers import write_entities_jsonl
from spacy_arbo_el.kb.knowledge_base import ArboKB

from ..commands import run, run_script
from ..linker.world import DEV, ENTITIES, TRAIN, parse
from ..tiny import save_tiny

ROOT = Path(__file__).parents[2]
IDS = {entity.id: f"D00000{i}" for i, entity in enumerate(ENTITIES)}


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
    assert paths and all((folder / path).exists() for path in paths), paths
    systems = {s for line in scripts for s in re.findall(r"--system (\S+)", line)}
    configs = {s for line in scripts for s in re.findall(r"training/(\w+)\.cfg", line)}
    known = {*SYSTEMS, *paths, *(path.stem for path in (ROOT / "configs").glob("*.cfg"))}
    assert systems <= known and (systems or configs <= known), systems | configs


# The project for users


def to_jsonl(texts):
    lines = []
    for number, marked in enumerate(texts):
        text, mentions = parse(marked)
        spans = [{"start": s, "end": e, "label": "THING", "kb_id": i} for s, e, i in mentions]
        lines.append(json.dumps({"id": str(number), "text": text, "mentions": spans}))
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    """A tiny encoder for the windows of all systems."""
    return save_tiny(tmp_path_factory.mktemp("encoder") / "bert", "bert", positions=128)


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
        (data / f"{name}.jsonl").write_text(to_jsonl(texts))
    write_entities_jsonl(ENTITIES, data / "entities.jsonl")
    settings = {"dataset": "tiny", "data_dir": "mine", "encoder": str(tiny_bert)}
    run_in_process("config", tmp_path, **settings)
    run_in_process("convert", tmp_path, **settings)
    printed = run_in_process("demo", tmp_path, **settings)
    assert "model-best: as configured" in printed and "←" in printed
    scores = json.loads((tmp_path / "metrics" / "tiny.json").read_text())
    assert scores["model-best: as configured"]["arbo_mentions"] == len(DEV)
    run_in_process("discover", tmp_path, dataset="tiny", data_dir="mine")
    assert (tmp_path / "metrics" / "tiny_new.jsonl").exists()
    assert (tmp_path / "metrics" / "tiny_new.html").exists()
    assert spacy.load(tmp_path / "training" / "tiny" / "tuned").pipe_names == ["arbo_linker"]


@pytest.mark.slow
@pytest.mark.nightly
def test_unlabelled_workflow_on_own_data(encoder, tmp_path):
    """A knowledge base and raw text become a calibrated pipeline that has all names."""
    shutil.copy(ROOT / "project.yml", tmp_path)
    config = SOURCES["silver"].read_text(encoding="utf8")
    assert "max_steps = 150" in config
    config = config.replace("max_steps = 150", "max_steps = 2")
    (tmp_path / "short.cfg").write_text(config, encoding="utf8")
    write_entities_jsonl(ENTITIES, tmp_path / "entities.jsonl")
    (tmp_path / "texts.jsonl").write_text(to_jsonl([*TRAIN, *DEV] * 4))
    files = {"kb": "entities.jsonl", "texts": "texts.jsonl", "silver_system": "short.cfg"}
    run_in_process("unlabelled", tmp_path, dataset="tiny", encoder=str(encoder), **files)
    nlp = spacy.load(tmp_path / "training" / "tiny_unlabelled" / "whole")
    linker = nlp.get_pipe("arbo_linker")
    assert [entity.names for entity in linker.kb] == [entity.names for entity in ENTITIES]
    hidden = ArboKB.for_reading(tmp_path / "kb" / "tiny_hidden")
    assert sum(len(e.names) for e in hidden) < sum(len(e.names) for e in ENTITIES)
    assert linker.calibration != Calibration() and len(linker.exemplars)


# The experiments


def pubtator(texts, first_pmid):
    blocks = []
    for pmid, marked in enumerate(texts, first_pmid):
        text, mentions = parse(marked)
        title, body = "A title.", text
        lines = [f"{pmid}|t|{title}", f"{pmid}|a|{body}"]
        for start, end, kb_id in mentions:
            shift = len(title) + 1
            row = (pmid, start + shift, end + shift, text[start:end], "Disease", IDS[kb_id])
            lines.append("\t".join(map(str, row)))
        blocks.append("\n".join(lines) + "\n")
    return "\n".join(blocks)


@pytest.fixture(scope="module")
def experiments(tmp_path_factory):
    """A copy of the experiments, with a small data folder in it."""
    root = tmp_path_factory.mktemp("project")
    shutil.copytree(ROOT / "configs", root / "configs")
    folder = root / "experiments"
    folder.mkdir()
    for name in ("project.yml", "configs.py", "readers.py", "baselines.py", "held_out.py"):
        shutil.copy(ROOT / "experiments" / name, folder)
    data = folder / "small"
    for name in ("ncbi_disease", "bc5cdr", "medic_half"):
        (data / name).mkdir(parents=True)
    train, dev = pubtator(TRAIN, 1000), pubtator(DEV, 2000)
    (data / "ncbi_disease" / "NCBItrainset_corpus.txt").write_text(train)
    (data / "ncbi_disease" / "NCBIdevelopset_corpus.txt").write_text(dev)
    (data / "bc5cdr" / "CDR_TrainingSet.PubTator.txt").write_text(train)
    (data / "bc5cdr" / "CDR_DevelopmentSet.PubTator.txt").write_text(dev)
    names = [json.dumps([f"{n}", [IDS[e.id]]]) for e in ENTITIES for n in e.names]
    (data / "medic_half" / "disease_down_half.tsv").write_text("\n".join(names) + "\n")
    (data / "medic_half" / "concept_map.json").write_text(
        json.dumps({i: [i] for i in IDS.values()})
    )
    (data / "medic_half" / "test_pmids.txt").write_text("1000\n")
    (folder / "metrics").mkdir()
    return folder


@pytest.mark.slow
@pytest.mark.nightly
def test_workflow_of_the_linker_on_a_corpus(experiments, encoder):
    settings = {"dataset": "ncbi", "data_dir": "small", "encoder": str(encoder)}
    printed = run_in_process("linker", experiments, **settings)
    metrics = json.loads((experiments / "metrics" / "ncbi.json").read_text())
    assert {"ncbi_untrained: names alone", "model-best: as configured"} <= set(metrics)
    trained = metrics["model-best: as configured"]
    # How much a random encoder learns in a few steps depends on the processor.
    assert trained["arbo_mentions"] == len(DEV) and trained["arbo_acc"] > 0
    assert "excluded" in printed, "the abstract in test_pmids.txt is left out"
    assert "BM25" in printed
