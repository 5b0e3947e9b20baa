"""What is said before a training begins."""

from spacy.training.initialize import init_nlp

from spacy_arbo_el.runs.advice import advice_before_training

from ..linker.world import write_corpus
from ..systems import load_system


def advice(paths, **changes):
    """The lines for the small corpus: 12 documents in three batches, 20 mentions."""
    config = load_system("linker", {**paths, **changes})
    nlp = init_nlp(config)
    before = nlp.config.to_str()
    lines = list(advice_before_training(nlp, nlp.config.interpolate()["training"]))
    assert nlp.config.to_str() == before
    return lines


def test_a_warm_up_longer_than_the_run_is_said(tiny_bert, tmp_path):
    paths = {**write_corpus(tmp_path), "paths.encoder": str(tiny_bert)}
    warmup = "training.optimizer.learn_rate.warmup_steps"
    (long,) = advice(paths)
    assert "warm-up of 50 steps is longer than the run of 12" in long
    assert not advice(paths, **{warmup: 11}), "four epochs of three batches"
    assert "run of 4" in advice(paths, **{warmup: 4, "training.max_steps": 4})[0]
    assert not advice(paths, **{warmup: 4, "training.max_epochs": 0, "training.max_steps": 5})
    assert not advice(paths, **{warmup: 0})
    total = "training.optimizer.learn_rate.total_steps"
    (ends_early,) = advice(paths, **{warmup: 1, total: 5})
    assert "0 from step 5 on, and the run has more than 10 steps" in ends_early
    assert not advice(paths, **{warmup: 1, total: 6}), "twelve steps are twice as many"
    assert "from step 5" in advice(paths, **{warmup: 1, total: 5, "training.max_epochs": 0})[0]
