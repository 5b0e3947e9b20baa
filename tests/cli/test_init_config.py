"""``arbo init-config``: complete configs of the package's systems and of one's own."""

from functools import partial

import pytest
from spacy.training.initialize import init_nlp
from spacy.util import load_config

from spacy_arbo_el.config_sources import SYSTEMS

from .. import commands
from ..cases import cases
from ..linker.world import write_corpus
from ..systems import text_of

run = partial(commands.run, "init-config")


def test_the_recommended_system_is_written_by_default(tmp_path):
    path = tmp_path / "linker.cfg"
    assert f"arbo train {path}" in run(path).replace("\n", "")
    assert path.read_text(encoding="utf8") == text_of("linker")
    rate = load_config(path)["training"]["optimizer"]["learn_rate"]
    assert rate["initial_rate"] <= 2e-4


def test_language_and_encoder_are_those_asked_for_and_the_config_initializes(tmp_path, tiny_bert):
    path = tmp_path / "linker.cfg"
    run(path, "--system", "arborescence", "--nlp.lang", "de", "--paths.encoder", tiny_bert)
    nlp = init_nlp(load_config(path, overrides=write_corpus(tmp_path / "corpus")))
    assert nlp.lang == "de"
    assert nlp.get_pipe("arbo_linker").encoder.is_ready


def test_a_source_of_ones_own_keeps_its_language_and_may_name_ones_own_parts(tmp_path):
    (tmp_path / "part.py").write_text(
        "from spacy.util import registry\n"
        "from spacy_arbo_el.ranking.decisions import Independent\n"
        "@registry.misc('tests.Mine.v1')\n"
        "def mine(n_exemplars: int = 3):\n"
        "    return Independent(n_exemplars=n_exemplars)\n"
    )
    source = '# Mine.\n[nlp]\nlang = "de"\n[components.arbo_linker.inference]\n'
    (tmp_path / "mine.cfg").write_text(source + '@misc = "tests.Mine.v1"\n')
    run(tmp_path / "out.cfg", "--system", tmp_path / "mine.cfg", "--code", tmp_path / "part.py")
    assert (tmp_path / "out.cfg").read_text().startswith("# Mine.\n[paths]\n")
    config = load_config(tmp_path / "out.cfg")
    inference = config["components"]["arbo_linker"]["inference"]
    assert inference == {"@misc": "tests.Mine.v1", "n_exemplars": 3}
    assert config["nlp"]["lang"] == "de"


@pytest.mark.parametrize("source, problem", cases("broken_sources"))
def test_a_broken_source_is_named_with_its_problem(tmp_path, source, problem):
    (tmp_path / "mine.cfg").write_text(source)
    printed = run(tmp_path / "out.cfg", "--system", tmp_path / "mine.cfg", code=1)
    assert "mine.cfg" in printed
    assert problem in printed
    assert not (tmp_path / "out.cfg").exists()


def test_invalid_requests_are_said_and_nothing_is_replaced(tmp_path):
    path = tmp_path / "linker.cfg"
    printed = run(path, "--system", "all", code=1)
    assert "no system 'all'" in printed
    assert all(system in printed for system in SYSTEMS)
    assert "xq" in run(path, "--nlp.lang", "xq", code=1)
    assert not path.exists()
    path.write_text("mine")
    assert "already exists" in run(path, code=1)
    assert path.read_text() == "mine"
    run(path, "--force")
    assert path.read_text() != "mine"
