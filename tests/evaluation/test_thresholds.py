"""Both λ: each row of a sweep against linking at that very threshold."""

from dataclasses import replace

import numpy as np
import pytest
import spacy
from spacy.training import Example
from typer.testing import CliRunner

from spacy_arbo_el.cli import arbo_cli
from spacy_arbo_el.corpora.convert import write_docbin
from spacy_arbo_el.evaluation.clusters import b_cubed, cluster_scores
from spacy_arbo_el.evaluation.dropping import drop_entities, without_dropped
from spacy_arbo_el.evaluation.report import scores_of
from spacy_arbo_el.evaluation.thresholds import best_row, sweep_discovery, sweep_linking
from spacy_arbo_el.evaluation.tuning import as_csv, store, tune
from spacy_arbo_el.mentions import gold_ids

from ..linker.conftest import build
from ..linker.world import DEV, ENTITIES, TRAIN, annotated, without_links

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


@pytest.mark.parametrize("settings", [{}, {"labels_discard": ["JUNK"]}])
def test_rows_are_what_linking_at_the_threshold_scores(settings):
    nlp = build(train=TRAIN[:6], **settings)
    linker = nlp.get_pipe("arbo_linker")
    docs = [*docs_of(nlp), annotated(nlp, DEV[0], label="JUNK"), nlp.make_doc("none")]
    thresholds = np.array([0.0, 0.3, 0.6, 0.9])
    swept = sweep_linking(linker, docs, thresholds)
    assert swept.linked.shape == (4, len(swept.forms)) == (4, len(swept.labels))
    for row in swept.rows:
        linker.threshold = row["threshold"]
        examples = [Example(without_links(doc), doc) for doc in docs]
        scores = scores_of(nlp, linker, linker.inference, examples)
        for key in ("arbo_acc", "arbo_nil_p", "arbo_nil_r", "arbo_nil_f", "nel_micro_f"):
            assert row[key] == pytest.approx(scores[key] or 0.0), (row["threshold"], key)


def test_dropping_entities(nlp):
    linker = nlp.get_pipe("arbo_linker")
    docs = docs_of(nlp)
    mentioned = {i for doc in docs for s in doc.ents for i in gold_ids(s)}
    dropped = drop_entities(linker, docs, 0.5, seed=1)
    assert len(dropped) == round(len(mentioned) / 2) and dropped < mentioned
    assert len(linker.kb) == len(ENTITIES) - len(dropped)
    for before, after in zip(docs, without_dropped(docs, linker.kb)):
        for old, new in zip(before.ents, after.ents):
            assert (old.text, old.label_) == (new.text, new.label_)
            if old.kb_id_ in dropped:
                assert new.kb_id_ == "NIL" and new.id_ == old.kb_id_
            else:
                assert new.kb_id_ == old.kb_id_ and new.id_ == ""
    linked = list(nlp.pipe([without_links(doc) for doc in docs]))
    assert not dropped & {ent.kb_id_ for doc in linked for ent in doc.ents}
    assert drop_entities(build(train=[]).get_pipe("arbo_linker"), docs, 0.5, seed=1) == dropped
    with pytest.raises(ValueError, match="between 0 and 1"):
        drop_entities(linker, docs, 2)


def test_groups_at_each_threshold(nlp):
    linker = nlp.get_pipe("arbo_linker")
    docs = docs_of(nlp)
    drop_entities(linker, docs, 0.5)
    swept = sweep_linking(linker, without_dropped(docs, linker.kb), np.array([0.0, 0.5]))
    thresholds = np.array([0.2, 0.5, 0.8])
    for letters in (0.0, 0.2):
        discovery = replace(linker.discovery, letters=letters)
        grouped = sweep_discovery(discovery, swept, 1, linker, thresholds)
        told = [i for i, label in enumerate(swept.labels) if label is not None]
        assert grouped.rows[0]["mentions"] == len(told), "few are unlinked: all are grouped"
        calibration = replace(linker.calibration, new=grouped.curve)
        vectors, forms = swept.vectors[told], [swept.forms[i] for i in told]
        for row in grouped.rows:
            one = replace(discovery, threshold=row["threshold"])
            found = one.group(one.features(vectors, forms), linker.similarity, calibration)
            expected = cluster_scores([swept.labels[i] for i in told], found.tolist())
            assert row["ari"] == pytest.approx(expected["ari"])
            assert row["b3_f"] == pytest.approx(expected["b3_f"])


def test_best_row():
    rows = [{"threshold": t, "x": v} for t, v in ((0.0, 1.0), (0.1, 2.0), (0.2, 2.0), (0.3, 2.0))]
    assert best_row(rows, "x") == 2, "the middle of what is equally good"
    assert best_row(rows[:1], "x") == 0 and best_row([rows[1], rows[2]], "x") == 0


def test_nothing_to_tune_on(nlp):
    with pytest.raises(ValueError, match="no annotated mention"):
        sweep_linking(nlp.get_pipe("arbo_linker"), [nlp.make_doc("nothing")])


def test_what_is_tuned_is_kept(nlp, tmp_path):
    linker = nlp.get_pipe("arbo_linker")
    docs = docs_of(nlp)
    tuned = tune(linker, docs, drop=0.4)
    assert len(linker.kb) < len(ENTITIES) and tuned.calibration is not None
    again = build(train=TRAIN[:6])
    store(again, tuned)
    again.to_disk(tmp_path / "model")
    kept = spacy.load(tmp_path / "model").get_pipe("arbo_linker")
    assert kept.threshold == tuned.threshold and len(kept.kb) == len(ENTITIES)
    assert kept.discovery == tuned.found() == again.get_pipe("arbo_linker").discovery
    assert kept.calibration.new == pytest.approx(tuned.discovery.curve)
    lines = as_csv(tuned.linking).splitlines()
    assert lines[0].startswith("threshold,arbo_acc,arbo_nil_p") and len(lines) > 90
    alone = build(train=[], discovery=None)
    tuned = tune(alone.get_pipe("arbo_linker"), docs)
    assert tuned.discovery is None and "letters" not in tuned.summary
    store(alone, tuned)


def test_the_command(nlp, tmp_path):
    nlp.to_disk(tmp_path / "model")
    write_docbin(docs_of(nlp), tmp_path / "dev.spacy")
    arguments = ["tune", tmp_path / "model", tmp_path / "dev.spacy", "-o", tmp_path / "tuned"]
    arguments += ["--drop", 0.4, "--curve", tmp_path / "curve.csv", "--discovery-score", "b3_f"]
    result = CliRunner().invoke(arbo_cli, list(map(str, arguments)))
    assert result.exit_code == 0, result.output
    assert "λ for linking" in result.output and "→" in result.output
    config = spacy.util.load_config(tmp_path / "tuned" / "config.cfg")["components"]["arbo_linker"]
    said = f"threshold = {config['threshold']:g}, discovery.threshold = "
    assert said + f"{config['discovery']['threshold']:g}" in result.output
    assert len((tmp_path / "curve.csv").read_text().splitlines()) > 90
    result = CliRunner().invoke(arbo_cli, [*map(str, arguments[:3]), "--score", "beauty"])
    assert result.exit_code == 1 and "no score 'beauty'" in result.output


def test_b_cubed_of_one_cluster():
    assert b_cubed(np.array([0, 0, 1, 1]), np.zeros(4, int)) == pytest.approx((0.5, 1.0, 2 / 3))
