"""Training of the component: losses, new mentions, averages, configs, families of encoders."""

import copy
import random
from dataclasses import replace

import numpy as np
import pytest
import spacy
import srsly
from spacy.cli.train import train
from spacy.training import Example
from spacy.training.initialize import init_nlp
from spacy.util import fix_random_seed, load_config
from thinc.api import Adam
from thinc.util import to_numpy

from spacy_arbo_el import Entity, find_linker
from spacy_arbo_el.ranking.decisions import Independent
from spacy_arbo_el.training.refresh import CacheRefresh

from ..floats import assert_same_vectors
from ..systems import SOURCES, load_system, write_system
from ..tiny import KINDS, save_tiny
from .conftest import build, build_tiny, learned_scalars
from .test_parts import section
from .world import DEV, ENTITIES, TRAIN, annotated, examples, write_corpus


def train_a_little(nlp, steps=4, drop=0.1, lr=5e-5):
    fix_random_seed(1)
    linker = find_linker(nlp)
    optimizer = Adam(lr)
    data = examples(nlp, TRAIN)
    losses = []
    for step in range(steps):
        batch = data[step * 4 % len(data) :][:4]
        losses.append(linker.update(batch, drop=drop, sgd=optimizer)["arbo_linker"])
    return losses


def test_same_seed_gives_the_same_losses():
    assert train_a_little(build()) == train_a_little(build())


JOINT = {
    **section("ObjectiveSum"),
    "*": {
        "mentions": {
            **section("Objective"),
            "positives": section("ArborescencePositives", with_entity=True),
            "negatives": section("HardNegatives", k=4),
            "loss": section("LearnedScale", loss=section("SoftmaxPositiveNegative")),
        },
        "names": {
            **section("Objective", weight=0.5),
            "queries": section("NameQueries", n=8),
            "positives": section("SynonymPositives"),
            "negatives": section("HardNegatives", k=2, mention_share=0.0),
            "loss": section("LearnedScale", loss=section("Logistic")),
        },
    },
}


def joint(objective=JOINT):
    """A pipeline that trains on names, and as it is on mentions too."""
    return build(retriever={"verbalization": section("Names")}, objective=objective)


def test_mentions_and_names_train_together_and_learned_scalars_are_saved(tmp_path):
    nlp = joint()
    linker = find_linker(nlp)
    assert learned_scalars(linker) == [(20.0, 0.0), (20.0, -10.0)]
    losses = train_a_little(nlp, steps=12, drop=0.0, lr=0.01)
    assert np.mean(losses[-3:]) < 0.8 * np.mean(losses[:3])
    learned = learned_scalars(linker)
    assert all(abs(scale / 20.0 - 1) > 0.005 for scale, _ in learned)
    assert learned[0][1] == pytest.approx(0.0, abs=1e-3)
    assert learned[1][1] != -10.0
    nlp.to_disk(tmp_path / "model")
    assert learned_scalars(find_linker(spacy.load(tmp_path / "model"))) == learned
    assert learned_scalars(find_linker(joint().from_bytes(nlp.to_bytes()))) == learned


def test_names_train_without_mentions():
    nlp = joint({**JOINT["*"]["names"], "weight": 1.0})
    losses = {}
    nlp.update(examples(nlp, ["nothing here"]), sgd=Adam(1e-4), losses=losses)
    assert losses["arbo_linker"] > 0
    plain = build()
    plain.update(examples(plain, ["nothing here"]), sgd=Adam(1e-4), losses=losses)
    assert find_linker(plain).trainer.seen == 0


def test_scalars_are_no_part_of_the_encoder():
    linker = find_linker(joint())
    before = linker.encoder.fingerprint
    linker.model.get_ref("loss_scale_0").set_param("scale", np.ones(1, dtype="f"))
    linker.encoder.weights_changed()
    assert linker.encoder.fingerprint == before


def test_a_pipeline_can_go_on_with_more_objectives():
    objective = copy.deepcopy(JOINT)
    for term in objective["*"].values():
        term["loss"] = term["loss"]["loss"]
    one, two = build(), joint(objective)
    train_a_little(one, steps=1)
    find_linker(two).from_bytes(find_linker(one).to_bytes())
    assert np.isfinite(train_a_little(two, steps=1)).all()


def test_separate_towers_train(tiny_bert):
    tower = {
        "@architectures": "spacy-arbo-el.TransformerEncoder.v1",
        "name": str(tiny_bert),
        "window": 32,
        "pooling": {"@misc": "spacy-arbo-el.ClsPooling.v1"},
    }
    nlp = build(model={"mention": tower, "entity": tower})
    linker = find_linker(nlp)
    before = [p.clone() for p in linker.model.get_ref("entity").shims[0]._model.parameters()]
    train_a_little(nlp, steps=2)
    after = linker.model.get_ref("entity").shims[0]._model.parameters()
    assert any((a != b).any() for a, b in zip(before, after))


def test_update_stores_mentions_that_initialize_has_not_seen():
    nlp = build(train=TRAIN[:4])
    linker = find_linker(nlp)
    stored = len(linker.exemplars)
    linker.update(examples(nlp, TRAIN[8:]), sgd=nlp.create_optimizer())
    assert len(linker.exemplars) == stored + 4
    doc = nlp(annotated(nlp, TRAIN[9]))
    assert doc.ents[0].kb_id_ == "metal"


def test_training_continues_after_loading(tmp_path, nlp):
    train_a_little(nlp, steps=2)
    nlp.to_disk(tmp_path / "model")
    again = spacy.load(tmp_path / "model")
    optimizer = again.resume_training()
    loss = again.update(examples(again, TRAIN[:4]), sgd=optimizer)["arbo_linker"]
    assert loss > 0
    assert again.evaluate(examples(again, DEV))["arbo_mentions"] == len(DEV)


def test_refresh_encodes_again_after_updates(nlp, linker):
    linker.refresh()
    before = linker.kb.rows.array(), linker.exemplars.vectors.copy()
    train_a_little(nlp, steps=2)
    linker.refresh()
    assert (linker.kb.rows.array() != before[0]).any()
    assert (linker.exemplars.vectors != before[1]).any()
    verbalize = linker.datastore.settings.verbalization
    texts = [text for entity in linker.kb for text in verbalize(entity)]
    expected = linker.encoder.encode_texts(linker.encoder.read_texts(texts))
    np.testing.assert_array_equal(linker.kb.rows.array(), expected)


def test_names_added_in_training_are_not_stored_as_of_the_untrained_encoder(tmp_path, nlp, linker):
    linker.kb.to_disk(tmp_path / "kb")
    linker.set_kb(tmp_path / "kb")
    linker.refresh()
    (vectors,) = tmp_path.glob("kb/vectors-*.bin")
    before = vectors.stat()
    train_a_little(nlp, steps=1)
    linker.kb.add(Entity("new", "a new name"))
    train_a_little(nlp, steps=1)
    assert vectors.stat().st_size == before.st_size


@pytest.mark.slow
def test_use_params_links_and_saves_with_averaged_weights(tiny_bert):
    nlp = build_tiny(tiny_bert)
    linker = find_linker(nlp)
    optimizer = Adam(1e-3, use_averages=True)
    for text in TRAIN[:6]:
        nlp.update(examples(nlp, [text]), sgd=optimizer)
    shim = linker.model.get_ref("mention").shims[0]
    trained = {name: p.detach().clone() for name, p in shim._model.named_parameters()}
    linker.refresh()
    fingerprint, vectors = linker.encoder.fingerprint, linker.kb.rows.array()

    def assert_averaged(model):
        for name, p in model.named_parameters():
            if (shim.id, name) in optimizer.averages:
                averaged = to_numpy(optimizer.averages[shim.id, name])
                np.testing.assert_array_equal(p.detach().cpu(), averaged)

    with nlp.use_params(optimizer.averages):
        assert_averaged(shim._model)
        assert linker.encoder.fingerprint != fingerprint
        linker.refresh()
        assert (linker.kb.rows.array() != vectors).any()
        data = nlp.to_bytes()
    for name, p in shim._model.named_parameters():
        assert (p == trained[name]).all()
    assert linker.encoder.fingerprint == fingerprint
    # The bytes that were saved within use_params hold the averages.
    again = find_linker(build_tiny(tiny_bert).from_bytes(data))
    assert_averaged(again.model.get_ref("mention").shims[0]._model)


def test_updates_without_mentions_have_no_loss(nlp, linker):
    assert linker.update([]) == {"arbo_linker": 0.0}
    doc = nlp.make_doc("Nothing here.")
    assert linker.update([Example(doc, doc.copy())], sgd=nlp.create_optimizer()) == {
        "arbo_linker": 0.0
    }


MADE_UP_NAMES = ["blarg", "fizzle", "quorn", "snibbet", "wuggle", "zorp", "tramble", "plick"]


def test_training_links_made_up_names_by_context():
    """Only training can connect names without meaning to their contexts."""
    rng = random.Random(0)
    topics = [
        ("violin orchestra symphony concert melody", "composer of music"),
        ("goal striker penalty football league", "football player"),
        ("senate law election minister vote", "politician"),
        ("galaxy telescope orbit comet star", "astronomer"),
    ]
    entities, texts = [], []
    for i, (words, about) in enumerate(topics):
        for j in range(2):
            kb_id = f"{i}-{j}"
            entities.append(Entity(kb_id, MADE_UP_NAMES[j], about))
            for _ in range(8):
                some = rng.sample(words.split(), 3)
                texts.append(
                    f"The {some[0]} and the {some[1]} of [{MADE_UP_NAMES[j]}|{kb_id}] {some[2]}."
                )
    rng.shuffle(texts)
    held_out, training = texts[:20], texts[20:]
    nlp = build(entities, train=training)
    linker = find_linker(nlp)
    linker.inference = Independent(n_exemplars=0)
    before, data = nlp.evaluate(examples(nlp, held_out))["arbo_acc"], examples(nlp, training)
    optimizer = Adam(0.1)
    fix_random_seed(0)
    for _ in range(4):
        random.shuffle(data)
        for start in range(0, len(data), 8):
            linker.update(data[start : start + 8], sgd=optimizer)
    assert before < 0.7
    assert nlp.evaluate(examples(nlp, held_out))["arbo_acc"] >= 0.9


@pytest.fixture(scope="module")
def paths(tmp_path_factory):
    return write_corpus(tmp_path_factory.mktemp("corpus"))


@pytest.mark.slow
@pytest.mark.parametrize("system", sorted(SOURCES))
def test_each_system_takes_a_step(system, paths, tiny_bert):
    overrides = {**paths, "paths.encoder": str(tiny_bert)}
    for tower, settings in load_system(system)["components"]["arbo_linker"]["model"].items():
        known = {*settings} if isinstance(settings, dict) else set()
        for name in {"window", "text", "passage"} & known:
            overrides[f"components.arbo_linker.model.{tower}.{name}"] = 24
    if system.startswith("biocom"):
        # The corpus has 8 concepts, and few contexts of each.
        overrides["training.batcher.n_concepts"] = 4
        overrides["components.arbo_linker.inference.n_exemplars"] = 1
    nlp = init_nlp(load_system(system, overrides, interpolate=True))
    losses = nlp.update(examples(nlp, TRAIN[:4]), sgd=nlp.create_optimizer())
    assert losses["arbo_linker"] > 0
    assert losses["arbo_linker"] < np.inf


@pytest.mark.slow
def test_spacy_train_with_the_recommended_system(paths, tmp_path):
    """Three steps teach little, and names alone can't distinguish entities that share one."""
    overrides = {**paths, "training.max_epochs": 1, "training.eval_frequency": 3}
    train(write_system("linker", tmp_path), tmp_path / "out", overrides=overrides)
    nlp = spacy.load(tmp_path / "out" / "model-best")
    last = srsly.read_json(tmp_path / "out" / "model-last" / "meta.json")
    assert last["performance"]["arbo_linker_loss"] > 0
    assert last["performance"]["arbo_linker_loss"] < np.inf
    assert nlp.evaluate(examples(nlp, DEV))["arbo_recall_at_1"] >= 0.5
    # The curves that the callback fitted on dev are saved in the config.
    saved = load_config(tmp_path / "out" / "model-best" / "config.cfg")
    default = load_system("linker")["components"]["arbo_linker"]["calibration"]
    assert saved["components"]["arbo_linker"]["calibration"] != default


def test_new_mentions_in_mid_epoch_read_and_encode_only_what_is_new(monkeypatch):
    nlp = build(train=TRAIN[:2])
    linker, optimizer = find_linker(nlp), nlp.create_optimizer()
    linker.trainer.objective = replace(linker.trainer.objective, refresh=CacheRefresh(1000))
    calls = {"read_texts": [], "encode_texts": []}
    for name, sizes in calls.items():
        original = getattr(type(linker.encoder), name)

        def counted(encoder, texts, original=original, sizes=sizes):
            sizes.append(len(texts))
            return original(encoder, texts)

        monkeypatch.setattr(type(linker.encoder), name, counted)
    nlp.update(examples(nlp, TRAIN[:1]), sgd=optimizer)
    assert calls["encode_texts"] == [len(ENTITIES)]
    calls["read_texts"].clear()
    for text in TRAIN[2:6]:
        nlp.update(examples(nlp, [text]), sgd=optimizer)
    assert not calls["read_texts"]
    assert len(linker.exemplars) == 12
    linker.kb.add(Entity("new", "something new"))
    nlp.update(examples(nlp, [TRAIN[6]]), sgd=optimizer)
    assert max(calls["read_texts"]) > len(ENTITIES), "an entity was added"
    assert calls["encode_texts"] == [len(ENTITIES), 1]


def test_update_with_another_label_relabels_the_exemplar(nlp, linker):
    assert nlp(annotated(nlp, TRAIN[8])).ents[0].kb_id_ == "planet"
    corrected = TRAIN[8].replace("planet", "metal")
    linker.update(examples(nlp, [corrected]))
    assert nlp(annotated(nlp, TRAIN[8])).ents[0].kb_id_ == "metal"


def links(nlp):
    linker = find_linker(nlp)
    docs = (linker(example.reference) for example in examples(nlp, TRAIN))
    return [span.kb_id_ for doc in docs for span in linker.reader.all_mentions(doc)]


@pytest.mark.parametrize("kind", KINDS)
def test_an_encoder_of_each_family_links_trains_and_is_saved(tmp_path, kind):
    nlp = build_tiny(save_tiny(tmp_path / kind, kind))
    linker = find_linker(nlp)
    linker.datastore.refresh()
    vectors, losses = linker.exemplars.vectors.copy(), {}
    assert np.isfinite(vectors).all()
    assert len(np.unique(vectors.round(4), axis=0)) > 1
    for _ in range(2):
        nlp.update(examples(nlp, TRAIN), sgd=Adam(0.01), losses=losses)
    assert losses["arbo_linker"] > 0
    assert losses["arbo_linker"] < np.inf
    before = links(nlp)
    assert np.abs(linker.exemplars.vectors - vectors).max() > 1e-3
    nlp.to_disk(tmp_path / "model")
    again = spacy.load(tmp_path / "model")
    loaded = find_linker(again)
    assert links(again) == before
    assert any(before)
    assert_same_vectors(loaded.exemplars.vectors, linker.exemplars.vectors)
