"""Training that is interrupted and goes on: the same result as in one go."""

import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import spacy
from spacy.training.initialize import init_nlp
from spacy.util import load_config, registry
from thinc.api import Adam

from spacy_arbo_el.corpora.convert import write_docbin
from spacy_arbo_el.training.checkpoint import Progress, read_checkpoint, write_checkpoint
from spacy_arbo_el.training.loop import CHECKPOINT, train

from ..linker.world import TRAIN, annotated, write_corpus

CONFIG = Path(__file__).parents[2] / "configs" / "arborescence_1rand.cfg"
BREAK_AT = []


class Broken(Exception):
    pass


@registry.callbacks("arbo_tests.break_off.v1")
def break_off():
    def before_update(nlp, info):
        if info["step"] in BREAK_AT:
            raise Broken

    return before_update


@pytest.fixture(scope="module")
def paths(tmp_path_factory):
    return write_corpus(tmp_path_factory.mktemp("corpus"))


def settings_of(paths, **more):
    return {
        **paths,
        "training.max_epochs": 3,
        "training.eval_frequency": 4,
        "training.dropout": 0.1,
        "training.logger.progress_bar": False,
        **more,
    }


def run(paths, output, resume=False, callback=True, every=0, **more):
    sections = {key: more.pop(key) for key in list(more) if key.startswith(("nlp.", "components."))}
    config = load_config(CONFIG, overrides=settings_of(paths, **more), interpolate=False)
    for key, value in sections.items():
        section, name = key.split(".")
        config[section][name] = value
    if callback:
        config["training"]["before_update"] = {"@callbacks": "arbo_tests.break_off.v1"}
    log = io.StringIO()
    train(init_nlp(config), output, resume=resume, every=every, stdout=log)
    return log.getvalue()


def weights(folder):
    shim = spacy.load(folder).get_pipe("arbo_linker").model.get_ref("mention").shims[0]
    return [p.detach().numpy() for p in shim._model.parameters()]


def scores_of(log):
    """Losses and scores of the progress lines, not how long it took."""
    return [line.split()[:-3] for line in log.splitlines() if line.strip()[:1].isdigit()]


@pytest.fixture(scope="module")
def unbroken(paths, tmp_path_factory):
    output = tmp_path_factory.mktemp("unbroken")
    log = run(paths, output)
    assert not (output / CHECKPOINT).exists()
    return log, weights(output / "model-last")


@pytest.mark.slow
@pytest.mark.parametrize("at", [[3], [4, 7]])
def test_a_broken_run_goes_on_as_if_it_had_not_been(paths, unbroken, tmp_path, at):
    for step in at:
        BREAK_AT[:] = [step]
        with pytest.raises(Broken):
            run(paths, tmp_path, resume=True, every=1)
        assert read_checkpoint(tmp_path / CHECKPOINT).progress.step == step - 1
    BREAK_AT.clear()
    log = run(paths, tmp_path, resume=True)
    assert f"Going on after step {at[-1] - 1}" in log
    # Losses, scores and weights, to the last bit.
    assert scores_of(log) == scores_of(unbroken[0])
    for a, b in zip(weights(tmp_path / "model-last"), unbroken[1]):
        np.testing.assert_array_equal(a, b)
    assert (tmp_path / "model-best").is_dir() and not (tmp_path / CHECKPOINT).exists()


@pytest.mark.slow
def test_other_settings_and_other_documents_are_told(paths, tmp_path):
    BREAK_AT[:] = [2]
    with pytest.raises(Broken):
        run(paths, tmp_path)
    BREAK_AT.clear()
    with pytest.raises(ValueError, match="training.dropout"):
        run(paths, tmp_path, resume=True, **{"training.dropout": 0.0})
    nlp = spacy.blank("en")
    kept = Path(paths["paths.train"]).read_bytes()
    try:
        write_docbin([annotated(nlp, text) for text in TRAIN[1:]], paths["paths.train"])
        with pytest.raises(ValueError, match="other documents"):
            run(paths, tmp_path, resume=True)
    finally:
        Path(paths["paths.train"]).write_bytes(kept)
    checkpoint = tmp_path / CHECKPOINT
    checkpoint.write_bytes(checkpoint.read_bytes()[:5000])
    with pytest.raises(ValueError, match="no checkpoint that can be read"):
        run(paths, tmp_path, resume=True)
    # Without resume a broken checkpoint is of no account.
    run(paths, tmp_path, **{"training.max_epochs": 1})


@pytest.mark.slow
def test_killed_and_resumed(paths, unbroken, tmp_path):
    command = [sys.executable, "-m", "spacy", "arbo", "train", str(CONFIG), "--every", "1"]
    command += ["--output", str(tmp_path)]
    for name, value in settings_of(paths).items():
        command += [f"--{name}", value if isinstance(value, str) else json.dumps(value)]
    environment = {**os.environ, "HF_HUB_OFFLINE": "1"}
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
    checkpoint = tmp_path / CHECKPOINT
    end = time.monotonic() + 300
    while not checkpoint.exists() and process.poll() is None and time.monotonic() < end:
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL, "it was over before it was killed"
    log = run(paths, tmp_path, resume=True, callback=False)
    assert "Going on after step" in log
    assert scores_of(log) == scores_of(unbroken[0])
    for a, b in zip(weights(tmp_path / "model-last"), unbroken[1]):
        np.testing.assert_array_equal(a, b)


@pytest.mark.slow
def test_a_component_that_draws_random_numbers_beside_it(paths, tmp_path):
    """spaCy's NER does in every update; the order of batches must not depend on it."""
    settings = {"nlp.pipeline": ["ner", "arbo_linker"], "components.ner": {"factory": "ner"}}
    unbroken = run(paths, tmp_path / "unbroken", **settings)
    BREAK_AT[:] = [7]
    with pytest.raises(Broken):
        run(paths, tmp_path / "broken", every=1, **settings)
    BREAK_AT.clear()
    log = run(paths, tmp_path / "broken", resume=True, **settings)
    assert "Going on after step 6" in log
    # The linker's weights do not depend on the NER's; its own are restored too.
    folders = [tmp_path / name / "model-last" for name in ("broken", "unbroken")]
    for a, b in zip(*map(weights, folders)):
        np.testing.assert_array_equal(a, b)
    one, other = (spacy.load(folder).get_pipe("ner").model.to_bytes() for folder in folders)
    assert one == other
    assert scores_of(log) == scores_of(unbroken)


def test_scores_are_kept_to_the_last_digit(tmp_path):
    nlp = spacy.blank("en")
    scores = [(2 / 3, {"arbo_acc": 1 / 3, "worse": float("nan")}), (0.8333333333333334, {})]
    progress = Progress(7, {"arbo_linker": float("inf")}, scores, [{}, {"a": 0.1}], ["x"], "c")
    write_checkpoint(tmp_path / "c", nlp, Adam(0.1), progress)
    again = read_checkpoint(tmp_path / "c").progress
    assert again.evaluations[0][0] == 2 / 3 and again.evaluations[0][1]["arbo_acc"] == 1 / 3
    assert np.isnan(again.evaluations[0][1]["worse"])
    assert again.evaluations[1:] == scores[1:] and again.losses == progress.losses


def test_the_last_step_is_scored_out_of_turn(paths, tmp_path):
    settings = {"training.max_epochs": 1, "training.eval_frequency": 100}
    log = scores_of(run(paths, tmp_path, callback=False, **settings))
    assert [line[1] for line in log] == ["0", "2"]
    assert (tmp_path / "model-best").is_dir()


def test_early_stopping(paths, tmp_path):
    settings = {"training.patience": 4, "training.max_epochs": 100, "training.eval_frequency": 2}
    # Nothing is learned at this rate: the first score stays the best.
    settings["training.optimizer.learn_rate.initial_rate"] = 0.0
    log = scores_of(run(paths, tmp_path, callback=False, **settings))
    assert [line[1] for line in log] == ["0", "2", "4"]
