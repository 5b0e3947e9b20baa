"""Training a pipeline's linker once more: as the pipeline's config says, for as many steps."""

import io
import shutil

import pytest
import spacy
from spacy.language import Language
from spacy.training.initialize import init_nlp

from spacy_arbo_el.corpora.reader import read_docs
from spacy_arbo_el.linker import find_linker
from spacy_arbo_el.training.loop import train
from spacy_arbo_el.training.retraining import Retraining

from ..linker.conftest import build, build_tiny
from ..linker.world import TRAIN, docs_of, write_corpus
from ..systems import load_system
from ..tiny import projected_tower
from .test_loop import SYSTEM, settings_of

BATCHER = {"@batchers": "spacy.batch_by_sequence.v1", "size": 4, "get_length": None}
OPTIMIZER = {"@optimizers": "Adam.v1", "learn_rate": 0.001, "use_averages": True}


@pytest.fixture
def nlp(tiny_bert):
    pipeline = build_tiny(tiny_bert)
    pipeline.config["training"].update(batcher=BATCHER, optimizer=OPTIMIZER, patience=0, seed=0)
    return pipeline


@pytest.fixture
def updates(monkeypatch):
    """Counts the steps of training."""
    calls, update = [], Language.update
    monkeypatch.setattr(
        Language, "update", lambda self, *args, **kw: calls.append(1) or update(self, *args, **kw)
    )
    return calls


def trained(retraining, docs):
    """The fingerprint of the trained encoder."""
    with retraining.trained(docs) as linker:
        return linker.encoder.fingerprint


@pytest.mark.slow
def test_the_encoder_is_the_one_that_training_gives(tiny_bert, tmp_path):
    paths = write_corpus(tmp_path)
    more = {
        "paths.encoder": str(tiny_bert),
        "corpora.train.shuffle": False,
        "training.optimizer.use_averages": True,
        "training.max_steps": 7,
    }
    config = load_system(SYSTEM, settings_of(paths, **more))
    train(init_nlp(config), tmp_path / "out", stdout=io.StringIO())
    nlp = spacy.load(tmp_path / "out" / "model-last")
    docs = list(read_docs(tmp_path / "train.spacy", nlp.vocab))
    assert trained(Retraining.of(nlp, docs, 0, 0), docs) == find_linker(nlp).encoder.fingerprint


@pytest.mark.parametrize(
    "config, steps, expected",
    [
        # A pass over thirteen documents has four steps, one over six or seven of them has two.
        ({"max_epochs": 1, "max_steps": 0}, 0, 4),
        ({"max_epochs": 2, "max_steps": 0}, 0, 8),
        # spaCy counts from 0.
        ({"max_epochs": 2, "max_steps": 5}, 0, 6),
        ({"max_epochs": 2, "max_steps": 99}, 0, 8),
        ({"max_epochs": 0, "max_steps": 3}, 0, 4),
        ({"max_epochs": -1, "max_steps": 1}, 0, 2),
        ({"max_epochs": 1, "max_steps": 1, "patience": 9}, 5, 5),
    ],
)
def test_part_of_the_documents_is_trained_on_for_as_many_steps_as_all(
    nlp, updates, config, steps, expected
):
    nlp.config["training"].update(config)
    docs = docs_of(nlp, [*TRAIN, "Nobody saw [Mercury|planet]."])
    retraining = Retraining.of(nlp, docs, steps, 0)
    assert retraining.steps == expected and not updates
    before, prints = find_linker(nlp).to_bytes(), []
    for part in (docs[:6], docs[6:]):
        with retraining.trained(part) as linker:
            averaged = linker.encoder.fingerprint
        prints += [averaged, linker.encoder.fingerprint]
        assert len(updates) == expected
        updates.clear()
    assert find_linker(nlp).to_bytes() == before, "the pipeline stays as it is"
    assert len(set(prints)) == 4, "averaged weights are those of the context"


def test_without_a_known_end_of_training_the_steps_are_asked_for(nlp):
    for wrong in ({"patience": 9, "max_steps": 9}, {"patience": 0, "max_steps": 0}):
        nlp.config["training"].update({"max_epochs": 0, **wrong})
        with pytest.raises(ValueError, match="E885.*fold_steps"):
            Retraining.of(nlp, docs_of(nlp), 0, 0)


def test_a_linker_that_the_config_freezes_is_not_trained(nlp):
    nlp.config["training"]["frozen_components"] = ["arbo_linker"]
    with pytest.raises(ValueError, match="E886.*'arbo_linker'"):
        Retraining.of(nlp, docs_of(nlp), 3, 0)


def test_a_renamed_linker_behind_other_components_is_trained_alone(nlp, updates):
    docs = docs_of(nlp)
    expected = trained(Retraining.of(nlp, docs, 3, 0), docs)
    nlp.add_pipe("sentencizer", first=True)
    nlp.rename_pipe("arbo_linker", "linker")
    assert trained(Retraining.of(nlp, docs, 3, 0), docs) == expected


def test_what_training_does_not_need_may_be_gone(nlp, tmp_path):
    expected = trained(Retraining.of(nlp, docs_of(nlp), 3, 0), docs_of(nlp))
    config = nlp.config
    config["training"]["logger"] = {"@loggers": "not.Installed.v1"}
    config["training"]["before_to_disk"] = {"@callbacks": "not.Installed.v1"}
    config["initialize"]["components"] = {
        "arbo_linker": {"kb_loader": {"@misc": "spacy-arbo-el.KBFromPath.v1", "path": None}}
    }
    config["corpora"] = {"train": {"@readers": "spacy.Corpus.v1", "path": "gone"}}
    nlp.to_disk(tmp_path / "pipeline")
    again = spacy.load(tmp_path / "pipeline")
    assert trained(Retraining.of(again, docs_of(again), 3, 0), docs_of(again)) == expected


def test_an_encoder_that_is_gone_is_noticed_before_training(tiny_bert, tmp_path):
    shutil.copytree(tiny_bert, tmp_path / "encoder")
    nlp = build_tiny(tmp_path / "encoder")
    retraining = Retraining.of(nlp, docs_of(nlp), 3, 0)
    print_of_first = retraining.untrained().encoder.fingerprint
    assert trained(retraining, docs_of(nlp)) != print_of_first
    shutil.rmtree(tmp_path / "encoder")
    with pytest.raises((ValueError, OSError), match="arbo-E2.*encoder"):
        retraining.untrained()


def test_first_weights_that_are_drawn_are_always_the_same(tiny_bert):
    mention = projected_tower(tiny_bert, 8)
    nlp = build(model={"@architectures": "spacy-arbo-el.DualEncoder.v1", "mention": mention})
    retraining = Retraining.of(nlp, docs_of(nlp), 3, 0)
    prints = {retraining.untrained().encoder.fingerprint for _ in range(2)}
    assert len(prints) == 1 and trained(retraining, docs_of(nlp)) not in prints


def test_documents_without_a_batch_are_refused(nlp):
    def checked(docs, **batcher):
        nlp.config["training"]["batcher"] = batcher
        Retraining.of(nlp, docs_of(nlp), 3, 0).check_batches(docs)

    by_words = {"@batchers": "spacy.batch_by_words.v1", "discard_oversize": True, "tolerance": 0.0}
    checked(docs_of(nlp), **by_words, size=100)
    with pytest.raises(ValueError, match="E889.*12 documents.*no batch"):
        checked(docs_of(nlp), **by_words, size=2)
    by_concept = {"@batchers": "spacy-arbo-el.batch_by_concept.v1", "n_mentions": 1}
    checked(docs_of(nlp), **by_concept, n_concepts=8)
    with pytest.raises(ValueError, match="E889.*2 documents.*E615"):
        checked(docs_of(nlp)[:2], **by_concept, n_concepts=8)


def settings_with(nlp, steps=3, seed=0):
    return Retraining.of(nlp, docs_of(nlp), steps, seed).settings


def test_all_that_decides_how_an_encoder_is_trained_is_among_the_settings(nlp):
    first = settings_with(nlp)
    assert first["steps"] == 3 and first["training.batcher.size"] == 4
    assert first["components.arbo_linker.model.mention.window"] == 32
    assert settings_with(nlp, seed=1) == first
    nlp.config["training"]["seed"] = None
    assert settings_with(nlp) == first, "that of the run, where there is none"
    assert settings_with(nlp, seed=1) == {**first, "training.seed": 1}
    nlp.config["training"].update(seed=0, dropout=0.3)
    assert settings_with(nlp) == {**first, "training.dropout": 0.3}
    nlp.config["training"].update(dropout=0.1, eval_frequency=7)
    assert settings_with(nlp) == first
    # With links that are written into the text, an encoder learns from other texts.
    nlp.get_pipe_config("arbo_linker")["inference"]["n_exemplars"] += 1
    assert settings_with(nlp) != first


def test_without_a_seed_in_the_config_an_encoder_is_trained_reproducibly(nlp):
    nlp.config["training"]["seed"] = None
    docs = docs_of(nlp)
    prints = {trained(Retraining.of(nlp, docs, 2, seed), docs) for seed in (1, 1, 2)}
    assert len(prints) == 2
