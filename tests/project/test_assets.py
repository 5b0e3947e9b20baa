"""The demo data in assets/ is as its README describes it: offsets, ids, ambiguity, discovery."""

import json
import re
from collections import Counter, defaultdict
from pathlib import Path

import pytest
from spacy.util import import_file

from ..cases import cases

ASSETS = Path(__file__).parents[2] / "assets"
SPLITS = ("train", "dev", "test")


README = (ASSETS / "README.md").read_text(encoding="utf8")


def read(name):
    lines = (ASSETS / name).read_text(encoding="utf8").split("\n")
    assert lines.pop() == "", f"{name} does not end with a line break"
    return [json.loads(line) for line in lines]


def surface(doc, mention):
    return doc["text"][mention["start"] : mention["end"]]


def names(entity):
    return {name.casefold() for name in (entity["title"], *entity["aliases"])}


@pytest.fixture(scope="module")
def kb():
    return {entity["id"]: entity for entity in read("entities.jsonl")}


@pytest.fixture(scope="module")
def new():
    return {entity["id"]: entity for entity in read("entities_new.jsonl")}


@pytest.fixture(scope="module")
def splits():
    return {split: read(f"{split}.jsonl") for split in SPLITS}


@pytest.fixture(scope="module")
def mentions(splits):
    """(split, document, mention) of all mentions."""
    return [
        (split, doc, mention)
        for split in SPLITS
        for doc in splits[split]
        for mention in doc["mentions"]
    ]


@pytest.fixture(scope="module")
def builder():
    return import_file("assets_build", ASSETS / "build.py")


def test_there_are_many_mentions_and_their_ids_resolve(mentions, kb, new):
    counts = Counter(split for split, _, _ in mentions)
    assert len(mentions) >= 500 and counts["train"] > counts["test"] and min(counts.values()) >= 100
    for _, doc, mention in mentions:
        is_new = mention["kb_id"] == "NIL"
        keys = {"start", "end", "label", "kb_id"} | ({"cluster"} if is_new else set())
        entity = new[mention["cluster"]] if is_new else kb[mention["kb_id"]]
        assert set(mention) == keys and mention["label"] == entity["types"][0], doc["id"]


def test_the_readme_has_the_counts_of_the_data(builder):
    """Documents, mentions, types, ambiguous names, and entities that train lacks."""
    printed = " ".join(builder.stats(builder.build(), builder.read_entities()).split())
    shown = re.search(r"<!-- stats -->.*?```text\n(.*?)```", README, re.S)[1].split()
    assert " ".join(shown[: shown.index("first")]) in printed
    assert f"first seen after train ({shown[-1]}):" in printed


def test_new_entities_can_be_discovered(mentions):
    """Each is mentioned four times, in two documents, and most by several names."""
    places, surfaces = defaultdict(list), defaultdict(set)
    for split, doc, mention in mentions:
        if split == "test" and mention["kb_id"] == "NIL":
            places[mention["cluster"]].append(doc["id"])
            surfaces[mention["cluster"]].add(surface(doc, mention).casefold())
    assert all(len(ids) >= 4 and len(set(ids)) >= 2 for ids in places.values()), places
    assert sum(len(distinct) > 1 for distinct in surfaces.values()) >= 12


def test_files_are_up_to_date(builder):
    for split, docs in builder.build().items():
        built = builder.to_jsonl(docs).encode("utf8")
        assert (ASSETS / f"{split}.jsonl").read_bytes() == built, "run python assets/build.py"


@pytest.mark.parametrize(("source", "problem"), cases("bad_markup"))
def test_bad_markup_is_refused(builder, source, problem):
    with pytest.raises(ValueError, match=problem):
        builder.parse(source, builder.read_entities(), "train.txt")
