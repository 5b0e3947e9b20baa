"""``arbo link`` is killed while it writes: its output is the old or the whole new one."""

import os

import pytest
import torch

from spacy_arbo_el import save_pipeline
from spacy_arbo_el.corpora.docbin import write_docbin

from ..commands import run
from ..linker.world import DEV, annotated
from ..pipelines.saved import count_calls, run_and_kill, tiny_pipeline

pytestmark = [
    pytest.mark.attack,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork"),
]


@pytest.fixture(scope="module")
def place(tiny_bert, tmp_path_factory):
    """A pipeline and documents."""
    place, threads = tmp_path_factory.mktemp("link_kills"), torch.get_num_threads()
    # A forked process has no threads of torch.
    torch.set_num_threads(1)
    nlp = tiny_pipeline(tiny_bert)
    save_pipeline(nlp, place / "model")
    write_docbin([annotated(nlp, text) for text in DEV], place / "dev.spacy")
    yield place
    torch.set_num_threads(threads)


def contents_of(path):
    """The content of a file, or of all files of a folder; None where there is neither."""
    if path.is_dir():
        return {file.name: file.read_bytes() for file in path.iterdir()}
    return path.read_bytes() if path.exists() else None


@pytest.mark.parametrize(
    "name",
    [
        "links.jsonl",
        "links",
        pytest.param("links.csv", marks=pytest.mark.nightly),
        pytest.param("links.spacy", marks=pytest.mark.nightly),
    ],
)
def test_arbo_link_killed_at_each_call(place, tmp_path, name, attacks):
    output = tmp_path / name

    def link(threshold="1.0"):
        options = ["--output", str(output), "--threshold", threshold]
        run("link", place / "model", place / "dev.spacy", *options)

    def is_new_after_kill_at(number):
        link("0.0")
        run_and_kill(link, number)
        found = contents_of(output)
        assert found in (old, new)
        link()
        assert os.listdir(tmp_path) == [name], "the next run leaves nothing beside its output"
        kills.append(number)
        return found == new

    link("0.0")
    old, kills = contents_of(output), []
    calls = count_calls(link)
    link()
    new = contents_of(output)
    assert new != old
    # The first call at which a kill is too late. A share of the attack finds it less exactly.
    before, first = 0, calls
    while first - before > attacks(calls // 4, 1):
        middle = (before + first) // 2
        before, first = (before, middle) if is_new_after_kill_at(middle) else (middle, first)
    around = range(max(before - attacks(0, 15), 1), min(first + attacks(1, 15), calls + 1))
    numbers = [number for number in around if number in (before, first) or attacks(0, 1)]
    outcomes = [is_new_after_kill_at(number) for number in numbers]
    print(f"{len(kills)} kills of arbo link, {sum(outcomes)} of {len(outcomes)} after the change")
    # The number of calls differs a little from run to run, so one kill does not tell the next.
    assert attacks(True, len(set(outcomes)) == 2)
