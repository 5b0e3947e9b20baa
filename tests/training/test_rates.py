"""A warning of learning rates that ruin a pretrained encoder."""

import warnings

import pytest
from thinc.api import Adam, Model

from spacy_arbo_el.training.trainer import warn_of_high_rate


@pytest.fixture(autouse=True)
def nobody_is_warned_yet(monkeypatch):
    monkeypatch.setattr("spacy_arbo_el.training.trainer._warned_of", set())


def encoder(pretrained):
    tower = Model("tower", lambda model, X, is_train: (X, lambda d: d))
    tower.attrs["pretrained"] = pretrained
    both = Model("dual", lambda model, X, is_train: (X, lambda d: d), layers=[tower])
    both.set_ref("mention", tower)
    both.set_ref("entity", tower)
    return both


def test_the_default_rate_of_spacy_is_warned_of_once_per_optimizer():
    sgd, model = Adam(0.001), encoder(True)
    with pytest.warns(UserWarning, match="learning rate of 'linker' is 0.001.*init-config"):
        warn_of_high_rate("linker", model, sgd)
    before = model.to_bytes()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_high_rate("linker", model, sgd)
        warn_of_high_rate("linker", model, Adam(1e-4))
        warn_of_high_rate("linker", encoder(False), Adam(0.01))
    assert model.to_bytes() == before


def test_update_of_the_linker_warns(tiny_bert):
    from ..linker.conftest import build
    from ..linker.world import TRAIN, examples

    nlp = build(model={"mention": {"name": str(tiny_bert), "window": 24, "precision": "float32"}})
    sgd = nlp.create_optimizer()
    assert sgd.learn_rate == 0.001, "what spacy init config gives"
    with pytest.warns(UserWarning, match="learning rate"):
        nlp.update(examples(nlp, TRAIN[:2]), sgd=sgd)
