"""The examples train and link through a config that names them."""

import re
from pathlib import Path

import numpy as np
import pytest
import spacy
import srsly
from spacy.cli.train import train
from spacy.util import import_file
from thinc.util import to_numpy

from ..linker.world import DEV, annotated, examples, without_links, write_corpus
from ..systems import load_system

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
# The sections of the two parts in the README.
PARTS = r"(\[components\.arbo_linker\.(?:reranker|model\.mention)\]\n(?:[^`\n].*\n)+)"


def config_with(bonus):
    """The demo config with the sections that the README of the examples shows."""
    readme = (EXAMPLES / "README.md").read_text(encoding="utf8")
    config = load_system("demo")
    for section in re.findall(PARTS, readme):
        config = config.merge(spacy.util.Config().from_str(with_parents(section)))
    parts = config["components"]["arbo_linker"]
    assert parts["model"]["mention"]["@architectures"] == "HashedFeatures.v1"
    parts["reranker"]["bonus"] = bonus
    return config


def with_parents(section):
    name = section.strip().split("]")[0][1:]
    parents = [name[:i] for i, character in enumerate(name) if character == "."]
    return "".join(f"[{parent}]\n\n" for parent in parents) + section


@pytest.mark.slow
def test_custom_encoder_and_reranker_train_and_link(tmp_path):
    """As ``spacy train --code examples/NAME.py`` does with a config that has their sections."""
    for name in ("custom_encoder", "custom_reranker"):
        import_file("python_code", EXAMPLES / f"{name}.py")
    config_with(bonus=2.0).to_disk(tmp_path / "my.cfg")
    settings = {
        "training.max_epochs": 8,
        "training.eval_frequency": 8,
        "training.optimizer.learn_rate.initial_rate": 0.01,
    }
    overrides = {**write_corpus(tmp_path), **settings}
    train(tmp_path / "my.cfg", tmp_path / "out", overrides=overrides)
    trained = nlp = spacy.load(tmp_path / "out" / "model-best")
    linker = nlp.get_pipe("arbo_linker")
    tower = linker.model.get_ref("mention")
    assert tower.name == "hashed_features" and linker.kb.entity_vector_length == 64
    untrained = np.random.default_rng(0).normal(size=(16384, 64)).astype(np.float32)
    assert (to_numpy(tower.get_param("E")) != untrained).any()
    config = {"components": {"arbo_linker": {"reranker": {"bonus": 0.0}}}}
    scores = {}
    for bonus, nlp in (
        (0.0, spacy.load(tmp_path / "out" / "model-best", config=config)),
        (2.0, trained),
    ):
        assert repr(nlp.get_pipe("arbo_linker").reranker) == f"WordOverlap(bonus={bonus})"
        assert nlp.evaluate(examples(nlp, DEV))["arbo_acc"] >= 0.5
        text = "Look at [Mercury|planet], a planet of the solar system."
        (span,) = nlp(without_links(annotated(nlp, text))).ents
        scores[bonus] = {c.kb_id: c.score for c in span._.arbo.candidates}
    # "planet", "solar" and "system" are in the description of the planet, not in that of the metal.
    assert scores[2.0]["planet"] > scores[0.0]["planet"]
    assert scores[2.0]["metal"] == pytest.approx(scores[0.0]["metal"], abs=1e-3)


def test_service_is_mounted(saved_nlp, monkeypatch):
    testclient = pytest.importorskip("starlette.testclient")
    monkeypatch.setenv("ARBO_MODEL", str(saved_nlp))
    monkeypatch.setenv("ARBO_TOKEN", "secret")
    client = testclient.TestClient(import_file("serve", EXAMPLES / "serve.py").app)
    document = {"text": "Mercury is a planet.", "mentions": [{"start": 0, "end": 7}]}
    headers = {"Authorization": "Bearer secret"}
    answer = client.post("/linker/link", json={"documents": [document]}, headers=headers)
    assert answer.json()["documents"][0]["mentions"][0]["kb_id"] == "planet"


def test_csv_is_linked(tmp_path):
    script = import_file("link_csv", EXAMPLES / "link_csv.py")
    (tmp_path / "entities.csv").write_text(
        "id,title,aliases,description\nE1,Mercury,,planet\nE2,Amazon River,Amazon|Amazonas,\n"
    )
    (tmp_path / "texts.csv").write_text("text,id\nBoats on the amazonas.,a\nNothing.,\nMercury!,\n")
    script.main(*(str(tmp_path / f"{name}.csv") for name in ("entities", "texts", "links")))
    lines = (tmp_path / "links.csv").read_text(encoding="utf8").splitlines()
    assert lines[0] == "document,start,end,text,kb_id,title,score"
    assert lines[1].startswith("a,13,21,amazonas,E2,Amazon River,")
    assert lines[2].startswith("3,0,7,Mercury,E1,Mercury,") and len(lines) == 3


@pytest.mark.parametrize("name", ["quickstart", "discovery"])
def test_notebook_runs(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    notebook = srsly.read_json(EXAMPLES / f"{name}.ipynb")
    assert notebook["nbformat"] == 4
    assert not any(cell.get("outputs") for cell in notebook["cells"])
    names = {}
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]), names)
