"""The configs of the systems: built from their sources, complete, and accepted by spaCy."""

import inspect
from pathlib import Path
from types import ModuleType

import pytest
import spacy
from spacy.cli.debug_config import debug_config
from spacy.cli.init_config import fill_config
from spacy.util import import_file, load_config, registry
from thinc.api import Config, ConfigValidationError

from spacy_arbo_el.reranking.cross_encoder import cross_encoder
from spacy_arbo_el.reranking.feature_ranker import feature_ranker
from spacy_arbo_el.training.reranker import RerankerTraining

from .linker.world import write_corpus

CONFIGS = Path(__file__).parents[1] / "configs"
SYSTEMS = sorted(path.stem for path in (CONFIGS / "systems").glob("*.cfg"))


@pytest.fixture(scope="module")
def builder() -> ModuleType:
    return import_file("configs_build", CONFIGS / "build.py")


def settings(config, path=()):
    """All settings of a config by their path."""
    for key, value in config.items():
        if isinstance(value, dict):
            yield from settings(value, (*path, key))
        else:
            yield (*path, key), value


def test_there_is_a_complete_config_for_each_system():
    complete = {path.stem for path in CONFIGS.glob("*.cfg")} - {
        "base",
        "reranker",
    }
    assert complete == set(SYSTEMS) and len(SYSTEMS) == 18


@pytest.mark.parametrize("system", SYSTEMS)
def test_config_is_what_the_builder_makes(builder, system):
    text = (CONFIGS / f"{system}.cfg").read_text(encoding="utf8")
    assert builder.build(system) == text, "Run: python configs/build.py"


@pytest.mark.parametrize("system", SYSTEMS)
def test_config_begins_with_a_comment_on_the_system(system):
    source = (CONFIGS / "systems" / f"{system}.cfg").read_text(encoding="utf8")
    comment = source[: source.index("[")]
    assert comment and all(line.startswith("# ") for line in comment.splitlines())
    header, _, rest = (CONFIGS / f"{system}.cfg").read_text(encoding="utf8").partition("\n")
    assert header.endswith(f"configs/systems/{system}.cfg: edit those.") and rest.startswith(
        comment
    )


@pytest.mark.parametrize("system", SYSTEMS)
def test_settings_of_a_system_replace_those_of_the_base(builder, system):
    complete = dict(settings(Config().from_disk(CONFIGS / f"{system}.cfg", interpolate=False)))
    text = (CONFIGS / "systems" / f"{system}.cfg").read_text(encoding="utf8")
    own = dict(settings(builder.read_partial(text)))
    assert own and own.items() <= complete.items()


def test_another_function_replaces_a_section_as_a_whole():
    objective = load_config(CONFIGS / "in_batch.cfg")["components"]["arbo_linker"]["objective"]
    assert objective["negatives"] == {"@misc": "spacy-arbo-el.InBatchNegatives.v1"}


def test_normalizers_keep_their_order(builder):
    text = "[a]\nx = 1\n[a.*.second]\n@misc = 'b'\n[a.*.first]\n@misc = 'a'\n".replace("'", '"')
    assert list(builder.read_partial(text)["a"]["*"]) == ["second", "first"]
    system = text.replace("[a", "[system")
    assert builder.in_order(system).index("*.second") < builder.in_order(system).index("*.first")


@pytest.mark.parametrize("system", SYSTEMS)
def test_fill_config_has_nothing_to_fill(system, tmp_path):
    config, filled = fill_config(tmp_path / "filled.cfg", CONFIGS / f"{system}.cfg", silent=True)
    assert config == filled
    assert dict(settings(load_config(tmp_path / "filled.cfg"))) == dict(settings(config))


@pytest.mark.parametrize("system", SYSTEMS)
def test_linker_has_at_most_14_settings(system):
    linker = load_config(CONFIGS / f"{system}.cfg")["components"]["arbo_linker"]
    assert len(set(linker) - {"factory"}) <= 13


@pytest.fixture(scope="module")
def paths(tmp_path_factory):
    return write_corpus(tmp_path_factory.mktemp("corpus"))


@pytest.mark.parametrize("system", SYSTEMS)
def test_debug_config_accepts_it(system, paths, capsys):
    debug_config(CONFIGS / f"{system}.cfg", overrides=paths)
    assert "Config is valid" in capsys.readouterr().out


def test_the_config_of_arbo_rerank_is_copied_and_has_all_settings_with_their_defaults(builder):
    text = (CONFIGS / "reranker.cfg").read_text(encoding="utf8")
    assert (builder.PACKAGED / "reranker.cfg").read_text(encoding="utf8") == text
    config = Config().from_str(text)
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
