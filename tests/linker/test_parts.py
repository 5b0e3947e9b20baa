"""Every registered part, from a config: its repr is its identity, and it trains and comes back."""

import copy
import pickle
from dataclasses import fields, is_dataclass
from inspect import isclass, signature

import numpy as np
import pytest
import spacy
from spacy.util import registry
from thinc.api import Adam

from spacy_arbo_el import ArboError, find_linker

from .conftest import build
from .world import DEV, TRAIN, annotated, examples, without_links

PREFIX = "spacy-arbo-el."
PARTS = [
    (table, name.removeprefix(PREFIX))
    for table in ("misc", "losses", "scorers")
    for name in sorted(getattr(registry, table).get_all())
    if name.startswith(PREFIX)
]


def section(name, **settings):
    """A section of a config that names a registered part."""
    table = next((table for table, part in PARTS if part == f"{name}.v1"), "misc")
    return {f"@{table}": f"{PREFIX}{name}.v1", **settings}


NAMES, DOT, FLAT = section("Names"), section("Dot"), section("FlatIndex")
LOSS, HARD, SPELLING = section("Logistic"), section("HardNegatives"), section("AmericanSpelling")
OBJECTIVE = section("Objective", positives=section("EntityPositives"), negatives=HARD, loss=LOSS)
# The settings without which a part cannot be made.
NEEDED = {
    "Retriever": {"verbalization": NAMES, "similarity": DOT, "index": FLAT},
    "FaissIndex": {"factory": "IVF64,SQ8", "search": "nprobe=8"},
    "KBFromPath": {"path": "kb"},
    "KBFromCorpus": {"path": "train.spacy"},
    "NormalizerChain": {"*": {"one": SPELLING, "two": section("PlainCharacters")}},
    "CrossEncoder": {"ranker": section("FeatureRanker")},
    "Objective": {key: OBJECTIVE[key] for key in ("positives", "negatives", "loss")},
    "ObjectiveSum": {"*": {"one": OBJECTIVE, "two": {**OBJECTIVE, "weight": 0.5}}},
    "LearnedScale": {"loss": LOSS},
    "OverDistances": {"loss": section("SoftmaxPositiveNegative")},
    "BothNegatives": {"first": HARD, "second": section("InBatchNegatives")},
    "NegativesWithinBudget": {"negatives": HARD},
    "NegativesByFrequency": {"negatives": HARD},
}


def made(config):
    return registry.resolve({"part": config})["part"]


def another(value):
    """Another value of a setting's type, which may be out of its range."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, float):
        return value / 2 or 0.5
    return value + 1 if isinstance(value, int) else None


@pytest.mark.parametrize("name", [name.removesuffix(".v1") for _, name in PARTS])
def test_a_part_of_a_config_is_its_settings(name):
    config = section(name, **NEEDED.get(name, {}))
    part = made(config)
    for again in (made(copy.deepcopy(config)), pickle.loads(pickle.dumps(part))):
        assert type(again) is type(part)
        assert repr(again) == repr(part)
        # What loads is no value, and what a cross-encoder has learned is compared by identity.
        assert name.startswith(("KBFrom", "CrossEncoder")) or again == part
    shown = [one.name for one in fields(part) if one.repr] if is_dataclass(part) else ["path"]
    assert all(f"{one}={getattr(part, one)!r}" in repr(part) for one in shown)
    assert not is_dataclass(part) or type(part).__dataclass_params__.frozen
    table = next(table for table, one in PARTS if one == f"{name}.v1")
    function = getattr(registry, table).get(f"{PREFIX}{name}.v1")
    parameters = signature(function.__init__ if isclass(function) else function).parameters
    for setting, parameter in parameters.items():
        if (value := another(parameter.default)) is not None:
            try:
                other = made({**config, setting: value})
            except ArboError:
                continue  # out of its range
            assert other != part, setting
            assert repr(other) != repr(part), setting


def retriever(**parts):
    return {"retriever": section("Retriever", **parts)}


def objective(**parts):
    return {"objective": {**OBJECTIVE, **parts}}


GROUP = section("GroupSpans", spans_key="sc")
ABBREVIATIONS = section("NormalizerChain", **{"*": {"one": section("ExpandAbbreviations")}})
# Linkers with each kind of part in its place.
LINKERS = {
    "descriptions": retriever(verbalization=section("Names", description=True, types=True)),
    "no text": retriever(verbalization=section("NoText")),
    "parts": retriever(verbalization=section("Parts", types=True), similarity=DOT),
    "fields": retriever(verbalization=section("Fields"), match_types=True),
    "distances": {
        **retriever(similarity=section("NegativeSquaredEuclidean")),
        **objective(loss=section("SoftmaxPositiveNegative", scale=0.1)),
    },
    "dot": {**retriever(similarity=DOT), **objective(loss=section("CrossEntropy", scale=0.5))},
    "group": {"mentions": section("Mentions", getter=GROUP, normalizer=ABBREVIATIONS)},
    "ranker": {"reranker": section("FeatureRanker", pretrained=False, n_reranked=4)},
    "vote": {"inference": section("ExemplarVote", n_exemplars=3)},
    "minimax": {"inference": section("Clustering", method="minimax"), "discovery": None},
    "discovery": {"discovery": section("Discovery", method="arborescence", n_neighbors=2)},
    "positives": objective(positives=section("ArborescencePositives", with_entity=True)),
    "random": objective(positives=section("ArborescencePositives", mentions="random")),
    "nearest": objective(positives=section("NearestMentionPositives")),
    "in batch": objective(negatives=section("InBatchNegatives")),
    "mentions": objective(negatives=section("InBatchMentionNegatives")),
    "refresh": objective(refresh=section("CacheRefresh", every=3), weight=0.5),
}


@pytest.mark.parametrize("kind", LINKERS)
def test_a_linker_of_parts_trains_and_is_saved_with_its_config(kind, tmp_path):
    key = "sc" if kind == "group" else ""
    settings = {**LINKERS[kind], "threshold": 0.25}
    nlp = build(train=TRAIN[:6], key=key, **copy.deepcopy(settings))
    losses = nlp.update(examples(nlp, TRAIN[:4], key), sgd=Adam(1e-3))
    assert losses["arbo_linker"] > 0
    assert losses["arbo_linker"] < np.inf

    def links(nlp):
        docs = list(nlp.pipe(without_links(annotated(nlp, text, key), key) for text in DEV))
        found = [doc.spans[key] if key else doc.ents for doc in docs]
        return [[span._.arbo for span in spans] for spans in found]

    expected = links(nlp)
    assert sum(map(len, expected)) == len(DEV)
    nlp.to_disk(tmp_path / "model")
    loaded = spacy.load(tmp_path / "model")
    other = build(train=[], key=key, **copy.deepcopy(settings))
    find_linker(other).from_bytes(find_linker(nlp).to_bytes(exclude=["vocab"]), exclude=["vocab"])
    linker = find_linker(nlp)
    for again in (loaded, other):
        assert links(again) == expected
        found = find_linker(again)
        assert type(found) is type(linker)
        assert type(found.stages) is type(linker.stages)
        assert repr(found.stages.inference) == repr(linker.stages.inference)
        assert repr(found.datastore.settings) == repr(linker.datastore.settings)
        assert repr(found.trainer.objective) == repr(linker.trainer.objective)
        assert found.reranker.to_bytes() == linker.reranker.to_bytes()
    assert loaded.config["components"] == nlp.config["components"]
    # What is left out, in writing or in reading, is left as it is.
    for written, read in ((["exemplars"], []), ([], ["exemplars"])):
        bare = find_linker(build(train=[], key=key, **copy.deepcopy(settings)))
        bare.from_bytes(linker.to_bytes(exclude=written), exclude=read)
        assert len(linker.exemplars)
        assert not len(bare.exemplars)
        assert list(bare.kb) == list(linker.kb)
