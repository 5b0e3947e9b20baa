"""``arbo init-config``: complete configs that are part of the package."""

import configparser
from pathlib import Path

import pytest
from spacy.training.initialize import init_nlp
from spacy.util import load_config
from typer.testing import CliRunner

from spacy_arbo_el.cli import arbo_cli
from spacy_arbo_el.cli.init_config import CONFIGS, TASKS

from ..linker.world import write_corpus

ROOT = Path(__file__).parents[2]
SOURCES = {
    "names": "linker",
    "descriptions": "descriptions",
    "exemplars-only": "exemplars_only",
}


def run(*arguments, code=0):
    result = CliRunner().invoke(arbo_cli, ["init-config", *map(str, arguments)])
    assert result.exit_code == code, (result.output, result.exception)
    return " ".join(result.output.split())


@pytest.mark.parametrize("task", TASKS)
def test_config_of_a_task_is_that_of_its_system(task, tmp_path):
    run(tmp_path / "base.cfg", "--task", task)
    written = (tmp_path / "base.cfg").read_text(encoding="utf8")
    source = (ROOT / "configs" / f"{SOURCES[task]}.cfg").read_text(encoding="utf8")
    assert source.partition("\n")[2] == written, "Run: python configs/build.py"
    config = load_config(tmp_path / "base.cfg")
    assert config["training"]["optimizer"]["learn_rate"]["initial_rate"] <= 2e-4


def test_configs_are_package_data():
    # Those of `arbo pretrain` and `arbo rerank` are no tasks.
    others = {"pretrain", "reranker"}
    tasks = {path.stem for path in CONFIGS.glob("*.cfg")} - others
    assert tasks == set(TASKS) == set(SOURCES)
    settings = configparser.ConfigParser()
    settings.read(ROOT / "setup.cfg")
    assert "configs/*.cfg" in settings["options.package_data"]["spacy_arbo_el"]


def test_language_and_encoder_are_those_asked_for_and_the_config_initializes(tmp_path, tiny_bert):
    path = tmp_path / "base.cfg"
    run(path, "--task", "descriptions", "--lang", "de", "--encoder", tiny_bert)
    nlp = init_nlp(load_config(path, overrides=write_corpus(tmp_path / "corpus")))
    assert nlp.lang == "de" and nlp.get_pipe("arbo_linker").encoder.is_ready


def test_invalid_requests_are_said_and_nothing_is_replaced(tmp_path):
    path = tmp_path / "base.cfg"
    assert "no task 'all'" in run(path, "--task", "all", code=1)
    assert "xq" in run(path, "--lang", "xq", code=1)
    assert not path.exists()
    path.write_text("mine")
    assert "is there already" in run(path, code=1)
    assert path.read_text() == "mine"
    run(path, "--force")
    assert path.read_text() != "mine"
