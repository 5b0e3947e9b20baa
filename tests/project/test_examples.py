"""The examples train, link and draw, and the demo data is as its README describes it."""

import re
from pathlib import Path

import pytest
import spacy
import srsly
from spacy.training.initialize import init_nlp
from spacy.util import import_file, load_config_from_str
from thinc.api import Adam
from thinc.util import to_numpy

from spacy_arbo_el import Explanation, find_linker

from ..cases import cases
from ..expecting import raises
from ..linker.world import DEV, TRAIN, annotated, examples, write_corpus
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
    config = load_config_from_str(config_with(bonus=2.0).to_str(), write_corpus(tmp_path))
    nlp = init_nlp(config)
    linker = find_linker(nlp)
    tower = linker.model.get_ref("mention")
    untrained = to_numpy(tower.get_param("E")).copy()
    assert nlp.update(examples(nlp, TRAIN), sgd=Adam(0.01))["arbo_linker"] > 0
    assert (to_numpy(tower.get_param("E")) != untrained).any()
    assert tower.name == "hashed_features"
    assert linker.kb.entity_vector_length == 64
    assert nlp.evaluate(examples(nlp, DEV))["arbo_acc"] >= 0.5
    nlp.to_disk(tmp_path / "model")
    without = {"components": {"arbo_linker": {"reranker": {"bonus": 0.0}}}}
    scores = {}
    for again in (spacy.load(tmp_path / "model"), spacy.load(tmp_path / "model", config=without)):
        (span,) = again(annotated(again, "Look at [Mercury|planet] in the solar system.")).ents
        candidates = {one.kb_id: one.score for one in span._.arbo.candidates}
        scores[repr(find_linker(again).reranker)] = candidates["planet"]
    # "solar" and "system" are in the description of the planet.
    assert scores["WordOverlap(bonus=2.0)"] > scores["WordOverlap(bonus=0.0)"]


def test_service_is_mounted(saved_nlp, monkeypatch):
    testclient = pytest.importorskip("starlette.testclient")
    monkeypatch.setenv("ARBO_MODEL", str(saved_nlp))
    monkeypatch.setenv("ARBO_TOKEN", "secret")
    client = testclient.TestClient(import_file("serve", EXAMPLES / "serve.py").app)
    document = {"text": "Mercury is a planet.", "mentions": [{"start": 0, "end": 7}]}
    headers = {"Authorization": "Bearer secret"}
    answer = client.post("/linker/link", json={"documents": [document]}, headers=headers)
    assert answer.json()["documents"][0]["mentions"][0]["kb_id"] == "planet"


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


figures = import_file("figures", Path(__file__).parents[2] / "examples" / "figures.py")


def test_figures_show_the_numbers_that_they_are_given():
    (axes,) = figures.plot_cluster_sizes({"gold": [1, 5, 2]}).axes
    (line,) = axes.get_lines()
    assert line.get_xydata().tolist() == [[5, 1], [2, 2], [1, 3]]
    parts = {"words": -0.5, "name": 2.0}
    why = Explanation("x", None, titles={"a": "A"}, compared=("a", "b"), contributions=parts)
    (axes,) = figures.plot_contributions(why).axes
    bars = [(bar.get_x(), bar.get_width()) for bar in axes.patches]
    assert bars == [(0.0, 2.0), (2.0, -0.5), (0.0, 1.5)], "from nothing to the sum"


def test_map_has_each_mention_and_names_the_most_frequent_entities(nlp, linker):
    linker.refresh()
    docs = [annotated(nlp, text) for text in TRAIN]
    (axes,) = figures.plot_map(linker, docs, n_entities=2).axes
    sizes = [len(points.get_offsets()) for points in axes.collections]
    assert sizes == [14, 3, 1, 3, 1]
    assert len(axes.texts) == 2


ASSETS = Path(__file__).parents[2] / "assets"
README = (ASSETS / "README.md").read_text(encoding="utf8")


@pytest.fixture(scope="module")
def builder():
    return import_file("assets_build", ASSETS / "build.py")


def test_the_readme_has_the_counts_of_the_data(builder):
    """Documents, mentions, types, ambiguous names, and entities that train lacks."""
    printed = " ".join(builder.stats(builder.build(), builder.read_entities()).split())
    shown = re.search(r"<!-- stats -->.*?```text\n(.*?)```", README, re.S)[1].split()
    assert " ".join(shown[: shown.index("first")]) in printed
    assert f"first seen after train ({shown[-1]}):" in printed


def test_files_are_up_to_date(builder):
    for split, docs in builder.build().items():
        built = builder.to_jsonl(docs).encode("utf8")
        assert (ASSETS / f"{split}.jsonl").read_bytes() == built, "run python assets/build.py"


@pytest.mark.parametrize("source, problem", cases("bad_markup"))
def test_bad_markup_is_refused(builder, source, problem):
    with raises(problem):
        builder.parse(source, builder.read_entities(), "train.txt")
