"""What is said before a training begins."""

from spacy.training.initialize import init_nlp

from spacy_arbo_el.runs.advice import advice_before_training, few_mentions

from ..linker.world import write_corpus
from ..systems import load_system


def test_few_mentions_are_said(tiny_bert, tmp_path):
    config = load_system("linker", {**write_corpus(tmp_path), "paths.encoder": str(tiny_bert)})
    (few,) = advice_before_training(init_nlp(config))
    assert few.startswith("20 mentions to train on, fewer than 200")


def test_enough_mentions_are_not_warned_of():
    assert not list(few_mentions(200)) and list(few_mentions(199))
