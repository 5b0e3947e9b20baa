"""Removed parts: each registered one says what replaced it, whatever settings the config gives."""

from configparser import ConfigParser
from pathlib import Path

import pytest
import spacy
from spacy.util import registry
from thinc.api import Config

from spacy_arbo_el.config_sources import FOLDER
from spacy_arbo_el.pipelines import load_pipeline, save_pipeline
from spacy_arbo_el.removed import removed
from spacy_arbo_el.training.reranker_run import read_config

from .commands import run
from .linker.conftest import build_tiny

SETUP = Path(__file__).parents[1] / "setup.cfg"


def names():
    """The registry and the full name of each removed part in ``setup.cfg``."""
    setup = ConfigParser()
    setup.optionxform = str
    setup.read(SETUP, encoding="utf8")
    for group, lines in setup["options.entry_points"].items():
        for line in filter(None, lines.split("\n")):
            name, _, place = line.partition(" = ")
            if "removed:" in place:
                yield group.partition("_")[2], name


@pytest.mark.parametrize("kind, name", sorted(names()))
def test_a_removed_part_says_what_replaced_it(kind, name):
    with pytest.raises(ValueError, match=f"{name} was removed. [A-Z]"):
        registry.resolve({"part": {f"@{kind}": name}})


def test_the_old_settings_are_accepted():
    registry.misc.register("test.Removed.v1", func=removed("Removed.v1", "Use this.", "old"))
    with pytest.raises(ValueError, match="Removed.v1 was removed. Use this."):
        registry.resolve(Config().from_str('[part]\n@misc = "test.Removed.v1"\nold = 3'))


OLD = """
[components]
[components.arbo_linker]
factory = "arbo_linker"
mention_scorer = 1

[components.arbo_linker.retriever]
@misc = "spacy-arbo-el.Retriever.v1"
max_exemplars = 20

[components.arbo_linker.retriever.lookup]
@misc = "spacy-arbo-el.StringLookup.v1"

[components.other]
factory = "other"
lookup = 1
"""


def test_one_message_has_all_removed_settings(tmp_path):
    """Of a saved pipeline, and of a config to train with; those of other components stay."""
    nlp = spacy.blank("en")
    nlp.to_disk(tmp_path)
    path = tmp_path / "config.cfg"
    config = nlp.config.merge({"nlp": {"pipeline": ["arbo_linker"]}})
    config.merge(Config().from_str(OLD)).to_disk(path)
    said = run("train", path, "--output", "out", code=1)
    with pytest.raises(ValueError, match="removed. Delete them") as error:
        load_pipeline(tmp_path)
    for text in (str(error.value), said):
        for name in ("mention_scorer", "retriever.max_exemplars", "retriever.lookup"):
            assert f"components.arbo_linker.{name}: " in " ".join(text.split())
        assert "components.other" not in text


def test_an_older_pipeline_is_loaded_where_removed_settings_have_no_effect(tiny_bert, tmp_path):
    nlp = build_tiny(tiny_bert)
    nlp.to_disk(tmp_path / "model")
    path = tmp_path / "model" / "config.cfg"
    config = Config().from_disk(path, interpolate=False)
    linker = config["components"]["arbo_linker"]
    linker["mention_scorer"] = None
    linker["retriever"].update(lookup=None, max_exemplars=0)
    linker["model"]["mention"]["layers"] = 0
    config.to_disk(path)
    again = load_pipeline(tmp_path / "model", config={"components.arbo_linker.threshold": 0.25})
    assert again.get_pipe("arbo_linker").threshold == 0.25
    assert len(again.get_pipe("arbo_linker").kb) == len(nlp.get_pipe("arbo_linker").kb)
    save_pipeline(again, tmp_path / "model")
    assert "lookup" not in spacy.load(tmp_path / "model").config["components"]["arbo_linker"]


def test_the_settings_of_cross_fitting_are_named(tmp_path):
    path = tmp_path / "reranker.cfg"
    path.write_text((FOLDER / "reranker.cfg").read_text(encoding="utf8") + "\nfolds = 2\n")
    with pytest.raises(ValueError, match="training.folds: experiments/cross_fitting.py"):
        read_config(path, {})
