import json

import pytest

from spacy_arbo_el.contrib.scale.job import Job

from ...linker.world import DEV, TRAIN, parse

N_DOCUMENTS = 24
# Between the scores of its links, so that some mentions are NIL.
THRESHOLD = 0.9
# Documents with a mention that the knowledge base lacks, so that one graph has new entities too.
LACKED_IN = {4, 5, 20}


def record(number, marked):
    text, mentions = parse(marked)
    spans = [{"start": start, "end": end, "label": "THING"} for start, end, _ in mentions]
    if number in LACKED_IN:
        start = len(text) + 1
        spans.append({"start": start, "end": start + len("Zorblin"), "label": "THING"})
    return {"id": f"d{number}", "text": f"{text} Zorblin knew number {number}.", "mentions": spans}


@pytest.fixture(scope="session")
def records():
    """Documents as they are in JSONL: three in a row without mentions, and two of one text."""
    texts = [*DEV, *TRAIN]
    found = [record(number, texts[number % len(texts)]) for number in range(N_DOCUMENTS)]
    for one in found[9:12]:
        one["mentions"] = []
    return [*found[:13], {**found[14], "id": "d13"}, *found[14:]]


@pytest.fixture(scope="session")
def corpus(records, tmp_path_factory):
    path = tmp_path_factory.mktemp("documents") / "corpus.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in records), encoding="utf8")
    return path


@pytest.fixture(scope="session")
def model(saved_tiny):
    """The folder of a pipeline that can be loaded by its path."""
    return saved_tiny


def above(threshold):
    """Overrides of the config for this threshold."""
    return {"components.arbo_linker.threshold": threshold}


@pytest.fixture
def make_job(model, corpus, tmp_path):
    """Function that makes a job of three documents a shard."""

    def make(name="out", **settings):
        values = {"format": "jsonl", "overrides": above(THRESHOLD), "size": 3, **settings}
        return Job.of(model, values.pop("corpus", corpus), tmp_path / name, **values)

    return make


def rows_in(folder):
    """All rows of links, in the order of documents and mentions."""
    files = sorted((folder / "links").iterdir())
    rows = [json.loads(line) for file in files for line in file.read_text("utf8").splitlines()]
    return ordered(rows)


def ordered(rows):
    return sorted(rows, key=lambda row: (row["document"], row["start"], row["end"]))
