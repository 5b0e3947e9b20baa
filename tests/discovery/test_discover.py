"""New entities of a corpus: their mentions, names, ids and nearest entities."""

import json
import subprocess
import sys
from functools import partial

import numpy as np
import pytest
import spacy
from spacy.tokens import DocBin

from spacy_arbo_el import edit_pipeline, find_linker
from spacy_arbo_el.corpora.docbin import write_docbin
from spacy_arbo_el.mentions.record import text_fingerprint

from ..commands import output as invoke
from ..linker.conftest import build
from ..linker.world import DEV, annotated, unlinked_docs

NEW = [
    "The [Zorblat|x] landed on the roof.",
    "A green [Zorblat|x] landed on the roof again.",
    "Every [Zorblat|x] landed on <the> roof & left.",
    "They sold [Quimby's fizzle|y] in the shop.",
    "We drank [Quimby's fizzle|y] in the shop.",
]


@pytest.fixture(scope="module")
def nlp():
    return build(threshold=0.6)


@pytest.fixture(scope="module")
def new_entities(nlp):
    return find_linker(nlp).corpus.discover(unlinked_docs(nlp, [*DEV[:3], *NEW]))


def test_discover_groups_and_describes_new_entities(nlp, new_entities):
    assert [(one.name, len(one.members), one.documents) for one in new_entities[:2]] == [
        ("Zorblat", 3, 3),
        ("Quimby's fizzle", 2, 2),
    ]
    zorblat = new_entities[0]
    mentions = new_entities.mentions_of(zorblat.id)
    assert mentions.documents.tolist() == [3, 4, 5]
    assert tuple(mentions.records) == zorblat.members
    member = zorblat.members[1]
    assert (member.text, member.before) == ("Zorblat", "A green ")
    assert member.after == " landed on the roof again."
    assert member.label == "THING"
    assert len(zorblat.nearest) == 3
    assert all(r.probability < 0.6 for r in zorblat.nearest)
    assert zorblat.nearest[0].probability >= zorblat.nearest[-1].probability
    assert zorblat.nearest[0].reason == "below the threshold of 0.6"
    assert zorblat.nearest[0].title == find_linker(nlp).kb.get(zorblat.nearest[0].kb_id).title


def test_medoid_and_cohesion_equal_those_by_hand(nlp, linker, new_entities):
    docs = unlinked_docs(nlp, NEW[:3])
    vectors = linker.stages.encode(linker.reader.read_docs(docs)).encoded
    cosine = vectors @ vectors.T
    medoid = int(cosine.sum(axis=1).argmax())
    assert new_entities[0].medoid == medoid
    assert new_entities[0].cohesion == pytest.approx(
        np.delete(cosine[medoid], medoid).mean(), abs=1e-3
    )


def test_arbo_discover_and_arbo_link_write_new_entities(nlp, tmp_path):
    nlp.to_disk(tmp_path / "model")
    docs = [annotated(nlp, text) for text in [*DEV, *NEW]]
    write_docbin(docs, tmp_path / "c.spacy")
    invoke("discover", tmp_path / "model", tmp_path / "c.spacy", "-o", tmp_path / "n.jsonl")
    lines = [json.loads(line) for line in (tmp_path / "n.jsonl").read_text().splitlines()]
    first_document = text_fingerprint(docs[len(DEV)].text)
    assert lines[0]["name"] == "Zorblat"
    assert lines[0]["members"][0]["document"] == first_document
    assert "Zorblat" in (tmp_path / "n.html").read_text()

    invoke("link", tmp_path / "model", tmp_path / "c.spacy", "-o", tmp_path / "linked.spacy")
    linked = list(DocBin().from_disk(tmp_path / "linked.spacy").get_docs(spacy.blank("xx").vocab))
    clusters = [doc.ents[0]._.arbo.cluster for doc in linked[len(DEV) :]]
    assert len(set(clusters[:3])) == 1
    assert len(set(clusters[3:])) == 1
    assert clusters[0] != clusters[3]
    assert linked[0].ents[0].kb_id_ == "planet"
    assert "nothing" in fail("link", tmp_path / "model", "nothing", "-o", "x.spacy")
    assert ".html is not" in fail("link", tmp_path / "model", "nothing", "-o", "x.html")


fail = partial(invoke, code=1)


@pytest.fixture(scope="module")
def saved(nlp, tmp_path_factory):
    """A folder with a pipeline and a corpus."""
    folder = tmp_path_factory.mktemp("new")
    nlp.to_disk(folder / "model")
    write_docbin([annotated(nlp, text) for text in NEW], folder / "c.spacy")
    return folder


def test_what_was_decided_on_kept_entities_holds_until_it_is_taken_back(saved, tmp_path):
    kept, lines = tmp_path / "kept", tmp_path / "n.jsonl"

    def discover(model, *more):
        invoke("discover", model, saved / "c.spacy", "-o", lines, "--keep", kept, *more)
        return [json.loads(line)["id"] for line in lines.read_text().splitlines()]

    first, second = discover(saved / "model")
    page = ["discover", kept, saved / "c.spacy", "-o", tmp_path / "n.html", "--keep", kept]
    assert "JSONL" in fail(*page)
    with edit_pipeline(kept) as edited:
        new = find_linker(edited).new_entities
        new.accept(first, "E9")
        new.reject(second)
    assert discover(kept) == []
    with edit_pipeline(kept) as edited:
        new = find_linker(edited).new_entities
        assert [new.undo()["action"] for _ in range(2)] == ["reject", "accept"]
        assert set(new.ids) == {first, second}
        assert "E9" not in find_linker(edited).kb
    assert set(discover(kept)) == {first, second}
    assert len(discover(saved / "model", "--replace")) == 2
    assert not find_linker(spacy.load(kept)).new_entities.log


@pytest.mark.slow
def test_linked_documents_can_be_read_after_importing_the_package(saved, tmp_path):
    invoke("link", saved / "model", saved / "c.spacy", "-o", tmp_path / "linked.spacy")
    code = (
        "import spacy_arbo_el, spacy, sys\n"
        "heavy = 'numba' in sys.modules or 'faiss' in sys.modules\n"
        "from spacy.tokens import DocBin\n"
        f"docs = DocBin().from_disk({str(tmp_path / 'linked.spacy')!r})\n"
        "docs = list(docs.get_docs(spacy.blank('en').vocab))\n"
        "print(docs[0].ents[0]._.arbo.cluster, heavy)"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.stdout.startswith("NEW-"), result.stderr
    assert result.stdout.split()[1] == "False", "the import itself is light"
