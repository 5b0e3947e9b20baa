"""Silver mentions: what is found, what is left out, and that annotations cannot be reached."""

import json
from collections import Counter

import numpy as np
import pytest
import spacy
from hypothesis import given
from hypothesis import strategies as st
from spacy.tokens import Span

from spacy_arbo_el import Entity
from spacy_arbo_el.contrib.papers.silver import (
    choose,
    read_plain_documents,
    scanned,
    write_chosen,
)
from spacy_arbo_el.corpora.docbin import read_docs, write_docbin
from spacy_arbo_el.find.dictionary import Dictionary
from spacy_arbo_el.kb.importers import write_entities_jsonl

from ...cases import cases
from ...commands import run
from ...expecting import raises

ENTITIES = [
    Entity("all", "acute lymphatic leukaemia", aliases=["ALL", "leukaemia"], types=["Disease"]),
    Entity("flu", "Influenza", aliases=["flu", "x", "1918", "is"]),
    Entity("it", "information technology", aliases=["IT"]),
    Entity("songs", "Never", aliases=["There", "Her"]),
    Entity("cold", "common cold", aliases=["cold"]),
    Entity("copd", "chronic obstructive disease", aliases=["COLD", "obstructive disease"]),
    Entity("bird", "bird flu", aliases=["obstructive disease"]),
]
NLP = spacy.blank("en")


def silver(tmp_path, texts, entities=ENTITIES, **settings):
    docs = list(NLP.pipe(texts))
    for number, doc in enumerate(docs):
        doc.user_data["doc_id"] = str(number)
    exclude = settings.pop("exclude", ())
    out = tmp_path / "silver.spacy"
    dictionary = Dictionary.build(NLP, entities)
    with scanned(docs, dictionary, exclude) as scan:
        report = write_chosen(scan, out, **settings)
    found = {
        doc.user_data["doc_id"]: [(span.text, span.kb_id_) for span in doc.ents]
        for doc in read_docs(out, NLP.vocab)
    }
    return report, found


@pytest.mark.parametrize("text, mentions", cases("silver_mentions"))
def test_what_is_found(tmp_path, text, mentions):
    _, found = silver(tmp_path, [text])
    assert [name for name, _ in found["0"]] == mentions


def test_ids_labels_and_counts(tmp_path):
    texts = [
        "A flu. ALL was seen.",
        "Nothing here.",
        "An obstructive disease and a flu.",
        "A flu elsewhere.",
    ]
    report, found = silver(tmp_path, texts, exclude={"3"})
    assert found == {"0": [("flu", "flu"), ("ALL", "all")], "2": [("flu", "flu")]}
    (doc, _) = read_docs(tmp_path / "silver.spacy", NLP.vocab)
    assert [span.label_ for span in doc.ents] == ["ENTITY", "Disease"]
    counts = {"docs": 2, "mentions": 3, "entities": 2, "names": 2}
    left_out = {
        "excluded": 1,
        "without": 1,
        "unusable": 6,
        "ambiguous": 1,
        "hidden": 0,
        "surplus": 0,
    }
    assert report.counts == {**counts, **left_out}
    assert report.frequent == [("flu", 2), ("ALL", 1)]


def test_frequent_names_are_limited(tmp_path):
    texts = ["The flu again, and a cold." for _ in range(30)]
    kept = []
    for seed in (0, 0, 1):
        report, found = silver(tmp_path, texts, per_name=5, seed=seed)
        assert report.counts["mentions"] == 10
        assert report.counts["surplus"] == 50
        docs = list(read_docs(tmp_path / "silver.spacy", NLP.vocab))
        assert sum(bool(token.ent_kb_id_) for doc in docs for token in doc) == 10
        kept.append(set(found))
    assert kept[0] == kept[1]
    assert kept[1] != kept[2]
    assert silver(tmp_path, texts, per_name=0)[0].counts["mentions"] == 60


@given(st.lists(st.integers(0, 4), max_size=60), st.integers(0, 5), st.integers(0, 3))
def test_choice(names, per_name, seed):
    names = np.array(names, dtype=np.int64)
    chosen = choose(names, per_name, seed)
    for name, count in Counter(names.tolist()).items():
        wanted = min(count, per_name) if per_name else count
        assert chosen[names == name].sum() == wanted


def test_all_mentions_of_a_name_can_be_chosen():
    names = np.zeros(10, dtype=np.int64)
    assert np.any([choose(names, 1, seed) for seed in range(100)], axis=0).all()


PUBTATOR = "7|t|Flu in Vestria\n7|a|GOLDID is rife.\n7\t0\t3\tFlu\tDisease\tGOLDID\n"


def test_annotations_of_the_source_cannot_be_reached(tmp_path):
    """No id, label, title or other data of an annotated source is in what is written."""
    nlp = spacy.blank("en")
    doc = nlp("A flu in Vestria.")
    doc.ents = [Span(doc, 1, 2, "GOLDLABEL", kb_id="GOLDID")]
    doc.spans["GOLDKEY"] = [Span(doc, 0, 2, "GOLDLABEL", kb_id="GOLDID")]
    doc.user_data["GOLDDATA"] = "GOLDID"
    write_docbin([doc], tmp_path / "a.spacy")
    mention = {"start": 2, "end": 5, "label": "GOLDLABEL", "kb_id": "GOLDID"}
    record = {"text": "A flu.", "mentions": [mention], "title": "GOLDTITLE"}
    (tmp_path / "b.jsonl").write_text(json.dumps(record))
    (tmp_path / "c.pubtator").write_text(PUBTATOR.replace("GOLDID is rife", "It is rife"))
    docs = [
        *read_plain_documents(tmp_path / "a.spacy", NLP),
        *read_plain_documents(tmp_path / "b.jsonl", NLP),
        *read_plain_documents(tmp_path / "c.pubtator", NLP, "pubtator"),
    ]
    assert len(docs) == 3
    assert not any(doc.ents or doc.spans for doc in docs)
    entities = [Entity("mine", "flu"), Entity("mine2", "Flu")]
    with scanned(docs[:2], Dictionary.build(NLP, entities)) as scan:
        write_chosen(scan, tmp_path / "out.spacy")
    for written in read_docs(tmp_path / "out.spacy", spacy.blank("en").vocab):
        assert {span.kb_id_ for span in written.ents} == {"mine"}
        assert not written.spans
        assert set(written.user_data) <= {"doc_id"}
        assert "GOLD" not in repr([written.to_json(), written.user_data])


def test_bad_input(tmp_path):
    out = tmp_path / "silver.spacy"
    with raises("no name to look for. 3 names"):
        silver(tmp_path, ["A flu."], [Entity("a", "x", aliases=["12", "is"])])
    with raises("None of the 13 names.* in the 1 documents"):
        silver(tmp_path, ["Nothing here."])
    assert not out.exists()


def test_command(tmp_path):
    write_entities_jsonl(ENTITIES, tmp_path / "kb.jsonl")
    (tmp_path / "texts").mkdir()
    # "cold" is on every line: it is found, limited, and reported.
    lines = [f"A cold day {number}." for number in range(50)]
    (tmp_path / "texts" / "a.txt").write_text("\n".join([*lines, "", "The flu."]))
    (tmp_path / "drop.txt").write_text("a.txt:52\n")
    paths = ["--kb", tmp_path / "kb.jsonl", "-o", tmp_path / "s.spacy"]
    more = ["--per-name", 3, "--exclude", tmp_path / "drop.txt"]
    output = run("silver", tmp_path / "texts", *paths, *more)
    assert "3 documents, 3 mentions of 1 entities by 1 names" in output
    assert "47 mentions of names that have enough" in output
    assert "cold (50)" in output
    assert len(list(read_docs(tmp_path / "s.spacy", NLP.vocab))) == 3
    printed = run("silver", tmp_path / "kb.jsonl", "--format", "pubtator", *paths, code=1)
    assert "kb.jsonl, line 1" in printed


def test_documents_without_ids_have_those_of_their_places(tmp_path):
    """By which they are split between training and dev."""
    write_docbin([NLP.make_doc("The flu."), NLP.make_doc("A cold.")], tmp_path / "texts.spacy")
    docs = read_plain_documents(tmp_path / "texts.spacy", NLP)
    assert [doc.user_data["doc_id"] for doc in docs] == ["texts.spacy:1", "texts.spacy:2"]


def test_nothing_is_written_where_one_part_has_no_mention(tmp_path):
    write_entities_jsonl(ENTITIES, tmp_path / "kb.jsonl")
    source = tmp_path / "texts.spacy"
    write_docbin([NLP.make_doc("The flu and leukaemia.")], source)
    for seed in range(8):
        command = ["silver", source, "--kb", tmp_path / "kb.jsonl", "--seed", seed]
        for option in ("--output", "--dev", "--hidden-kb"):
            command += [option, tmp_path / f"out{option}.spacy"]
        run(*command, code=1)
        assert {path.name for path in tmp_path.iterdir()} == {"kb.jsonl", "texts.spacy"}
