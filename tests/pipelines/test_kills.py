"""A program is killed while it saves a pipeline: the old one or the new one is there, whole."""

import os
import random
import shutil
import sys
import time

import pytest
import spacy
import torch

from spacy_arbo_el import load_pipeline, save_pipeline
from spacy_arbo_el.linker import find_linker
from spacy_arbo_el.pipelines import changing_pipeline
from spacy_arbo_el.storage import folders
from spacy_arbo_el.storage.files import remove_abandoned
from spacy_arbo_el.storage.folders import LOCK

from .saved import (
    change,
    contents,
    count_calls,
    run_and_kill,
    run_and_kill_after,
    some_of,
    tiny_pipeline,
)

pytestmark = [
    pytest.mark.attack,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork"),
]
NAME = "arbo_linker"


@pytest.fixture(scope="module")
def world(tiny_bert, tmp_path_factory):
    """A saved pipeline, its state, the pipeline after a change, and its state then."""
    place = tmp_path_factory.mktemp("kills")
    threads = torch.get_num_threads()
    # A forked process has no threads of torch.
    torch.set_num_threads(1)
    nlp = tiny_pipeline(tiny_bert)
    save_pipeline(nlp, place / "pristine")
    before = observed(place / "pristine")
    change(nlp)
    after = {**contents(find_linker(nlp)), "threshold": 0.25}
    assert not any(before[key] == after[key] for key in after if key != "encoder")
    yield place, nlp, before, after
    torch.set_num_threads(threads)


def observed(path):
    linker = find_linker(load_pipeline(path))
    return {**contents(linker), "threshold": linker.threshold}


def observed_component(path, nlp):
    """What a fresh linker reads from a component's folder."""
    linker = spacy.blank("en").add_pipe(NAME, config=plain(nlp))
    linker.from_disk(path, exclude=["vocab"])
    return contents(linker)


def plain(nlp):
    config = nlp.config.interpolate()["components"][NAME]
    return {key: value for key, value in config.items() if key != "factory"}


def fresh(place):
    path = place / "work" / "model"
    shutil.rmtree(path.parent, ignore_errors=True)
    path.parent.mkdir()
    shutil.copytree(place / "pristine", path)
    return path


def check_pipeline(path, before, after):
    """The pipeline is as before or as after; a next start leaves nothing beside it."""
    found = observed(path)
    assert found in (before, after)
    with changing_pipeline(path):
        pass
    assert os.listdir(path.parent) == [path.name]
    return found == after


def check_component(folder, nlp, before, after):
    before, after = (
        {k: v for k, v in state.items() if k != "threshold"} for state in (before, after)
    )
    found = observed_component(folder, nlp)
    assert found in (before, after)
    names = {"kb", "manifest.json", "model", "exemplars", "reranker", "corrections", "new_entities"}
    assert set(os.listdir(folder)) - {LOCK} == names
    remove_abandoned(folder)
    assert not [name for name in os.listdir(folder.parent) if name.endswith(".tmp")]
    return found == after


@pytest.fixture(params=["pipeline", "component", "component, two renames"])
def target(request, world, monkeypatch):
    """What saves into a fresh folder, and what checks it and says whether it is the new one.

    A component is saved over itself, as spaCy's ``nlp.to_disk`` does over an older pipeline.
    """
    place, nlp, before, after = world
    if request.param == "pipeline":
        return save_pipeline, lambda path: check_pipeline(path, before, after)
    if "two" in request.param:
        monkeypatch.setattr(folders, "exchange", lambda left, right: False)

    def save(nlp, path):
        find_linker(nlp).to_disk(path / NAME, exclude=["vocab"])

    return save, lambda path: check_component(path / NAME, nlp, before, after)


def test_a_save_killed_at_each_call(world, target, attacks):
    (place, nlp, *_), (save, check) = world, target
    path = fresh(place)
    calls = count_calls(lambda: save(nlp, path))
    outcomes = []
    for number in some_of(calls, attacks(8, calls)):
        path = fresh(place)
        run_and_kill(lambda path=path: save(nlp, path), number)
        outcomes.append(check(path))
    print(f"{len(outcomes)} kills, {sum(outcomes)} after the change")
    assert outcomes[0] is False and outcomes == sorted(outcomes), "one moment divides old and new"


def test_a_save_killed_at_random_times(world, target, attacks):
    (place, nlp, *_), (save, check) = world, target
    path, generator = fresh(place), random.Random(1)
    start = time.perf_counter()
    save(nlp, path)
    seconds = time.perf_counter() - start
    kills = 0
    for _ in range(attacks(4, 500)):
        path = fresh(place)
        action = lambda path=path: save(nlp, path)  # noqa: E731
        kills += run_and_kill_after(action, generator.uniform(0, 1.3 * seconds))
        check(path)
    print(f"{kills} kills at random times")


@pytest.mark.skipif(sys.platform == "win32", reason="needs fork")
def test_a_reader_beside_a_writer_reads_one_save(world, attacks):
    """Other programs load the component while it is saved over itself again and again."""
    place, nlp, before, after = world
    folder, linker = fresh(place) / NAME, find_linker(nlp)
    old = (
        spacy.blank("en")
        .add_pipe(NAME, config=plain(nlp))
        .from_disk(place / "pristine" / NAME, exclude=["vocab"])
    )
    process = os.fork()
    if not process:
        while True:
            for one in (linker, old):
                one.to_disk(folder, exclude=["vocab"])
    try:
        both = [{k: v for k, v in state.items() if k != "threshold"} for state in (before, after)]
        for _ in range(attacks(6, 300)):
            assert observed_component(folder, nlp) in both
    finally:
        os.kill(process, 9)
        os.waitpid(process, 0)
