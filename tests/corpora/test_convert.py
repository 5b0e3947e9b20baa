import json
from collections import Counter

import pytest
import spacy
from hypothesis import given
from spacy.tokens import Doc, DocBin
from spacy.vocab import Vocab

from spacy_arbo_el import Entity
from spacy_arbo_el.corpora.annotated import AnnotatedMention, AnnotatedText
from spacy_arbo_el.corpora.convert import (
    COUNTED,
    concept_map_of,
    convert_corpus,
    normalise_ids,
    select,
)
from spacy_arbo_el.corpora.docs import to_doc
from spacy_arbo_el.corpora.read import docs_in
from spacy_arbo_el.records.source import Source

from ..cases import cases
from ..expecting import raises, warns
from .strategies import annotated_texts


def described(span):
    return (span.start_char, span.end_char, span.label_, span.kb_id_, span.id_)


def expected(mention):
    return (mention.start, mention.end, mention.label, mention.kb_id, mention.cluster)


def text_of(text, *mentions):
    return AnnotatedText("d1", text, tuple(AnnotatedMention(*mention) for mention in mentions))


@given(annotated_texts())
def test_every_mention_keeps_its_exact_offsets_also_in_a_file(nlp, text):
    counts = Counter()
    doc = to_doc(nlp, text, counts=counts)
    assert {token.idx for token in nlp.make_doc(text.text)} <= {token.idx for token in doc}
    data = DocBin(store_user_data=True, docs=[doc]).to_bytes()
    (again,) = DocBin().from_bytes(data).get_docs(Vocab())
    assert again.user_data["doc_id"] == text.id
    for one in (doc, again):
        assert one.text == text.text
        assert list(map(described, one.spans["mentions"])) == list(map(expected, text.mentions))
        assert {described(ent) for ent in one.ents} <= {expected(m) for m in text.mentions}
        # The longest without overlap.
        assert len(one.ents) + counts["overlapping"] == len(text.mentions)
        for span in one.spans["mentions"]:
            over = [ent for ent in one.ents if ent.start < span.end and span.start < ent.end]
            assert any(len(ent) >= len(span) for ent in over)


def test_tokenizer_that_changes_the_text_is_an_error():
    nlp = spacy.blank("en")
    nlp.tokenizer = lambda text: Doc(nlp.vocab, words=text.lower().split())
    with raises("changes the text of document 'd1'"):
        to_doc(nlp, text_of("A  b"))


def write_texts(write, *texts):
    records = []
    for i, (text, mentions) in enumerate(texts):
        spans = [dict(zip(("start", "end", "label", "kb_id"), one)) for one in mentions]
        records.append({"id": f"d{i}", "text": text, "mentions": spans})
    return write("\n".join(map(json.dumps, records)), "corpus.jsonl")


def test_convert_corpus_selects_mentions_and_counts_them(nlp, write, tmp_path):
    path = write_texts(
        write,
        ("abc d", [(0, 1, "X", "OMIM:7|C1"), (0, 3, "X", "C1|D2"), (4, 5, "Y", "C1")]),
        ("test set", []),
        ("e", [(0, 1, "X", None)]),
    )
    out = tmp_path / "new" / "corpus.spacy"
    options = {"labels": ["X"], "concept_map": {"7": "C1", "C1": "C1"}, "exclude_ids": ["d1"]}
    with warns(r"1 mentions overlap .* doc.spans\['mentions'\]"):
        counts = convert_corpus(path, out, format="jsonl", nlp=nlp, **options)
    expected = {**dict.fromkeys(COUNTED, 1), "docs": 2, "mentions": 3, "duplicates": 0}
    assert counts == expected
    first, second = DocBin().from_disk(out).get_docs(spacy.blank("en").vocab)
    assert [span.kb_id_ for span in first.spans["mentions"]] == ["C1", "C1|D2"]
    assert second.user_data["doc_id"] == "d2"


def test_mentions_to_link_that_overlap_longer_ones_are_warned_of(nlp, write):
    path = write_texts(write, ("a b", [(0, 1, "X", "C1"), (0, 3, "X", "C1")]))
    with warns("W101.* 1 mentions"):
        (doc,) = docs_in(Source(path), nlp)
    assert [ent.text for ent in doc.ents] == ["a b"]


def test_select_accepts_one_label_as_a_string():
    text = text_of("a b", (0, 1, "Disease"), (2, 3, "D"))
    (selected,) = select([text], labels="Disease")
    assert [mention.label for mention in selected.mentions] == ["Disease"]


def test_an_unknown_format_and_a_corpus_without_documents_are_errors(nlp, write, tmp_path):
    with raises("no format 'conll'.*jsonl.*pubtator"):
        convert_corpus(write(""), tmp_path / "o.spacy", format="conll", nlp=nlp)
    with raises("no documents to write to .*o.spacy"):
        convert_corpus(write(""), tmp_path / "o.spacy", format="jsonl", nlp=nlp)
    assert not (tmp_path / "o.spacy").exists()


@pytest.mark.parametrize("add, warned", [(0, False), (-1, True)])
def test_ends_that_name_the_last_character_are_warned_of(nlp, tmp_path, recwarn, add, warned):
    text = "Blue fever and red plague."
    spans = [{"start": s, "end": e + add, "kb_id": "D1"} for s, e in ((0, 10), (15, 25))]
    path = tmp_path / "in.jsonl"
    path.write_text(json.dumps({"id": "a", "text": text, "mentions": spans}) + "\n")
    convert_corpus(path, tmp_path / "out.spacy", format="jsonl", nlp=nlp)
    assert any("characters-inclusive 0 would" in str(one.message) for one in recwarn) == warned


CONCEPTS = {"C1": "C1", "264300": "C1", "D2": "D2", "OMIM:98": "X"}


@pytest.mark.parametrize("ids, expected", cases("mapped_ids"))
def test_ids_are_mapped_to_their_concepts(ids, expected):
    assert normalise_ids(ids, CONCEPTS) == tuple(expected)


def test_without_a_map_ids_stay_as_they_are():
    assert normalise_ids(["OMIM:99", "Q1"], None) == ("OMIM:99", "Q1")


def test_concept_map_of_entities_prefers_their_own_ids():
    entities = [
        Entity("D1", meta={"ids": ["D1", "7", "8"]}),
        Entity("D2", meta={"ids": ["D2", "8"]}),
        Entity("7"),
    ]
    assert concept_map_of(entities) == {"D1": "D1", "7": "7", "8": "D1", "D2": "D2"}
