"""Training that is killed and resumed ends with the same pipeline as training without a break."""

import json
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import spacy
import torch
from thinc.api import Adam, Linear, Model

from spacy_arbo_el.corpora.convert import write_docbin
from spacy_arbo_el.training.checkpoint import (
    Checkpoint,
    History,
    read_checkpoint,
    restore_checkpoint,
    write_checkpoint,
)
from spacy_arbo_el.training.loop import CHECKPOINT

from ..linker.world import TRAIN, annotated, write_corpus

ROOT = Path(__file__).parents[2]
# Documents without mentions and entities with one mention give batches without gradients.
TEXTS = [
    *TRAIN[:6],
    "Nothing is named here.",
    "Nor is here.",
    *TRAIN[6:],
    "Only [Mars|mars] is alone.",
]
FIRST_PASS = 6


class Worker:
    """The program ``killable.py``, which trains in processes that can be killed."""

    def __init__(self, errors):
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.training.killable"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            cwd=ROOT,
            env={**os.environ, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"},
        )

    def train(self, output, settings, *, resume=False, every=2, kill_at=0, kill_after=0.0):
        """Train. RETURNS: The log and the number of points; None if training was killed."""
        job = [str(output), settings, resume, every, kill_at, kill_after]
        print(json.dumps(job), file=self._process.stdin, flush=True)
        answer = json.loads(self._process.stdout.readline())
        assert not answer.get("error"), answer["error"]
        return answer or None

    def close(self):
        self._process.stdin.close()
        self._process.wait()


@pytest.fixture(scope="module")
def worker(tmp_path_factory):
    with (tmp_path_factory.mktemp("worker") / "errors").open("w") as errors:
        worker = Worker(errors)
        yield worker
        worker.close()


@pytest.fixture(scope="module")
def overrides(tmp_path_factory, tiny_bert):
    folder = tmp_path_factory.mktemp("corpus")
    paths = write_corpus(folder)
    nlp = spacy.blank("en")
    write_docbin([annotated(nlp, text) for text in TEXTS], folder / "train.spacy")
    return {
        **paths,
        "paths.encoder": str(tiny_bert),
        "training.max_epochs": 2,
        "training.eval_frequency": 5,
        "training.dropout": 0.1,
        "training.batcher.size": 2,
        "training.logger.progress_bar": False,
    }


def settings_of(kind, overrides):
    """The settings of a run: the recommended system, with more that a checkpoint must keep."""
    if kind == "averages":
        more = {
            "training.optimizer.use_averages": True,
            "training.patience": 10,
            "training.accumulate_gradient": 2,
            "components.arbo_linker.objective.refresh.every": 7,
        }
        return {"overrides": {**overrides, **more}}
    if kind == "another component":
        ner = {"nlp.pipeline": ["ner", "arbo_linker"], "components.ner": {"factory": "ner"}}
        return {"overrides": overrides, **ner}
    if kind == "new mentions":
        reader = {
            "@readers": "arbo_tests.growing_corpus.v1",
            "path": overrides["paths.train"],
            "first": FIRST_PASS,
        }
        steps = {"training.max_epochs": -1, "training.max_steps": 16}
        return {"overrides": {**overrides, **steps}, "corpora.train": reader}
    return {"overrides": overrides}


def rows_of(log):
    """Losses and scores of the progress lines, without the times and the memory."""
    return [line.split()[:8] for line in log.splitlines() if line.strip()[:1].isdigit()]


def contents(output):
    """All files of a training. A knowledge base has an id of its own; its vectors are compared by
    the fingerprint of the encoder that they are of."""
    files = {}
    for path in sorted(path for path in output.rglob("*") if path.is_file()):
        name = str(path.relative_to(output))
        if path.name == "manifest.json":
            files[name] = json.loads(path.read_bytes()).get("encoder")
        elif "/kb/" not in name and path.name != CHECKPOINT:
            files[name] = path.read_bytes()
    return files


def resume_until_it_ends(worker, output, settings, kills):
    """Train, and resume after each kill. RETURNS: The last log, and the number of kills."""
    resume = False
    for number, kill in enumerate([*kills, {}]):
        answer = worker.train(output, settings, resume=resume, **kill)
        if answer is not None:
            return answer["log"], number
        resume = True
    raise AssertionError("it was killed without a reason")


@pytest.mark.attack
@pytest.mark.slow
@pytest.mark.parametrize("kind", ["plain", "averages", "another component", "new mentions"])
def test_killed_and_resumed_training_equals_one_without_a_break(
    worker, overrides, attacks, tmp_path, kind
):
    settings = settings_of(kind, overrides)
    whole = worker.train(tmp_path / "whole", settings)
    expected, points = contents(tmp_path / "whole"), whole["points"]
    assert "model-best/meta.json" in expected
    rng, killed, rounds, wanted = random.Random(kind), 0, 0, attacks(2, 25)
    # Kills round the last evaluation, when the best model, the last one and the checkpoint are
    # written; then anywhere, at calls that change files and at times.
    chosen = [points - n for n in (1, 2, 4)]
    while killed < wanted:
        kills = [{"kill_at": chosen.pop() if chosen else rng.randrange(1, points)}]
        kills.append({"kill_at": rng.randrange(1, points)})
        kills.append({"kill_after": rng.uniform(0.2, whole["seconds"])})
        kills = kills[: min(3, wanted - killed)]
        rounds += 1
        output = tmp_path / f"killed{rounds}"
        log, count = resume_until_it_ends(worker, output, settings, kills)
        killed += count
        assert rows_of(log) == rows_of(whole["log"]), kills
        found = contents(output)
        different = [
            name for name in {**expected, **found} if expected.get(name) != found.get(name)
        ]
        assert not different, (kills, different)
        shutil.rmtree(output)
    print(f"{killed} kills in {rounds} trainings")


@pytest.mark.slow
def test_training_that_has_ended_is_not_repeated(worker, overrides, tmp_path):
    settings = settings_of("plain", {**overrides, "training.max_epochs": 1})
    worker.train(tmp_path, settings)
    times = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    log = worker.train(tmp_path, settings, resume=True)["log"]
    assert "has ended after step 7: nothing is left to do" in " ".join(log.split())
    assert times == {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    # With other settings it is another training.
    settings["overrides"]["training.dropout"] = 0.2
    log = worker.train(tmp_path, settings, resume=True)["log"]
    assert len(rows_of(log)) == 3
    # So it is without its result.
    shutil.rmtree(tmp_path / "model-last")
    assert len(rows_of(worker.train(tmp_path, settings, resume=True)["log"])) == 3


class Torch(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.used, self.unused = torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)


class Shim:
    """As thinc's shim of a torch module."""

    def __init__(self):
        self.id, self._model = 10**6, Torch()


class Pipe:
    is_trainable = True

    def __init__(self):
        self.model = Model("m", lambda model, X, is_train: (X, lambda d: d))
        self.model._layers = [Linear(2, 2).initialize(), Linear(2, 2).initialize()]
        self.model._shims = [Shim()]


class Pipeline:
    def __init__(self):
        self.pipeline = [("pipe", Pipe())]


def test_checkpoint_keeps_which_parameters_have_a_gradient(tmp_path):
    """Momentum changes a parameter whose gradient is zero, but not one without a gradient."""
    nlp, again = Pipeline(), Pipeline()
    model, optimizer = nlp.pipeline[0][1].model, Adam(0.1)
    zero, unfinished = model.layers
    zero.set_grad("W", np.zeros((2, 2), dtype="f"))
    unfinished.set_grad("W", np.array([[1, -0.0], [np.nan, 0]], dtype="f"))
    module = model.shims[0]._model
    module.used.weight.grad = torch.zeros(2, 2)
    module.used.bias.grad = torch.ones(2)
    write_checkpoint(tmp_path / "c", nlp, optimizer, History(0, {}, [], [], [], ""))
    restore_checkpoint(read_checkpoint(tmp_path / "c"), again, Adam(0.1))
    new = again.pipeline[0][1].model
    for old_node, new_node in zip(model.layers, new.layers):
        assert new_node.get_param("W").tobytes() == old_node.get_param("W").tobytes()
        assert new_node.get_grad("W").tobytes() == old_node.get_grad("W").tobytes()
        assert not new_node.has_grad("b")
    restored = new.shims[0]._model
    assert torch.equal(restored.used.weight, module.used.weight)
    assert torch.equal(restored.used.weight.grad, torch.zeros(2, 2))
    assert torch.equal(restored.used.bias.grad, torch.ones(2))
    assert restored.unused.weight.grad is None


def test_checkpoint_of_another_architecture_is_an_error(tmp_path):
    nlp, other = Pipeline(), Pipeline()
    write_checkpoint(tmp_path / "c", nlp, Adam(0.1), History(0, {}, [], [], [], ""))
    other.pipeline[0][1].model.layers[0].set_param("W", np.zeros((3, 2), dtype="f"))
    with pytest.raises(ValueError, match=r"arbo-E605.*W has \(3, 2\) and \(2, 2\)"):
        restore_checkpoint(read_checkpoint(tmp_path / "c"), other, Adam(0.1))


@pytest.mark.attack
def test_each_flipped_bit_of_a_checkpoint_is_an_error(tmp_path, attacks):
    path = tmp_path / "c"
    write_checkpoint(path, Pipeline(), Adam(0.1), History(0, {}, [], [], [], ""))
    assert isinstance(read_checkpoint(path), Checkpoint)
    whole = path.read_bytes()
    flips = attacks(500, 10000)
    # The first line and the header of the arrays, and places all over the file.
    bits = [
        *range(flips // 2),
        *np.linspace(0, 8 * len(whole) - 1, flips // 2).astype(int).tolist(),
    ]
    for bit in bits:
        damaged = bytearray(whole)
        damaged[bit // 8] ^= 1 << (bit % 8)
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match="arbo-E601") as error:
            read_checkpoint(path)
        assert str(path) in str(error.value)
    for end in np.linspace(0, len(whole) - 1, 50).astype(int).tolist():
        path.write_bytes(whole[:end])
        with pytest.raises(ValueError, match="arbo-E601"):
            read_checkpoint(path)
