"""The learning rate, whose steps are counted on the corpus."""

import io
from itertools import islice

import numpy as np
import pytest
import spacy
from spacy.training.initialize import init_nlp
from spacy.training.loop import train as spacy_train
from spacy.util import registry

from spacy_arbo_el.linker import ArboLinker
from spacy_arbo_el.runs.loop import train as arbo_train

from ..cases import cases
from ..linker.world import write_corpus
from ..systems import load_system

NLP = spacy.blank("xx")
NAME = "spacy-arbo-el.WarmupLinear.v1"


def rates(documents=100, size=5, read=None, **settings):
    """The rates of a training on so many documents."""

    def corpus(nlp):
        for number in range(documents):
            if read is not None:
                read.append(number)
            yield number

    batcher = registry.batchers.get("spacy.batch_by_sequence.v1")(size=size)
    settings = {"max_epochs": 4, "max_steps": 0, **settings}
    return registry.schedules.get(NAME)(0.5, corpus, batcher, **settings)


def counted(values):
    """The step with the highest rate, and the last one with a rate above 0."""
    first = np.array(list(islice(values, 2000)))
    top = int(first.argmax())
    assert first[0] == 0 and first[top] == 0.5
    assert (np.diff(first[: top + 1]) > 0).all() and (np.diff(first[top:]) <= 0).all()
    return top, int(np.flatnonzero(first)[-1])


@pytest.mark.parametrize(("settings", "rising", "steps"), cases("schedules"))
def test_it_rises_over_a_tenth_of_the_steps_and_falls_until_their_end(settings, rising, steps):
    assert counted(rates(**settings)) == (rising, steps)


def test_the_corpus_is_read_when_training_begins_and_no_further_than_needed():
    read = []
    values = rates(read=read)
    assert next(values) == 0 and not read
    next(values)
    assert read == list(range(100))
    read.clear()
    list(islice(rates(read=read, max_steps=20), 2))
    assert len(read) <= 30, "5 batches of an epoch of 20"
    read.clear()
    list(islice(rates(read=read, max_epochs=0, max_steps=20), 2))
    assert not read


def test_a_training_without_an_end_is_refused():
    with pytest.raises(ValueError, match="max_epochs and max_steps are both 0"):
        rates(max_epochs=0)


@pytest.mark.slow
@pytest.mark.parametrize("train", [spacy_train, arbo_train])
def test_trainings_of_spacy_and_of_this_package_follow_it(tiny_bert, tmp_path, monkeypatch, train):
    """Four epochs of three batches: the rate of the last step is that before 0."""
    seen = []
    finish = ArboLinker.finish_update
    monkeypatch.setattr(
        ArboLinker,
        "finish_update",
        lambda self, sgd: (seen.append(sgd.learn_rate), finish(self, sgd)),
    )
    paths = {**write_corpus(tmp_path), "paths.encoder": str(tiny_bert)}
    config = load_system("linker", {**paths, "training.eval_frequency": 100})
    config["training"]["before_to_disk"] = None
    (tmp_path / "out").mkdir()
    train(init_nlp(config), tmp_path / "out", stdout=io.StringIO(), stderr=io.StringIO())
    assert len(seen) == 12
    np.testing.assert_allclose(seen, 1e-4 * np.array([0, 1, *np.arange(11, 1, -1) / 12]))
