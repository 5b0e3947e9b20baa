"""A pipeline whose encoder needs no torch is linked in shards where torch is not installed."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import spacy
from thinc.api import fix_random_seed

from spacy_arbo_el import links_to_dicts, save_pipeline
from spacy_arbo_el.contrib.scale.job import Job
from spacy_arbo_el.contrib.scale.runs import link_in_shards
from spacy_arbo_el.contrib.scale.worker import ShardWorker
from spacy_arbo_el.corpora.read import read_documents

from ...linker.conftest import NGRAMS_OF_FIELDS, build
from .conftest import rows_in

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def ngram_model(tmp_path_factory):
    fix_random_seed(0)
    folder = tmp_path_factory.mktemp("ngrams") / "model"
    save_pipeline(build(**NGRAMS_OF_FIELDS), folder)
    return folder


@pytest.mark.slow
def test_documents_and_shards_are_linked_without_torch(ngram_model, corpus, tmp_path):
    out = tmp_path / "without"
    command = [sys.executable, "-m", "tests.contrib.scale.without_torch", ngram_model, corpus, out]
    result = subprocess.run(list(map(str, command)), capture_output=True, text=True, cwd=ROOT)
    assert result.returncode == 0, result.stderr
    answer = json.loads(result.stdout)
    assert (answer["loaded"], answer["versions"]) == ([], ["spacy", "spacy_arbo_el"])
    nlp = spacy.load(ngram_model)
    assert answer["links"] == links_to_dicts(nlp.pipe(read_documents(corpus, nlp)))
    for name, one_graph in (("each", False), ("graph", True)):
        settings = {"one_graph": one_graph, "format": "jsonl", "size": 5}
        job = Job.of(ngram_model, corpus, tmp_path / name, **settings)
        list(link_in_shards(job))
        assert rows_in(out / name) == rows_in(job.folder) != []


def test_a_worker_with_packages_that_the_driver_has_not_is_refused(make_job):
    job = make_job()
    without = {name: value for name, value in job.versions.items() if name != "torch"}
    with pytest.raises(ValueError, match="E891.*torch"):
        ShardWorker(replace(job, versions=without))
