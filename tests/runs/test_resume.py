"""Training that is killed, wherever that is, and resumed."""

import io
import json
import os
import random
import shutil
import signal
import sys
import time
import warnings

import numpy as np
import pytest
import spacy
from spacy.training.initialize import init_nlp
from spacy.util import registry
from thinc.api import Adam, Linear, chain
from thinc.util import to_numpy

from spacy_arbo_el.corpora.docbin import write_docbin
from spacy_arbo_el.runs.checkpoint import Checkpoint, read_checkpoint
from spacy_arbo_el.runs.loop import train

from ..kills import STEP, Points, in_process
from ..linker.world import TRAIN, annotated, write_corpus
from ..systems import load_system

# Documents without mentions and entities with one mention give batches without gradients.
TEXTS = [
    *TRAIN[:6],
    "Nothing is named here.",
    "Nor is here.",
    *TRAIN[6:],
    "Only [Mars|mars] is alone.",
]


@registry.callbacks("arbo_tests.step.v1")
def count_steps():
    return lambda nlp, info: sys.audit(STEP)


def train_in_process(output, settings, resume=False, **kill):
    """Train in a forked process. RETURNS: The log and the number of points; None if killed."""

    def work(say):
        config = load_system("in_batch", settings["overrides"])
        config["components"].update(settings.get("components", {}))
        config["nlp"]["pipeline"] = settings.get("pipeline", config["nlp"]["pipeline"])
        config["training"]["before_update"] = {"@callbacks": "arbo_tests.step.v1"}
        log = io.StringIO()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            train(init_nlp(config), output, resume=resume, stdout=log)
        say(json.dumps(log.getvalue()).encode())

    run = in_process(work, watch=Points.at_changes, **kill)
    return None if run.killed else (json.loads(run.said[-1]), run.points)


@pytest.fixture(scope="module")
def overrides(tmp_path_factory, tiny_bert):
    folder = tmp_path_factory.mktemp("corpus")
    paths = write_corpus(folder)
    nlp = spacy.blank("xx")
    write_docbin([annotated(nlp, text) for text in TEXTS], folder / "train.spacy")
    return {
        **paths,
        "paths.encoder": str(tiny_bert),
        "training.max_epochs": 2,
        "training.eval_frequency": 5,
        "training.dropout": 0.0,
        # So that nothing depends on when vectors were encoded.
        "components.arbo_linker.objective.refresh.every": 1,
        "training.batcher.size": 2,
    }


VARIANTS = ("averages", "another component")


def settings_of(kind, overrides):
    """The settings of a run: the recommended system, with more that a checkpoint must keep."""
    if kind == "averages":
        more = {
            "training.optimizer.use_averages": True,
            "training.patience": 10,
            "training.accumulate_gradient": 2,
        }
        return {"overrides": {**overrides, **more}}
    if kind == "another component":
        ner = {"pipeline": ["ner", "arbo_linker"], "components": {"ner": {"factory": "ner"}}}
        return {"overrides": overrides, **ner}
    return {"overrides": overrides}


def rows_of(log):
    """The step and the scores of the lines."""
    rows = [line.split() for line in log.splitlines() if line.strip()[:1].isdigit()]
    return [[row[1], *row[3:]] for row in rows]


def trained(folder):
    """What a training has learned: weights, and the mentions that the linker keeps."""
    nlp = spacy.load(folder)
    linker = nlp.get_pipe("arbo_linker")
    module = linker.model.get_ref("mention").shims[0]._model
    weights = [p.detach().cpu().numpy() for p in module.parameters()]
    return weights, linker.exemplars.records, nlp.meta


def without_losses(meta):
    """The scores. A run that is resumed after its last step has no losses."""
    return {name: s for name, s in meta["performance"].items() if not name.endswith("_loss")}


def resume_until_it_ends(output, settings, kills):
    """Train, and resume after each kill. RETURNS: The last log, and the number of kills."""
    resume = False
    for number, kill in enumerate([*kills, {}]):
        answer = train_in_process(output, settings, resume, **kill)
        if answer is not None:
            return answer[0], number
        resume = True
    raise AssertionError("it was killed without a reason")


@pytest.mark.attack
@pytest.mark.slow
@pytest.mark.parametrize(
    "kind", ["plain", *(pytest.param(kind, marks=pytest.mark.nightly) for kind in VARIANTS)]
)
def test_killed_and_resumed_training_loses_nothing(overrides, attacks, tmp_path, kind):
    """A kill loses the steps since the last evaluation, and both folders are whole.

    Nothing is drawn at random here, so that the weights are those of a run without a break. But a
    named entity recognizer draws random numbers: batches have another order after the break.
    """
    settings = settings_of(kind, overrides)
    start = time.monotonic()
    log, points = train_in_process(tmp_path / "whole", settings)
    rows, seconds = rows_of(log), time.monotonic() - start
    weights, records, meta = trained(tmp_path / "whole" / "model-last")
    rng, killed, rounds, wanted = random.Random(kind), 0, 0, attacks(1, 25)
    # Kills round the last evaluation, when the best model, the last one and the checkpoint are
    # written; then anywhere, at calls that change files and at times.
    chosen = [points - n for n in (1, 2, 4)]
    while killed < wanted:
        kills = [{"kill_at": chosen.pop() if chosen else rng.randrange(1, points)}]
        kills.append({"kill_at": rng.randrange(1, points)})
        kills.append({"kill_after": rng.uniform(0.2, seconds)})
        kills = kills[: min(3, wanted - killed)]
        rounds += 1
        output = tmp_path / f"killed{rounds}"
        log, count = resume_until_it_ends(output, settings, kills)
        killed += count
        best = trained(output / "model-best")
        new_weights, new_records, new_meta = trained(output / "model-last")
        assert sorted(map(repr, new_records)) == sorted(map(repr, records)), kills
        if kind != "another component":
            new_rows = rows_of(log)
            assert new_rows == rows[len(rows) - len(new_rows) :], kills
            assert without_losses(new_meta) == without_losses(meta), kills
            for a, b in zip(new_weights, weights):
                np.testing.assert_allclose(a, b, atol=1e-5, err_msg=str(kills))
        assert best[2]["performance"]["arbo_acc"] >= new_meta["performance"]["arbo_acc"]
        assert len(list(output.iterdir())) == 3, kills
        shutil.rmtree(output)
    print(f"{killed} kills in {rounds} trainings")


@pytest.mark.slow
def test_a_run_that_was_killed_after_its_last_step_gets_its_last_evaluation(
    overrides, tmp_path, monkeypatch
):
    more = {"training.max_epochs": 1, "training.eval_frequency": 7}
    settings = settings_of("averages", {**overrides, **more})
    train_in_process(tmp_path / "whole", settings)
    with monkeypatch.context() as patched:
        method = "spacy_arbo_el.runs.loop._Training.evaluate_all"
        patched.setattr(method, lambda *args: os.kill(os.getpid(), signal.SIGKILL))
        assert train_in_process(tmp_path / "killed", settings) is None
    train_in_process(tmp_path / "killed", settings, resume=True)
    for model in ("model-best", "model-last"):
        whole, killed = (spacy.load(tmp_path / run / model) for run in ("whole", "killed"))
        assert without_losses(whole.meta) == without_losses(killed.meta)
        vectors = [nlp.get_pipe("arbo_linker").exemplars.vectors for nlp in (whole, killed)]
        np.testing.assert_array_equal(*vectors)


@pytest.mark.slow
@pytest.mark.nightly
def test_training_that_has_ended_is_not_repeated(overrides, tmp_path):
    settings = settings_of("plain", {**overrides, "training.max_epochs": 1})
    train_in_process(tmp_path, settings)
    times = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    log, _ = train_in_process(tmp_path, settings, resume=True)
    assert "has ended after step 7: nothing is left to do" in " ".join(log.split())
    assert times == {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    # With other settings it is another training.
    settings["overrides"]["training.dropout"] = 0.2
    log, _ = train_in_process(tmp_path, settings, resume=True)
    assert len(rows_of(log)) == 3
    # So it is without its result.
    shutil.rmtree(tmp_path / "model-last")
    assert len(rows_of(train_in_process(tmp_path, settings, resume=True)[0])) == 3


class Pipe:
    is_trainable = True

    def __init__(self):
        self.model = chain(Linear(2, 2), Linear(2, 2)).initialize()


def pipes():
    return [("pipe", Pipe())]


def test_checkpoint_keeps_the_moments_of_the_optimizer(tmp_path):
    """A model has other ids in another process."""
    trained, again = pipes(), pipes()
    optimizer, new = Adam(0.1, use_averages=True), Adam(0.1, use_averages=True)
    model = trained[0][1].model
    for step in range(2):
        for layer in model.layers:
            layer.set_grad("W", layer.ops.alloc2f(2, 2) + step + 1)
        model.finish_update(optimizer)
    Checkpoint.of("id", 1, [], trained, optimizer).write(tmp_path / "c")
    read_checkpoint(tmp_path / "c").restore(again, new)
    for old, layer in zip(model.layers, again[0][1].model.layers):
        for node, its_optimizer in ((old, optimizer), (layer, new)):
            node.set_grad("W", node.ops.alloc2f(2, 2) + 1)
            node.finish_update(its_optimizer)
        assert layer.get_param("W").tobytes() == old.get_param("W").tobytes()
        key, new_key = (old.id, "W"), (layer.id, "W")
        assert new.nr_update[new_key] == 3
        assert optimizer.nr_update[key] == 3
        averages = to_numpy(new.averages[new_key]), to_numpy(optimizer.averages[key])
        np.testing.assert_array_equal(*averages)
