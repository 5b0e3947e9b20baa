"""Training of a mention scorer: which pairs, what it learns, interrupted runs, bad input."""

import re

import numpy as np
import pytest
import spacy
from hypothesis import given
from hypothesis import strategies as st
from thinc.api import Config
from typer.testing import CliRunner

from spacy_arbo_el.calibration.calibration import MENTION_KINDS
from spacy_arbo_el.cli import arbo_cli
from spacy_arbo_el.corpora.convert import write_docbin
from spacy_arbo_el.linker import find_linker
from spacy_arbo_el.mentions.labels import annotated_batches, identities_of
from spacy_arbo_el.pipelines import save_pipeline
from spacy_arbo_el.training.mention_pairs import (
    LabelledPairs,
    NearestPairs,
    are_same,
    binary_loss,
    identity_numbers,
)
from spacy_arbo_el.training.reranker_run import RerankerRun, read_config

from ..linker.conftest import build_tiny
from ..linker.world import DEV, TRAIN, annotated, docs_of
from ..tiny import save_tiny
from .test_reranker import stopping_at

SETTINGS = {
    "mention_scorer.window": 20,
    "pairs.n_searched": 8,
    "training.learn_rate": 0.01,
    "training.batch_size": 16,
}


def run(
    nlp, folder, report=lambda line: None, resume=False, every=0, train=TRAIN, dev=DEV, **settings
):
    config = read_config(None, {**SETTINGS, **settings}, "mention_scorer")
    runs = RerankerRun(nlp, config, folder, report)
    return runs.train_mentions(docs_of(nlp, train), docs_of(nlp, dev), resume=resume, every=every)


# Pairs


def mentions_of(nlp, docs):
    """The annotated mentions of documents, and their entities."""
    stages = find_linker(nlp).stages
    spans = [group for part in annotated_batches(stages.reader, docs) for group in part]
    batch = stages.encode(stages.read(spans))
    return (
        batch,
        identities_of(stages.datastore.kb, [span for group in spans for span in group]),
        stages,
    )


@pytest.mark.parametrize("match_types", [False, True])
def test_pairs_are_the_nearest_right_and_wrong_mentions(tiny_bert, match_types):
    retriever = {"@misc": "spacy-arbo-el.Retriever.v1", "match_types": match_types}
    nlp = build_tiny(tiny_bert, retriever=retriever)
    texts = [" ".join([*TRAIN[i : i + 2], "A new [thing|NIL] came."]) for i in range(len(TRAIN))]
    docs = [annotated(nlp, text, label="AB"[i % 2]) for i, text in enumerate(texts)]
    for doc in docs[:5]:
        # New entities with a cluster id count, those without are left out.
        spans = list(doc.ents)
        spans[-1].id_ = "cluster"
        doc.ents = spans
    batch, identities, stages = mentions_of(nlp, docs)
    assert sum(not identity for identity in identities) == 7
    settings = stages.datastore.settings
    first, second, similarities, correct = NearestPairs(1, 2, 9)(batch, identities, settings)
    expected = set()
    similarity = settings.similarity.blocks(batch.encoded, batch.encoded)
    for row, own in enumerate(identities):
        for others in (np.flatnonzero(batch.documents == batch.documents[row]), None):
            others = np.arange(len(batch)) if others is None else others
            order = others[np.argsort(-similarity[row][others], kind="stable")]
            order = [other for other in order.tolist() if other != row][:9]
            if match_types:
                order = [other for other in order if batch.labels[other] == batch.labels[row]]
            known = [other for other in order if own and identities[other]]
            right = [other for other in known if own & identities[other]][:1]
            wrong = [other for other in known if not own & identities[other]][:2]
            expected |= {(min(row, other), max(row, other)) for other in (*right, *wrong)}
    found = set(zip(first.tolist(), second.tolist()))
    assert len(found) == len(first) and len(found ^ expected) <= 0.05 * len(expected)
    for a, b, is_right in zip(first.tolist(), second.tolist(), correct.tolist()):
        assert is_right == bool(identities[a] & identities[b])
    assert correct.any() and not correct.all()
    np.testing.assert_allclose(similarities, similarity[first, second], atol=1e-5)


@given(st.lists(st.sets(st.sampled_from("abcd"), max_size=3), max_size=8))
def test_entities_in_common_are_those_of_sets(identities):
    numbers = identity_numbers(identities)
    found = are_same(numbers[:, None], numbers[None])
    expected = [[bool(one & other) for other in identities] for one in identities]
    assert found.tolist() == expected


@given(st.integers(0, 10_000), st.integers(1, 8))
def test_the_gradient_of_the_loss_is_that_of_finite_differences(seed, count):
    rng = np.random.default_rng(seed)
    scores, correct = rng.normal(size=count) * 3, rng.random(count) < 0.5
    loss, gradient = binary_loss(scores, correct)
    p = 1 / (1 + np.exp(-scores))
    assert loss == pytest.approx(-np.log(np.where(correct, p, 1 - p)).mean())
    for i in range(count):
        moved = scores.copy()
        moved[i] += 1e-5
        difference = (binary_loss(moved, correct)[0] - loss) / 1e-5
        assert gradient[i] == pytest.approx(difference, abs=1e-4)


# Training


def weights(mention_scorer):
    return mention_scorer.scorer.to_bytes()


@pytest.mark.slow
def test_it_learns_which_mentions_are_the_same(tiny_bert, tmp_path):
    nlp, lines = build_tiny(tiny_bert), []
    before = find_linker(nlp).encoder.fingerprint
    run(nlp, tmp_path, lines.append, **{"training.max_epochs": 60, "training.dropout": 0.0})
    assert re.search(r"Training on \d+ pairs, 0\.\d+ of the same entity", lines[0])
    assert re.fullmatch(r"Dev accuracy by similarity [01]\.\d+, \d+ edges", lines[1])
    losses = [float(re.search(r"loss ([\d.]+)", line).group(1)) for line in lines[2:]]
    assert losses[0] > 0.4 and losses[-1] < 0.2, lines
    assert find_linker(nlp).encoder.fingerprint == before, "the encoder stays as it is"


def test_it_learns_what_to_add_to_the_log_odds_by_similarity(tiny_bert, tmp_path):
    nlp, dev = build_tiny(tiny_bert), (*DEV, *TRAIN)
    # With so many neighbours that similarities of random vectors say something.
    settings = {"training.max_epochs": 1, "mention_scorer.n_scored": 40}
    own = run(nlp, tmp_path / "own", **settings, **{"training.residual": False})
    assert own.curve is None
    lines = []
    added = run(nlp, tmp_path / "added", lines.append, dev=dev, **settings)
    batch, identities, stages = mentions_of(nlp, docs_of(nlp, dev))
    pairs = NearestPairs(40, 40, 40)(batch, identities, stages.datastore.settings)
    examples = LabelledPairs(added, batch.inputs, *pairs)
    assert added.curve == pytest.approx(examples.curve()), "fitted on documents not trained on"
    nothing = np.zeros(len(examples), dtype=np.float32)
    slope, offset = added.curve
    by_similarity = slope * examples.similarities + offset
    accuracy = ((by_similarity > 0) == examples.correct).mean()
    assert f"Dev accuracy by similarity {accuracy:.4f}, {len(examples)} edges" in lines
    assert examples.accuracy(nothing) == pytest.approx(accuracy)
    assert examples.loss(nothing)[0] == pytest.approx(
        binary_loss(by_similarity, examples.correct)[0], rel=1e-4
    )


@pytest.mark.slow
def test_an_interrupted_run_ends_as_an_uninterrupted_one(tiny_bert, tmp_path, monkeypatch):
    nlp = build_tiny(tiny_bert)
    whole = run(nlp, tmp_path / "whole")
    assert weights(run(nlp, tmp_path / "again")) == weights(whole), "a run is reproducible"
    stopping_at(monkeypatch, 6)
    with pytest.raises(KeyboardInterrupt):
        run(nlp, tmp_path / "cut", every=2)
    lines = []
    resumed = run(nlp, tmp_path / "cut", lines.append, resume=True, every=2)
    assert "Resuming after step 4" in lines
    assert weights(resumed) == weights(whole)


def test_a_checkpoint_of_other_settings_is_refused(tiny_bert, tmp_path):
    nlp = build_tiny(tiny_bert)
    run(nlp, tmp_path, **{"training.max_epochs": 1})
    with pytest.raises(ValueError, match=r"E602.*pairs\.n_wrong"):
        run(nlp, tmp_path, resume=True, **{"training.max_epochs": 1, "pairs.n_wrong": 1})


def test_nothing_to_learn_from_is_refused(tiny_bert, tmp_path):
    nlp = build_tiny(tiny_bert)
    for train in (TRAIN[:1], [], ["A [jaguar|cat] ran from the [river|river]."]):
        with pytest.raises(ValueError, match="E911"):
            run(nlp, tmp_path, train=train)


def test_other_parts_are_refused(tiny_bert, tmp_path):
    nlp = build_tiny(tiny_bert)
    for section in ("mention_scorer", "pairs"):
        config = Config(read_config(None, SETTINGS, "mention_scorer"))
        config[section] = {"@misc": "spacy-arbo-el.BestEvidence.v1"}
        with pytest.raises(ValueError, match=f"E912.*{section}"):
            RerankerRun(nlp, config, tmp_path).train_mentions([], [])
    for wrong in ({"n_right": 0}, {"n_wrong": 0}, {"n_searched": 0}):
        with pytest.raises(ValueError, match="pairs"):
            NearestPairs(**wrong)


def test_an_encoder_without_token_types_is_refused(tmp_path):
    name = str(save_tiny(tmp_path / "distilbert", "distilbert"))
    nlp = build_tiny(name)
    with pytest.raises(ValueError, match="E872"):
        run(nlp, tmp_path / "out")


@pytest.mark.slow
def test_the_command_saves_a_pipeline_that_links_with_its_scores(tiny_bert, tmp_path):
    nlp = build_tiny(tiny_bert)
    save_pipeline(nlp, tmp_path / "model")
    for name, texts in (("train", TRAIN), ("dev", [*DEV, *TRAIN])):
        write_docbin(docs_of(nlp, texts), tmp_path / f"{name}.spacy")
    overrides = {**SETTINGS, "training.max_epochs": 1}
    names = [str(tmp_path / name) for name in ("model", "train.spacy", "dev.spacy")]
    settings = [part for key, value in overrides.items() for part in (f"--{key}", str(value))]
    command = ["rerank", *names, "--output", str(tmp_path / "out"), "--mentions", *settings]
    nothing = CliRunner().invoke(arbo_cli, [*command, "--limit", "1"])
    assert nothing.exit_code == 1 and "E911" in nothing.output, "one document has one mention"
    result = CliRunner().invoke(arbo_cli, command)
    assert result.exit_code == 0, result.output
    assert "mention scorer" in " ".join(result.output.split())
    second = CliRunner().invoke(arbo_cli, [*command, "--resume"])
    assert second.exit_code == 0 and "nothing is left to do" in " ".join(second.output.split())
    linker = find_linker(spacy.load(tmp_path / "out" / "model-last"))
    assert linker.stages.scores_mentions and linker.mention_scorer.window == 20
    # Curves on log-odds, as they are or fitted, and not those of cosines.
    before = find_linker(nlp).calibration
    for kind in MENTION_KINDS:
        assert getattr(linker.calibration, kind) != getattr(before, kind)
    assert linker.link_corpus(docs_of(nlp, DEV))
