"""Writers that are killed: what they write is the old or the new, whole, and nothing is left."""

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import pytest

from spacy_arbo_el import ArboKB, Entity, find_linker, load_pipeline, save_pipeline
from spacy_arbo_el.kb.verification import verify
from spacy_arbo_el.linking.component_folder import CHECKSUMS
from spacy_arbo_el.pipelines import changing_pipeline
from spacy_arbo_el.storage import folders
from spacy_arbo_el.storage.files import remove_abandoned, write_file
from spacy_arbo_el.storage.folders import LOCK, restore

from .devices import needs_fork
from .kb.encoding import sync
from .kb.test_folder import build
from .kills import in_process
from .pipelines.saved import NAME, PARTS, change, contents, load_component
from .storage.test_io import fill

pytestmark = [pytest.mark.attack, needs_fork]


@dataclass(frozen=True)
class Writer:
    """What writes at a path.

    old: Makes what is there before.
    write: Writes the new.
    read: What a reader finds, to compare.
    next: What the next writer does, which removes what a kill has left.
    """

    old: Callable
    write: Callable
    read: Callable
    next: Callable


@pytest.fixture(scope="module")
def world(saved_tiny, tmp_path_factory):
    """The folder of a saved pipeline, and the pipeline after a change."""
    place = tmp_path_factory.mktemp("kills")
    shutil.copytree(saved_tiny, place / "pristine")
    nlp = load_pipeline(saved_tiny)
    before = state_of(find_linker(nlp))
    change(nlp)
    after = state_of(find_linker(nlp))
    assert not any(before[key] == after[key] for key in after if key != "encoder")
    return place, nlp


def state_of(linker):
    return {**contents(linker), "threshold": linker.threshold}


def pipeline(world):
    def next_one(path):
        with changing_pipeline(path):
            pass

    place, nlp = world
    return Writer(
        lambda path: shutil.copytree(place / "pristine", path),
        lambda path: save_pipeline(nlp, path),
        lambda path: state_of(find_linker(load_pipeline(path))),
        next_one,
    )


def component(world):
    """Saved over itself, as spaCy's ``nlp.to_disk`` does over an older pipeline."""

    def read(path):
        found = contents(load_component(path, nlp))
        assert set(os.listdir(path)) - {LOCK} == {"kb", "manifest.json", *PARTS}
        return found

    place, nlp = world
    return Writer(
        # Checksums of a whole pipeline are beside a component only as ``save_pipeline`` writes it.
        lambda path: shutil.copytree(
            place / "pristine" / NAME, path, ignore=shutil.ignore_patterns(CHECKSUMS)
        ),
        lambda path: find_linker(nlp).to_disk(path, exclude=["vocab"]),
        read,
        remove_abandoned,
    )


def kb(world):
    """A knowledge base that is loaded, edited, encoded and saved over itself."""

    def write(path):
        kb = ArboKB.for_reading(path)
        kb.add(Entity("new", "new"))
        sync(kb)
        kb.to_disk(path)

    def read(path):
        assert verify(path) == []
        kb = ArboKB.for_reading(path)
        assert sync(kb) == 0
        return [entity.to_dict() for entity in kb]

    return Writer(
        lambda path: build(path, 9),
        write,
        read,
        lambda path: ArboKB.for_reading(path).to_disk(path),
    )


def encoding(world):
    """Vectors of another encoder, in the folder of a knowledge base."""

    def another(path):
        return sync(ArboKB.for_reading(path), "another")

    def read(path):
        assert verify(path) == []
        assert sync(ArboKB.for_reading(path)) == 0
        copy = shutil.copytree(path, path.parent / "copy")
        encoded = another(copy)
        shutil.rmtree(copy)
        return encoded

    return Writer(partial(build, count=9), another, read, another)


def file(world):
    return Writer(
        lambda path: write_file(path, b"old"),
        lambda path: write_file(path, b"new"),
        lambda path: path.read_bytes(),
        lambda path: write_file(path, b"new"),
    )


def folder(world):
    def read(path):
        restore(path)
        return [(one.name, one.read_text()) for one in path.iterdir()]

    return Writer(partial(fill, text="old"), fill, read, fill)


def writers(make, ways=("exchange",)):
    return [pytest.param((make, way), id=f"{make.__name__}-{way}") for way in ways]


BOTH = ("exchange", "two renames")
ALL = [
    *(one for make in (component, kb, folder) for one in writers(make, ways=BOTH)),
    *(one for make in (pipeline, encoding, file) for one in writers(make)),
]


@pytest.fixture
def writer(request, world, tmp_path, monkeypatch):
    """A writer, and functions that make the old anew and that look what is there."""
    make, way = request.param
    if way == "two renames":
        monkeypatch.setattr(folders, "exchange", lambda left, right: False)
    one, path = make(world), tmp_path / "place" / "x"

    def start():
        shutil.rmtree(path.parent, ignore_errors=True)
        path.parent.mkdir()
        one.old(path)

    def is_new():
        """Whether it is new; else it is old. The next writer leaves nothing beside it."""
        found = one.read(path)
        assert found in (old, new)
        one.next(path)
        assert os.listdir(path.parent) == ["x"]
        return found == new

    start()
    old = one.read(path)
    one.write(path)
    new = one.read(path)
    assert old != new
    return make, lambda say=None: one.write(path), start, is_new


@pytest.mark.parametrize("writer", ALL, indirect=True)
def test_a_kill_at_each_call_leaves_the_old_or_the_new(writer, attacks):
    make, write, start, is_new = writer
    outcomes = {}

    def kill(number):
        start()
        in_process(write, kill_at=number)
        outcomes[number] = is_new()
        return outcomes[number]

    start()
    calls = in_process(write).points
    # The first call at which a kill is too late: a share of the attack finds it less exactly.
    before, first, steps = 1, calls, attacks(6, calls)
    assert not kill(1)
    while first - before > 1 and len(outcomes) < steps + 1:
        middle = (before + first) // 2
        before, first = (before, middle) if kill(middle) else (middle, first)
    for number in range(1, calls + 1) if make in (file, folder) else range(1, attacks(1, calls)):
        kill(number)
    kill(calls)
    print(f"{len(outcomes)} kills, {sum(outcomes.values())} after the change")
    found = [outcomes[number] for number in sorted(outcomes)]
    assert found == sorted(found), "one moment divides old and new"
    assert True in found or make is not folder


def test_a_reader_beside_a_writer_reads_one_save(world, tmp_path, attacks):
    """Other programs load the component while it is saved over itself again and again."""
    place, nlp = world
    one, path = component(world), tmp_path / NAME
    one.old(path)
    old = load_component(path, nlp)
    both = [contents(old), contents(find_linker(nlp))]

    process = os.fork()
    if not process:
        while True:
            for linker in (find_linker(nlp), old):
                linker.to_disk(path, exclude=["vocab"])
    try:
        for _ in range(attacks(6, 300)):
            assert one.read(path) in both
    finally:
        os.kill(process, 9)
        os.waitpid(process, 0)
