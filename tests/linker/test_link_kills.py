"""``arbo link`` is killed while it writes: its output is the old or the whole new one."""

import os

import pytest
import torch
from typer.testing import CliRunner

from spacy_arbo_el import save_pipeline
from spacy_arbo_el.cli import arbo_cli
from spacy_arbo_el.corpora.convert import write_docbin

from .saved import count_calls, run_and_kill, some_of, tiny_pipeline
from .world import DEV, annotated

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


@pytest.mark.parametrize("name", ["links.jsonl", "links.csv", "links.spacy", "links"])
def test_arbo_link_killed_at_each_call(place, tmp_path, name, attacks):
    output = tmp_path / name

    def link(threshold="1.0"):
        options = ["--output", str(output), "--threshold", threshold]
        arguments = ["link", str(place / "model"), str(place / "dev.spacy"), *options]
        assert CliRunner().invoke(arbo_cli, arguments).exit_code == 0

    link("0.0")
    old = contents_of(output)
    calls = count_calls(link)
    link()
    new, outcomes = contents_of(output), []
    assert new != old
    # The last calls write the output; those before load the pipeline.
    late = range(max(calls - 120, 1), calls + 1)
    for number in [late[i - 1] for i in some_of(len(late), attacks(3, 30))]:
        link("0.0")
        run_and_kill(link, number)
        assert contents_of(output) in (old, new)
        outcomes.append(contents_of(output) == new)
        link()
        assert os.listdir(tmp_path) == [name], "the next run leaves nothing beside its output"
    print(f"{len(outcomes)} kills of arbo link, {sum(outcomes)} after the change")
    assert outcomes == sorted(outcomes)
