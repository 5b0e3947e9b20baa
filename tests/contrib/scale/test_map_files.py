"""The one map over files: each shard is done once, however often the run is killed."""

import json
from dataclasses import dataclass
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from spacy_arbo_el.contrib.scale.map_files import begin, map_files, undone
from spacy_arbo_el.contrib.scale.shards import Shard, write_shards
from spacy_arbo_el.records.lines import Lines
from spacy_arbo_el.storage.files import write_file

from ...expecting import raises


@dataclass(frozen=True)
class Toy:
    """A job whose workers write the number of a shard, until they are killed."""

    folder: Path
    kills: dict
    calls: list

    def output(self, shard):
        return self.folder / "out" / f"{shard.name}.txt"


class Worker:
    def __init__(self, job):
        self.job = job

    def __call__(self, shard):
        self.job.calls.append(shard.number)
        kill = self.job.kills.pop(shard.number, "")
        if kill == "before":
            raise KeyboardInterrupt
        write_file(self.job.output(shard), str(shard.number).encode())
        if kill == "after":
            raise KeyboardInterrupt


@given(
    count=st.integers(0, 7),
    kills=st.dictionaries(st.integers(0, 6), st.sampled_from(["before", "after"])),
    part=st.integers(1, 3),
)
def test_a_run_that_is_killed_does_the_rest_and_nothing_twice(tmp_path_factory, count, kills, part):
    job = Toy(tmp_path_factory.mktemp("toy"), dict(kills), [])
    shards = [Shard(number, ("a",)) for number in range(count)]
    # Another machine does a part of the shards.
    list(map_files(Worker, Toy(job.folder, {}, []), shards[::part], job.output))
    expected = [shard.number for shard in undone(shards, job.output)]
    yielded = []
    while undone(shards, job.output):
        try:
            yielded += [shard.number for shard in map_files(Worker, job, shards, job.output)]
        except KeyboardInterrupt:
            continue
    assert [job.output(shard).read_text() for shard in shards] == [str(n) for n in range(count)]
    again = [number for number in expected if kills.get(number) == "before"]
    assert sorted(job.calls) == sorted([*expected, *again])
    assert set(yielded) <= set(expected)


def test_a_worker_that_writes_nothing_is_an_error(tmp_path):
    job = Toy(tmp_path, {}, [])
    with raises("E899.*2 of 2"):
        list(map_files(lambda job: print, job, [Shard(0, ()), Shard(1, ())], job.output))


def test_only_a_run_with_the_same_settings_and_shards_is_continued(tmp_path):
    shards, settings = (
        [Shard(0, ("a",)), Shard(1, ("ä b", "c"), Lines(3, 9, 12345678901))],
        {"size": 3},
    )
    # A run that was killed before it had settings.
    write_shards(tmp_path / "run" / "shards.jsonl", shards[:1])
    for _ in range(2):
        begin(tmp_path / "run", settings, shards)
    assert json.loads((tmp_path / "run" / "job.json").read_text()) == settings
    with raises("E890.*size is 3, not 4"):
        begin(tmp_path / "run", {"size": 4}, shards)
    with raises("E890.*corpus"):
        begin(tmp_path / "run", settings, shards[:1])
    (tmp_path / "mine.txt").write_text("mine")
    with raises("E902.*mine.txt"):
        begin(tmp_path, settings, shards)
