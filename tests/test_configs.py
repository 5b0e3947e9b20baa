"""The systems: complete configs are made of their sources, and accepted by spaCy."""

import inspect

import pytest
import spacy
from spacy.cli.init_config import fill_config
from spacy.util import load_config, registry
from thinc.api import ConfigValidationError

from spacy_arbo_el.config_sources import default_training, in_order, read_partial
from spacy_arbo_el.contrib.papers.cross_encoder.cross_encoder import cross_encoder
from spacy_arbo_el.contrib.papers.cross_encoder.reranker import RerankerTraining, read_config
from spacy_arbo_el.ranking.feature_ranker import feature_ranker

from .systems import SOURCES, load_system, text_of, write_system


def settings(config, path=()):
    """All settings of a config by their path."""
    for key, value in config.items():
        if isinstance(value, dict):
            yield from settings(value, (*path, key))
        else:
            yield (*path, key), value


@pytest.mark.parametrize("system", sorted(SOURCES))
def test_comment_and_settings_of_a_source_are_those_of_the_complete_config(system):
    source = SOURCES[system].read_text(encoding="utf8")
    comment = source[: source.index("[")]
    assert comment
    assert all(line.startswith("# ") for line in comment.splitlines())
    assert text_of(system).startswith(f"{comment}[paths]\n")
    own = dict(settings(read_partial(source)))
    assert own
    assert own.items() <= dict(settings(load_system(system))).items()


def restated(own, known, path=()):
    """Settings that the default, or the function that a section names, has already.

    known: What the section is merged with; empty where there is none.
    """
    (promise,) = [key for key in {**known, **own} if key.startswith("@")] or [None]
    if promise in own and own[promise] != known.get(promise):
        known = {}
    if promise is not None:
        function = registry.get(promise[1:], {**known, **own}[promise])
        given = inspect.signature(function).parameters.items()
        known = {**{name: one.default for name, one in given}, **known}
    for key, value in own.items():
        if isinstance(value, dict):
            below = known.get(key)
            yield from restated(value, below if isinstance(below, dict) else {}, (*path, key))
        elif key in known and known[key] == value:
            yield ".".join((*path, key))


@pytest.mark.parametrize("system", sorted(SOURCES))
def test_a_source_restates_no_default(system):
    source = read_partial(SOURCES[system].read_text(encoding="utf8"))
    assert list(restated(source, default_training())) == []


def test_the_recommended_system_trains_the_component_that_add_pipe_gives():
    nlp = spacy.blank("en")
    nlp.add_pipe("arbo_linker")
    trained = load_system("linker", interpolate=True)["components"]["arbo_linker"]
    added = dict(settings(nlp.config["components"]["arbo_linker"]))
    assert dict(settings(trained)) == added | {("objective", "held_out"): 0.2}


@pytest.mark.parametrize("system", sorted(SOURCES))
def test_fill_config_has_nothing_to_fill(system, tmp_path):
    path = write_system(system, tmp_path)
    config, filled = fill_config(tmp_path / "filled.cfg", path, silent=True)
    assert config == filled
    assert dict(settings(load_config(tmp_path / "filled.cfg"))) == dict(settings(config))


def test_another_function_replaces_a_section_as_a_whole():
    objective = load_system("in_batch")["components"]["arbo_linker"]["objective"]
    assert objective["negatives"] == {"@misc": "spacy-arbo-el.InBatchNegatives.v1"}


def test_normalizers_keep_their_order():
    text = "[a]\nx = 1\n[a.*.second]\n@misc = 'b'\n[a.*.first]\n@misc = 'a'\n".replace("'", '"')
    assert list(read_partial(text)["a"]["*"]) == ["second", "first"]
    system = text.replace("[a", "[system")
    assert in_order(system).index("*.second") < in_order(system).index("*.first")


def test_the_config_of_arbo_rerank_has_all_settings_with_their_defaults():
    config = read_config(None, {})
    parts = registry.resolve(config)
    reranker = cross_encoder(feature_ranker(pretrained=False))
    assert parts == {"reranker": reranker, "training": RerankerTraining()}
    for section, function in (("reranker", cross_encoder), ("training", RerankerTraining)):
        names = set(inspect.signature(function).parameters)
        assert set(config[section]) - {"@misc"} == names


@pytest.mark.parametrize("part", ["model", "mentions", "retriever", "inference", "reranker"])
@pytest.mark.parametrize("value", [None, "nothing"])
def test_a_part_that_is_none_is_named(part, value):
    with pytest.raises(ConfigValidationError, match=rf"-> {part}\s"):
        spacy.blank("en").add_pipe("arbo_linker", config={part: value})


def test_an_index_that_is_none_is_named():
    with pytest.raises(ConfigValidationError, match=r"-> index\s"):
        spacy.blank("en").add_pipe("arbo_linker", config={"retriever": {"index": None}})
