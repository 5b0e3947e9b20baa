"""Links and candidates as dicts."""

import json

import spacy
from spacy.tokens import Doc, DocBin, Span

from spacy_arbo_el import candidates_to_dicts, links_to_dicts, render_evidence
from spacy_arbo_el.corpora.links import doc_record
from spacy_arbo_el.mentions.getters import EntSpans, GroupSpans, same_tokens

from ..expecting import no_warnings, warns
from .test_pages import linked_doc

ROWS = [
    ("first", 0, 7, "Mercury", "STAR", "D1", "Mercury", 0.934, 0.0, "", ""),
    ("first", 12, 19, "Zorblat", "THING", "NIL", "", 0.123, 0.0, "", "new-1"),
]


def test_links_of_docs_are_rows():
    rows = links_to_dicts([linked_doc(doc_id="first")])
    assert [tuple(row.values()) for row in rows] == ROWS
    assert list(rows[0])[5:] == ["kb_id", "title", "score", "presence", "undecided", "new_entity"]
    assert json.loads(json.dumps(rows)) == rows
    doc = linked_doc(doc_id="first")
    doc.spans["none"] = []
    assert links_to_dicts([doc], get_spans=GroupSpans("none")) == []


def test_documents_without_an_id_are_named_by_their_fingerprint():
    doc = linked_doc(doc_id="first")
    del doc.user_data["doc_id"]
    (name,) = {row["document"] for row in links_to_dicts([doc])}
    assert len(name) == 16


def test_documents_without_user_data_have_their_ids():
    doc = linked_doc(doc_id="first")
    stored = DocBin(docs=[doc]).to_bytes()
    copies = [*DocBin().from_bytes(stored).get_docs(doc.vocab), doc[:].as_doc()]
    copies.append(Doc.from_docs([doc], exclude=["user_data"]))
    for copy in copies:
        assert [(ent.text, ent.kb_id_) for ent in copy.ents] == [
            ("Mercury", "D1"),
            ("Zorblat", "NIL"),
        ]
        rows = links_to_dicts([copy])
        assert [(row["start"], row["kb_id"], row["score"]) for row in rows] == [
            (0, "D1", 1.0), (12, "NIL", 0.0)
        ]  # fmt: skip
        assert [one["kb_id"] for one in doc_record(copy, "x", EntSpans(), "arbo")["mentions"]] == [
            "D1", "NIL"
        ]  # fmt: skip
    assert links_to_dicts([same_tokens(doc, doc.vocab)]) == []


def test_candidates_of_docs_are_rows():
    rows = candidates_to_dicts([linked_doc(doc_id="first")])
    assert [(row["text"], row["rank"], row["kb_id"], row["is_linked"]) for row in rows] == [
        ("Mercury", 1, "D1", True),
        ("Mercury", 2, "D2", False),
        ("Zorblat", 1, "D1", False),
    ]
    assert [row["title"] for row in rows] == ["Mercury", "Hg", "Mercury"]
    assert len(candidates_to_dicts([linked_doc(doc_id="first")], count=1)) == 2


def test_a_link_as_a_dict_has_names_for_everything():
    data = linked_doc().ents[0]._.arbo.to_dict()
    assert json.loads(json.dumps(data)) == data
    assert data.items() >= {"text": "Mercury", "label": "STAR", "start": 0, "end": 7}.items()
    assert data["candidates"][0] == {
        "kb_id": "D1",
        "score": 0.934,
        "title": "Mercury",
        "share": 0.0,
    }
    assert data["evidence"][1]["kind"] == "mention"
    assert data["title"] == "Mercury"


def test_rows_and_pages_follow_what_was_edited_after_linking():
    def edited(*spans):
        doc = linked_doc(doc_id="first")
        doc.ents = [Span(doc, *span[:2], "NEW", kb_id=span[2]) for span in spans]
        rows = [tuple(row.values())[3:] for row in links_to_dicts([doc])]
        record = doc_record(doc, "", EntSpans(), "arbo")["mentions"]
        assert [one["kb_id"] or "" for one in record] == [ent.kb_id_ for ent in doc.ents]
        return rows, render_evidence([doc])

    kept = ("Zorblat", "NEW", "NIL", "", 0.123, 0.0, "", "new-1")
    rows, page = edited((0, 1, "OTHER"), (2, 3, "NIL"))
    assert rows == [("Mercury", "NEW", "OTHER", "OTHER", 1.0, 0.0, "", ""), kept]
    assert "OTHER (OTHER)" in page
    assert "D1 (Mercury), probability" not in page
    assert edited((0, 1, "D2"))[0] == [("Mercury", "NEW", "D2", "Hg", 1.0, 0.0, "", "")]
    assert edited((0, 1, "NIL"))[0] == [("Mercury", "NEW", "NIL", "", 0.0, 0.0, "", "")]
    assert edited((1, 2, "D1"))[0] == [("saw", "NEW", "D1", "D1", 1.0, 0.0, "", "")], (
        "a new mention"
    )
    assert edited((2, 3, ""))[0] == [], "no link any more"
    assert edited()[0] == []


def test_links_of_span_groups_are_asked_for():
    nlp = spacy.blank("en")
    doc = nlp("Blue fever came.")
    doc.spans["mine"] = [Span(doc, 0, 2, "D", kb_id="D1")]
    with warns("W111.*'mine'"):
        assert links_to_dicts([doc]) == []
    with no_warnings():
        rows = links_to_dicts([doc], get_spans=GroupSpans("mine"))
    assert [row["kb_id"] for row in rows] == ["D1"]
