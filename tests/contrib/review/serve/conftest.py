import pytest

from spacy_arbo_el import load_pipeline, save_pipeline

from . import world

pytest.importorskip("starlette", reason="the extra serve is not installed")


@pytest.fixture(scope="session")
def data():
    """The bytes of a pipeline with new entities: each test makes its own of them."""
    return world.pipeline()


@pytest.fixture
def model(data, tmp_path):
    """The folder of a pipeline."""
    save_pipeline(data, tmp_path / "model")
    return tmp_path / "model"


@pytest.fixture
def start(model):
    """Function that starts a server anew, as after a kill, and gives a browser at it."""
    return lambda **settings: world.Browser(load_pipeline(model), model, **settings)


@pytest.fixture
def browser(start):
    """A browser at a server."""
    return start()
