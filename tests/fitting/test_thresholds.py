"""Sweeps over thresholds: each row against linking at that threshold."""

import numpy as np
import pytest
import spacy
from spacy.training import Example

from spacy_arbo_el import find_linker
from spacy_arbo_el.corpora.docbin import write_docbin
from spacy_arbo_el.evaluation.holdout import remove_entities, with_removed_as_nil
from spacy_arbo_el.evaluation.report import CONFIGURED
from spacy_arbo_el.fitting.thresholds import (
    ThresholdSweep,
    cautious_row,
    middle_of_best,
    scores_of_links,
    sweep_linking,
)
from spacy_arbo_el.mentions.record import gold_ids

from ..commands import run
from ..expecting import raises
from ..linker.conftest import build
from ..linker.world import DEV, ENTITIES, TRAIN, annotated, without_links
from ..scores import compare_inference

NEW = [
    "The [Zorblat|NIL] landed.",
    "A green [Zorblat|NIL] landed again.",
    "We drank [Quimby's fizzle|NIL].",
]


@pytest.fixture
def nlp():
    return build(train=TRAIN[:6])


def docs_of(nlp):
    return [annotated(nlp, text) for text in [*DEV, *TRAIN[6:], *NEW]]


@pytest.mark.parametrize("settings", [{}, {"mentions": {"labels_discard": ["JUNK"]}}])
def test_linking_sweep_equals_linking_at_each_threshold(settings):
    nlp = build(train=TRAIN[:6], **settings)
    linker = find_linker(nlp)
    docs = [*docs_of(nlp), annotated(nlp, DEV[0], label="JUNK"), nlp.make_doc("none")]
    thresholds = np.array([0.0, 0.3, 0.6, 0.9])
    sweep = sweep_linking(linker, docs, thresholds)
    assert sweep.judged.shape == (2, 4, len(sweep.documents))
    for row in sweep.rows:
        linker.threshold = row["threshold"]
        examples = [Example(without_links(doc), doc) for doc in docs]
        scores = compare_inference(nlp, examples)[CONFIGURED]
        for key in ("arbo_acc", "arbo_nil_p", "arbo_nil_r", "arbo_nil_f", "nel_micro_f"):
            assert row[key] == pytest.approx(scores[key] or 0.0), (row["threshold"], key)


def test_mentions_of_removed_entities_are_nil(nlp, linker):
    docs = docs_of(nlp)
    mentioned = {i for doc in docs for s in doc.ents for i in gold_ids(s)}
    removed = remove_entities(linker, docs, 0.5, seed=1)
    assert len(removed) == round(len(mentioned) / 2)
    assert removed < mentioned
    assert len(linker.kb) == len(ENTITIES) - len(removed)
    for before, after in zip(docs, with_removed_as_nil(docs, linker.kb)):
        for old, new in zip(before.ents, after.ents):
            assert (old.text, old.label_) == (new.text, new.label_)
            if old.kb_id_ in removed:
                assert new.kb_id_ == "NIL"
                assert new.id_ == old.kb_id_
            else:
                assert new.kb_id_ == old.kb_id_
                assert new.id_ == ""
    linked = list(nlp.pipe([without_links(doc) for doc in docs]))
    assert not removed & {ent.kb_id_ for doc in linked for ent in doc.ents}
    assert remove_entities(find_linker(build(train=[])), docs, 0.5, seed=1) == removed
    with raises("E751.*from 0 to 1"):
        remove_entities(linker, docs, 2)


TRIED = np.array([0.0, 0.2, 0.4, 0.6, 0.8])


def sweep_of(probability, is_right, has_gold, documents):
    """A sweep over mentions with a probability each. No linker is needed for it."""
    linked = probability[None] >= TRIED[:, None]
    judged = np.stack([linked, linked & is_right])
    rows = [{"threshold": float(threshold)} for threshold in TRIED]
    sweep = ThresholdSweep(rows, judged, has_gold, documents)
    for name, values in scores_of(sweep).items():
        for row, value in zip(rows, values.tolist()):
            row[name] = value
    return sweep


def scores_of(sweep):
    """Each score at all thresholds."""
    scores = scores_of_links(*sweep.judged, sweep.has_gold, np.ones((len(sweep.has_gold), 1)))
    return {name: values[:, 0] for name, values in scores.items()}


def made_sweep(seed, documents, noise):
    return sweep_of(*made_mentions(seed, documents, noise))


def made_mentions(seed, documents, noise):
    """Ten mentions a document that should be linked from 0.6 on, but for a share of noise."""
    rng = np.random.default_rng(seed)
    probability = rng.random(documents * 10)
    is_right = (probability > 0.6) != (rng.random(len(probability)) < noise)
    return probability, is_right, is_right, np.repeat(np.arange(documents), 10)


def test_a_threshold_stays_where_two_documents_speak_against_one():
    probability = np.array([0.3, 0.3, 0.3, 0.9, 0.9, 0.9])
    is_right = np.array([False, False, True, True, True, True])
    sweep = sweep_of(probability, is_right, is_right, np.arange(6))
    assert middle_of_best(scores_of(sweep)["arbo_acc"]) == 3
    assert TRIED[cautious_row([sweep], "arbo_acc", 0.2)] == pytest.approx(0.2)


@pytest.mark.parametrize("score", ["arbo_acc", "nel_micro_f", "arbo_nil_p"])
@pytest.mark.parametrize("prior", [0.0, 0.4, 0.8])
def test_the_chosen_row_is_within_a_standard_error_and_no_such_row_is_nearer(score, prior):
    sweep = made_sweep(1, 12, 0.3)
    values = scores_of(sweep)[score]
    best, chosen = middle_of_best(values), cautious_row([sweep], score, prior)
    rng, leads = np.random.default_rng(5), []
    for _ in range(400):
        drawn = rng.integers(12, size=12)
        mentions = np.concatenate([np.flatnonzero(sweep.documents == one) for one in drawn])
        part = sweep._replace(
            judged=sweep.judged[:, :, mentions], has_gold=sweep.has_gold[mentions]
        )
        sampled = scores_of(part)[score]
        leads.append(sampled[best] - sampled)
    error = np.std(leads, axis=0)
    lead = values[best] - values
    assert lead[chosen] <= 1.2 * error[chosen] + 1e-9
    for row in np.flatnonzero(np.abs(TRIED - prior) < abs(TRIED[chosen] - prior)):
        assert lead[row] > 0.8 * error[row]


def test_several_sweeps_are_pooled_by_document():
    halves = [made_sweep(seed, 6, 0.3) for seed in (3, 4)]
    parts = [made_mentions(seed, 6, 0.3) for seed in (3, 4)]
    parts[1][3][:] += 6
    joined = sweep_of(*map(np.concatenate, zip(*parts)))
    assert cautious_row(halves, "arbo_acc", 0.0) == cautious_row([joined], "arbo_acc", 0.0)


def test_best_row_is_the_middle_of_equally_good_rows():
    for values, best in (([1, 2, 2, 2], 2), ([1], 0), ([2, 2], 0)):
        assert middle_of_best(np.array(values)) == best


def test_thresholds_are_chosen_by_what_mistakes_cost():
    """Twelve links are right above 0.5, and four more above 0.2, where eight are wrong."""
    probability = np.array([0.7] * 12 + [0.3] * 12)
    thresholds = np.arange(0, 1, 0.1)
    linked = probability >= thresholds[:, None]
    right = np.arange(24) < 16
    judged = np.stack([linked, linked & right])
    has_gold = np.ones(24, dtype=bool)
    rows = [{"threshold": float(one)} for one in thresholds]
    sweep = ThresholdSweep(rows, judged, has_gold, np.arange(24))
    chosen = {cost: rows[cautious_row([sweep], cost, 0.0)]["threshold"] for cost in (0.0, 4.0)}
    assert chosen[0.0] <= 0.3
    assert chosen[4.0] > 0.3
    assert chosen[4.0] <= 0.7


def test_command_of_thresholds(nlp, tmp_path):
    nlp.to_disk(tmp_path / "model")
    write_docbin(docs_of(nlp), tmp_path / "dev.spacy")
    arguments = ["fit", tmp_path / "model", tmp_path / "dev.spacy", "--thresholds"]
    of_output = ["-o", tmp_path / "tuned", "--drop", 0.4]
    said = run(*arguments, *of_output, "--curve", tmp_path / "curve.csv")
    assert "λ for linking" in said
    assert "→" in said
    tuned = find_linker(spacy.load(tmp_path / "tuned"))
    assert f"threshold = {tuned.threshold:g}" in said
    assert len(tuned.kb) == len(ENTITIES), "they are dropped for the fit alone"
    lines = (tmp_path / "curve.csv").read_text().splitlines()
    assert lines[0].startswith("threshold,arbo_acc,arbo_nil_p")
    assert len(lines) > 90
    assert "Nothing is saved" in run(*arguments, "--cost", 3)
    assert "not 'beauty'" in run(*arguments, "--by", "beauty", code=1)
    assert "E831" in run(*arguments, "--no-labels", code=1)
