"""The number of exemplars that vote, chosen on documents."""

import numpy as np

from spacy_arbo_el.corpora.docbin import write_docbin
from spacy_arbo_el.fitting.thresholds import sweep_linking
from spacy_arbo_el.pipelines import load_pipeline

from ..commands import run_script
from ..linker.conftest import build
from ..linker.world import TRAIN, docs_of
from .test_labels import SCRIPT

VOTE = {"@misc": "spacy-arbo-el.ExemplarVote.v1", "n_exemplars": 15}


def test_the_number_with_the_best_accuracy_is_saved(tmp_path):
    nlp = build(train=TRAIN, inference=VOTE)
    nlp.to_disk(tmp_path / "model")
    docs = docs_of(nlp)
    write_docbin(docs, tmp_path / "dev.spacy")
    paths = [str(tmp_path / "model"), str(tmp_path / "dev.spacy")]
    options = ["--n-exemplars", "15", "1", "2", "--output", str(tmp_path / "tuned")]
    printed = run_script(SCRIPT.with_name("tuned_counts.py"), *paths, *options)
    scores = {}
    for count in (15, 1, 2):
        linker = build(train=TRAIN, inference={**VOTE, "n_exemplars": count})
        linker = linker.get_pipe("arbo_linker")
        row = sweep_linking(linker, docs, np.array([linker.threshold])).rows[0]
        scores[count] = row["arbo_acc"]
        assert f"n_exemplars = {count}: accuracy {row['arbo_acc']:.4f}" in printed
    best = min(scores, key=lambda count: (-scores[count], count))
    tuned = load_pipeline(tmp_path / "tuned").get_pipe("arbo_linker")
    assert tuned.stages.inference.n_exemplars == best
