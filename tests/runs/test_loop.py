"""The training loop: checkpoints, which model it takes, and vectors that are stored before."""

import io
from pathlib import Path

import numpy as np
import pytest
import spacy
from spacy.training.initialize import init_nlp
from spacy.util import registry

from spacy_arbo_el import ArboKB, Entity, find_linker
from spacy_arbo_el.corpora.docbin import write_docbin
from spacy_arbo_el.kb.importers import write_entities_jsonl
from spacy_arbo_el.retrieval import datastore
from spacy_arbo_el.runs import evaluation, loop
from spacy_arbo_el.runs.checkpoint import CHECKPOINT, Checkpoint, read_checkpoint
from spacy_arbo_el.runs.evaluation import ERROR, is_chosen
from spacy_arbo_el.runs.loop import train
from spacy_arbo_el.training.trainer import TrainingDiverged

from ..default import entities, marked
from ..expecting import raises, warns
from ..linker.world import DEV, ENTITIES, TRAIN, annotated, parse, write_corpus
from ..systems import load_system
from ..tiny import save_tiny

SYSTEM = "in_batch"
EVERY = "components.arbo_linker.objective.refresh.every"
INTERRUPT_AT = []


class Interrupted(Exception):
    pass


@registry.callbacks("arbo_tests.interrupt.v1")
def interrupt():
    def before_update(nlp, info):
        if info["step"] in INTERRUPT_AT:
            raise Interrupted

    return before_update


@pytest.fixture(scope="module")
def paths(tiny_bert, tmp_path_factory):
    return {**write_corpus(tmp_path_factory.mktemp("corpus")), "paths.encoder": str(tiny_bert)}


def settings_of(paths, **more):
    return {
        # So that nothing depends on when vectors were encoded.
        EVERY: 1,
        **paths,
        "training.max_epochs": 3,
        "training.eval_frequency": 4,
        "training.dropout": 0.0,
        **{f"components.arbo_linker.model.mention.{name}": 24 for name in ("window", "text")},
        **more,
    }


def run(paths, output, resume=False, callback=True, eval_entities=0, **more):
    whole = [key for key in more if key.startswith(("nlp.", "components."))]
    sections = {key: more.pop(key) for key in (*whole, "training.optimizer") if key in more}
    config = load_system(SYSTEM, settings_of(paths, **more))
    for key, value in sections.items():
        section, name = key.split(".")
        config[section][name] = value
    if callback:
        config["training"]["before_update"] = {"@callbacks": "arbo_tests.interrupt.v1"}
    log = io.StringIO()
    train(init_nlp(config), output, resume=resume, eval_entities=eval_entities, stdout=log)
    return log.getvalue()


def weights(folder):
    shim = find_linker(spacy.load(folder)).model.get_ref("mention").shims[0]
    return [p.detach().cpu().numpy() for p in shim._model.parameters()]


@pytest.mark.slow
def test_the_best_model_keeps_its_weights_when_it_is_scored_again(paths, tmp_path, monkeypatch):
    """At the end it is evaluated once more, with all entities."""
    before, evaluate_all = [], loop._Training.evaluate_all

    def recorded(training, *args):
        before.extend(weights(tmp_path / "model-best"))
        evaluate_all(training, *args)

    monkeypatch.setattr(loop._Training, "evaluate_all", recorded)
    monkeypatch.setattr(loop, "is_chosen", lambda evaluations: len(evaluations) == 2)
    run(paths, tmp_path, eval_entities=6)
    after, last = weights(tmp_path / "model-best"), weights(tmp_path / "model-last")
    assert before
    assert all(map(np.array_equal, before, after))
    assert not all(map(np.array_equal, after, last))


@pytest.mark.slow
def test_resuming_with_other_settings_documents_or_a_damaged_checkpoint_is_an_error(
    paths, tmp_path
):
    INTERRUPT_AT[:] = [2]
    with pytest.raises(Interrupted):
        run(paths, tmp_path)
    INTERRUPT_AT.clear()
    with raises("other settings or other data"):
        run(paths, tmp_path, resume=True, **{"training.dropout": 0.2})
    nlp = spacy.blank("xx")
    kept = Path(paths["paths.train"]).read_bytes()
    try:
        write_docbin([annotated(nlp, text) for text in TRAIN[1:]], paths["paths.train"])
        with raises("other settings or other data"):
            run(paths, tmp_path, resume=True)
    finally:
        Path(paths["paths.train"]).write_bytes(kept)
    checkpoint = tmp_path / CHECKPOINT
    checkpoint.write_bytes(checkpoint.read_bytes()[:5000])
    with raises("not a readable checkpoint"):
        run(paths, tmp_path, resume=True)
    # Without resume a damaged checkpoint is ignored.
    run(paths, tmp_path, **{"training.max_epochs": 1})


def test_checkpoints_keep_scores_exactly(tmp_path):
    scores = [(2 / 3, {"arbo_acc": 1 / 3, "worse": float("nan")}), (0.8333333333333334, {})]
    Checkpoint("id", 7, scores, {"a": {"total": 2}}, {"w": np.ones(2)}).write(tmp_path / "c")
    again = read_checkpoint(tmp_path / "c")
    assert again.evaluations[0][0] == 2 / 3
    assert again.evaluations[0][1]["arbo_acc"] == 1 / 3
    assert np.isnan(again.evaluations[0][1]["worse"])
    assert again.evaluations[1:] == scores[1:]
    assert again.identity == "id"
    assert again.step == 7
    assert again.counts == {"a": {"total": 2}}
    assert again.arrays["w"].tolist() == [1, 1]


def test_evaluation_without_gold_ids_is_warned_of(paths, tmp_path):
    nlp = spacy.blank("xx")
    write_docbin([annotated(nlp, "The [jaguar|] sleeps.")], tmp_path / "dev.spacy")
    with warns("W520.*arbo_balanced_acc"):
        run({**paths, "paths.dev": str(tmp_path / "dev.spacy")}, tmp_path / "out", callback=False)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_diverged_training_is_an_error_and_is_not_saved(paths, tmp_path):
    # The rate is 0 in the first step, which is evaluated and saved.
    settings = {"training.optimizer.learn_rate.initial_rate": 1e30, "training.eval_frequency": 100}
    with pytest.raises(TrainingDiverged, match="E607.*'arbo_linker' is nan"):
        run({**paths, EVERY: 0}, tmp_path, callback=False, **settings)
    assert all(np.isfinite(array).all() for array in weights(tmp_path / "model-last"))


PATIENT = {"training.patience": 4, "training.max_epochs": 100, "training.eval_frequency": 2}


@pytest.mark.slow
@pytest.mark.parametrize(
    "settings, steps",
    [
        ({"training.max_epochs": 1, "training.eval_frequency": 100}, ["0", "2"]),
        # Nothing is learned at this rate: the first score stays the best.
        ({**PATIENT, "training.optimizer.learn_rate.initial_rate": 1e-12}, ["0", "2", "4"]),
    ],
    ids=["the last step", "early stopping"],
)
def test_steps_that_are_evaluated(paths, tmp_path, settings, steps):
    log = run(paths, tmp_path, callback=False, **settings)
    rows = [line.split() for line in log.splitlines() if line.strip()[:1].isdigit()]
    assert [row[1] for row in rows] == steps
    assert (tmp_path / "model-best").is_dir()


MANY = [Entity(f"e{i}", f"thing number {i}") for i in range(60)]


@pytest.mark.slow
def test_evaluations_search_some_entities_and_the_last_all(paths, tmp_path, monkeypatch):
    write_entities_jsonl([*ENTITIES, *MANY], tmp_path / "kb.jsonl")
    config = load_system(
        SYSTEM, {**settings_of(paths), "paths.kb": str(tmp_path / "kb.jsonl"), EVERY: -1}
    )
    nlp, sizes, limits = init_nlp(config), [], []
    linker = find_linker(nlp)
    verbalize = linker.datastore.settings.verbalization
    names = {text for entity in linker.kb for text in verbalize(entity)}
    n_rows = sum(len(verbalize(entity)) for entity in linker.kb)
    gold = {kb_id for text in DEV for _, _, kb_id in parse(text)[1]}

    encode_texts = datastore.encode_texts

    def encode(encoder, texts):
        sizes.append(len(texts))
        return encode_texts(encoder, texts)

    monkeypatch.setattr(datastore, "encode_texts", encode)
    of = evaluation.LimitedSearch.of
    monkeypatch.setattr(
        evaluation.LimitedSearch, "of", lambda *args: limits.append(of(*args)) or limits[-1]
    )
    log = io.StringIO()
    train(nlp, tmp_path / "out", eval_entities=40, stdout=log)
    (among,) = limits[0].among.values()
    chosen = linker.kb.entities.at_all(np.flatnonzero(among).tolist()).values()
    assert gold <= {entity.id for entity in chosen}
    assert 30 < sum(len(verbalize(entity)) for entity in chosen) <= 40
    some = {text for entity in chosen for text in verbalize(entity)}
    assert sizes[0] == len(names), "the untrained encoder reads all once"
    assert set(sizes[1:]) == {len(some), len(names - some)}
    assert sizes.count(len(names - some)) <= 2, "the last pipeline, and the best if it is another"
    n_encoded = len(sizes)
    for name in ("model-last", "model-best"):
        kb = find_linker(spacy.load(tmp_path / "out" / name)).kb
        assert kb.in_sync
        assert (kb.rows.owners >= 0).sum() == n_rows
    assert len(sizes) == n_encoded, "what was saved is complete"


def chosen(scores, error=0.02):
    """The number of the last model that was taken as the best."""
    evaluations = [(score, {ERROR: error} if error else {}) for score in scores]
    return max(i for i in range(len(scores)) if is_chosen(evaluations[: i + 1]))


@pytest.mark.parametrize(
    "scores, expected",
    [
        ([0.80, 0.82, 0.81, 0.805], 3),
        ([0.80, 0.90, 0.88, 0.80], 2),
        ([0.90, 0.85, 0.84], 0),
        # The best of all counts: small losses do not add up.
        ([0.90, 0.88, 0.86, 0.84], 1),
    ],
)
def test_the_latest_within_chance_is_chosen(scores, expected):
    assert chosen(scores) == expected


def test_without_known_errors_the_highest_score_is_chosen_and_the_later_of_equal_ones():
    assert chosen([0.8, 0.9, 0.89], error=0.0) == 1
    assert chosen([0.8, 0.9, 0.9], error=0.0) == 2


def corpus(path):
    """Documents with one mention each, of several entities."""
    nlp, docs = spacy.blank("xx"), []
    for organ in ("kidney", "heart", "liver", "lung", "brain", "stomach", "bone", "skin"):
        doc = marked(nlp, f"She had {organ} cancer for years.", [f"{organ} cancer"])
        doc.ents = [spacy.tokens.Span(doc, 2, 4, "DISEASE", kb_id=f"{organ}:cancer")]
        docs.append(doc)
    write_docbin(docs, path)
    return str(path)


@pytest.mark.slow
def test_a_training_encodes_no_name_that_linking_has_stored(tmp_path, monkeypatch):
    kb = ArboKB(spacy.blank("xx").vocab)
    kb.add(entities())
    kb.to_disk(tmp_path / "kb")
    nlp = spacy.blank("xx")
    encoder = str(save_tiny(tmp_path / "bert", "bert", positions=128))
    config = {"model": {"mention": {"name": encoder}}}
    nlp.add_pipe("arbo_linker", config=config).set_kb(tmp_path / "kb")
    encoded, encode_texts = [], datastore.encode_texts

    def counting(encoder, texts):
        encoded.append((encoder.is_trained, len(texts)))
        return encode_texts(encoder, texts)

    monkeypatch.setattr(datastore, "encode_texts", counting)
    nlp(marked(nlp))
    names = sum(count for _, count in encoded)
    assert names > 500
    encoded.clear()
    settings = {
        "paths.train": corpus(tmp_path / "train.spacy"),
        "paths.dev": corpus(tmp_path / "dev.spacy"),
        "paths.kb": str(tmp_path / "kb"),
        "paths.encoder": encoder,
        "training.max_steps": 2,
        "training.eval_frequency": 2,
    }
    train(init_nlp(load_system("linker", settings)), tmp_path / "out", stdout=io.StringIO())
    assert sum(count for is_trained, count in encoded if not is_trained) == 0
    # After the two steps, all names are encoded once for the pipeline that is saved.
    assert sum(count for is_trained, count in encoded if is_trained) == names
