"""project.yml from end to end, on a tiny corpus in the real formats."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from .linker.world import DEV, ENTITIES, TRAIN, parse

ROOT = Path(__file__).parents[1]
IDS = {entity.id: f"D00000{i}" for i, entity in enumerate(ENTITIES)}


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
def project(tmp_path_factory):
    """A copy of the project beside a small data folder."""
    folder = tmp_path_factory.mktemp("project")
    shutil.copy(ROOT / "project.yml", folder)
    shutil.copytree(ROOT / "configs", folder / "configs")
    shutil.copytree(ROOT / "assets", folder / "assets")
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
    return folder


@pytest.mark.slow
def test_train_workflow_on_a_corpus(project):
    command = [sys.executable, "-m", "spacy", "project", "run", "all", str(project)]
    command += ["--vars.dataset", "ncbi", "--vars.data_dir", "small"]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout[-3000:] + result.stderr[-3000:]
    metrics = json.loads((project / "metrics" / "ncbi_untrained.json").read_text())
    assert {"ncbi_untrained: names alone", "model-best: as configured"} <= set(metrics)
    trained = metrics["model-best: as configured"]
    assert trained["arbo_mentions"] == len(DEV) and trained["arbo_acc"] >= 0.5
    assert "excluded" in result.stdout, "the abstract in test_pmids.txt is left out"
