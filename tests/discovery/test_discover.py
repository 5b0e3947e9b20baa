"""New entities of a corpus: their mentions, names, ids and nearest entities."""

import json
import shutil
import subprocess
import sys
from functools import partial

import numpy as np
import pytest
import spacy
from spacy.tokens import DocBin

from spacy_arbo_el import edit_pipeline
from spacy_arbo_el.corpora.docbin import read_docs, write_docbin, write_parts
from spacy_arbo_el.discovery.entities import NewEntity, to_html
from spacy_arbo_el.discovery.new_entities import NewEntities
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
    return nlp.get_pipe("arbo_linker").corpus.discover(unlinked_docs(nlp, [*DEV[:3], *NEW]))


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
    assert member.after == " landed on the roof again." and member.label == "THING"
    assert 0.5 < zorblat.cohesion <= 1.0 and 0 <= zorblat.medoid < 3
    assert len(zorblat.nearest) == 3 and all(r.probability < 0.6 for r in zorblat.nearest)
    assert zorblat.nearest[0].probability >= zorblat.nearest[-1].probability
    assert zorblat.nearest[0].reason == "below the threshold of 0.6"
    assert (
        zorblat.nearest[0].title
        == nlp.get_pipe("arbo_linker").kb.get(zorblat.nearest[0].kb_id).title
    )


def test_medoid_and_cohesion_equal_those_by_hand(nlp, new_entities):
    linker = nlp.get_pipe("arbo_linker")
    docs = unlinked_docs(nlp, NEW[:3])
    vectors = linker.stages.encode(linker.reader.read_docs(docs)).encoded
    cosine = vectors @ vectors.T
    medoid = int(cosine.sum(axis=1).argmax())
    assert new_entities[0].medoid == medoid
    assert new_entities[0].cohesion == pytest.approx(
        np.delete(cosine[medoid], medoid).mean(), abs=1e-3
    )


def test_docs_carry_the_ids_of_new_entities_and_ids_are_stable(nlp, new_entities):
    linker = nlp.get_pipe("arbo_linker")
    docs = unlinked_docs(nlp, NEW)
    again = linker.corpus.discover(docs)
    assert {one.id for one in new_entities[:2]} == {one.id for one in again}, (
        "other documents, same ids"
    )
    assert [doc.ents[0]._.arbo.cluster for doc in docs] == [again[0].id] * 3 + [again[1].id] * 2
    first = linker.corpus.discover(unlinked_docs(nlp, NEW[1:2]))
    assert first[0].cohesion == 1.0
    linker.new_entities = first
    later = linker.corpus.discover(docs)
    assert later[0].id == first[0].id, "what is kept keeps its id"
    assert [doc.ents[0]._.arbo.cluster for doc in docs[:3]] == [first[0].id] * 3
    linker.new_entities = NewEntities()
    assert (
        list(linker.corpus.discover([]))
        == []
        == list(linker.corpus.discover([nlp.make_doc("none here")]))
    )


def test_discover_takes_its_own_threshold(nlp):
    linker = nlp.get_pipe("arbo_linker")
    everything = linker.corpus.discover(unlinked_docs(nlp, [*DEV, *NEW]), threshold=1.0)
    assert sum(len(one.members) for one in everything) == len(DEV) + len(NEW)
    assert linker.threshold == 0.6


def test_the_page_shows_all_mentions_and_escapes_text(new_entities):
    page = to_html(new_entities)
    assert page.count("<mark>") == sum(len(one.members) for one in new_entities)
    assert "&lt;the&gt; roof &amp; left" in page and "<the>" not in page
    many = to_html([NewEntity("i", "n", new_entities[0].members * 3, 0, 1.0, ())])
    assert "<summary>4 more</summary>" in many and "nothing" in many


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
    assert len(set(clusters[:3])) == len(set(clusters[3:])) == 1 and clusters[0] != clusters[3]
    assert linked[0].ents[0].kb_id_ == "planet"
    assert "nothing" in fail("link", tmp_path / "model", "nothing", "-o", "x.spacy")
    assert ".html is not" in fail("link", tmp_path / "model", "nothing", "-o", "x.html")


def test_arbo_link_takes_folders_and_mentions_of_the_pipeline(tmp_path):
    nlp = build(threshold=0.6)
    ruler = nlp.add_pipe("entity_ruler", before="arbo_linker")
    ruler.add_patterns([{"label": "THING", "pattern": name} for name in ("Zorblat", "Mercury")])
    nlp.to_disk(tmp_path / "model")
    write_parts([annotated(nlp, text) for text in [*DEV, *NEW]], tmp_path / "corpus", part=4)
    output = ["-o", tmp_path / "linked", "--find", "pipeline"]
    invoke("link", tmp_path / "model", tmp_path / "corpus", *output)
    linked = list(read_docs(tmp_path / "linked", nlp.vocab))
    assert len(linked) == len(DEV) + len(NEW)
    assert [ent.kb_id_ for doc in linked for ent in doc.ents][:2] == ["planet", "NIL"]
    spans = linked[len(DEV)].spans["new_entities"]
    assert [span.text for span in spans] == ["Zorblat"] and spans[0].id_.startswith("NEW-")


fail = partial(invoke, code=1)


@pytest.fixture(scope="module")
def saved(nlp, tmp_path_factory):
    """A folder with a pipeline, a corpus, and a pipeline that keeps its new entities."""
    folder = tmp_path_factory.mktemp("new")
    nlp.to_disk(folder / "model")
    write_docbin([annotated(nlp, text) for text in NEW], folder / "c.spacy")
    discover(folder, folder / "model", folder / "kept")
    return folder


def discover(folder, model, kept, *more):
    output = folder / f"{kept.name}.jsonl"
    invoke("discover", model, folder / "c.spacy", "-o", output, "--keep", kept, *more)
    return [json.loads(line)["id"] for line in output.read_text().splitlines()]


def test_arbo_new_edits_the_new_entities_of_a_saved_pipeline(nlp, saved, tmp_path):
    kept = tmp_path / "kept"
    shutil.copytree(saved / "kept", kept)
    first, second = spacy.load(kept).get_pipe("arbo_linker").new_entities.ids
    listed = invoke("new", "list", kept)
    assert "2 new entities" in listed and "Zorblat" in listed and first in listed
    table = tmp_path / "decisions.csv"
    rows = [f"{first},accept,E9", f"{second},reject,"]
    table.write_text("\n".join(["id,decision,kb_id", *rows]))
    assert "1 accept, 1 reject" in " ".join(invoke("new", "apply", kept, table).split())
    again = spacy.load(kept)
    linker = again.get_pipe("arbo_linker")
    assert not len(linker.new_entities) and len(linker.new_entities.log) == 2
    assert again(unlinked_docs(again, NEW[:1])[0]).ents[0].kb_id_ == "E9"
    page = ["discover", kept, saved / "c.spacy", "-o", tmp_path / "n.html", "--keep", kept]
    assert "JSONL" in fail(*page)
    # What was decided holds in the next run, until it is taken back.
    assert discover(saved, kept, kept) == []
    with edit_pipeline(kept) as edited:
        linker = edited.get_pipe("arbo_linker")
        assert linker.new_entities.undo()["action"] == "reject"
        assert linker.new_entities.undo()["action"] == "accept"
        assert set(linker.new_entities.ids) == {first, second} and "E9" not in linker.kb
        assert len(linker.exemplars) == len(nlp.get_pipe("arbo_linker").exemplars)
    assert set(discover(saved, kept, kept)) == {first, second}
    assert len(discover(saved, kept, tmp_path / "other", "--replace")) == 2
    assert not spacy.load(tmp_path / "other").get_pipe("arbo_linker").new_entities.log


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
