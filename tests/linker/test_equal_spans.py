"""Spans of several labels over the same text: each has its own link, wherever links are kept."""

import pytest
import spacy
from spacy.tokens import Doc, DocBin, Span
from spacy.training import Example

from spacy_arbo_el import links_to_dicts
from spacy_arbo_el.contrib.review.differences import by_mention, differences
from spacy_arbo_el.evaluation.outcomes import outcomes
from spacy_arbo_el.mentions.getters import GroupSpans

GETTER = GroupSpans("sc")
OF = {"A": "1", "B": "2", "C": "3"}


def pipeline(**config):
    nlp = spacy.blank("en")
    section = {"@misc": "spacy-arbo-el.GroupSpans.v1", "spans_key": "sc"}
    config = {"mentions": {"getter": section}, "retriever": {"match_types": True}, **config}
    linker = nlp.add_pipe("arbo_linker", config=config)
    linker.set_kb([{"id": OF[one], "title": "Veil", "types": [one]} for one in OF])
    return nlp


@pytest.fixture(scope="module")
def nlp():
    return pipeline()


def marked(nlp, labels, kb_ids=OF):
    doc = nlp.make_doc("Old Veil sank.")
    spans = [Span(doc, 1, 2, label, kb_id=kb_ids.get(label, "")) for label in labels]
    doc.spans["sc"] = [Span(doc, 0, 2, "A"), *spans]
    return doc


def own_ids(doc):
    return {(span.label_, span.kb_id_, span._.arbo.kb_id) for span in list(doc.spans["sc"])[1:]}


@pytest.mark.parametrize("labels", ["AB", "BA", "CAB", "ABA"])
def test_each_label_over_a_text_has_its_own_link(nlp, labels):
    doc = nlp(marked(nlp, labels, {}))
    assert [span.label_ for span in doc.spans["sc"]] == ["A", *labels]
    expected = {(label, OF[label], OF[label]) for label in labels}
    assert own_ids(doc) == expected
    rows = links_to_dicts([doc], get_spans=GETTER)[1:]
    assert {(row["label"], row["kb_id"]) for row in rows} == {(one, OF[one]) for one in labels}
    read = Doc(nlp.vocab).from_bytes(doc.to_bytes())
    assert own_ids(read) == expected
    bin_bytes = DocBin(docs=[doc], store_user_data=True).to_bytes()
    (stored,) = DocBin(store_user_data=True).from_bytes(bin_bytes).get_docs(nlp.vocab)
    assert own_ids(stored) == expected
    assert doc[1:2]._.arbo.kb_id == OF[min(labels)], "a span without a label has the first"


def test_scores_and_differences_compare_labels_of_equal_spans(nlp):
    gold, found = marked(nlp, "AB"), nlp(marked(nlp, "BA", {}))
    pairs = outcomes([Example(found, gold)], GETTER, "arbo")
    assert [(one.label, one.gold, one.predicted) for one in pairs] == [
        ("A", ("1",), "1"),
        ("B", ("2",), "2"),
    ]
    other = outcomes([Example(nlp(marked(nlp, "C", {})), marked(nlp, "AB"))], GETTER, "arbo")
    assert [(one.label, one.predicted) for one in other] == [("A", "3"), ("B", None)]
    before = by_mention(links_to_dicts([found], get_spans=GETTER))
    found.spans["sc"] = [Span(found, 1, 2, label, kb_id="1") for label in "BA"]
    after = by_mention(links_to_dicts([found], get_spans=GETTER))
    changed = [one.key[3] for one in differences(before, after) if one.after]
    assert len(before) == 3
    assert changed == ["B"]


@pytest.mark.parametrize("how", ["a document", "a corpus"])
def test_equal_spans_are_one_mention_of_a_new_entity(how):
    nlp = pipeline(threshold=1.0, discovery={"@misc": "spacy-arbo-el.Discovery.v1"})
    linker = nlp.get_pipe("arbo_linker")
    doc = marked(nlp, "AB", {})
    new_entities = linker.corpus.discover([doc]) if how == "a corpus" else None
    doc = doc if how == "a corpus" else nlp(doc)
    clusters = {span._.arbo.cluster for span in list(doc.spans["sc"])[1:]}
    assert all(clusters)
    assert len(clusters) <= 2
    if new_entities is not None:
        assert len(clusters) == 1
        assert len(new_entities.rows) == 2
