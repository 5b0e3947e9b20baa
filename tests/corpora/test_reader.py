import json
from dataclasses import asdict

import pytest
import spacy
from hypothesis import given
from hypothesis import strategies as st
from spacy.util import registry

from spacy_arbo_el.corpora.annotated import AnnotatedMention, AnnotatedText, split_ids
from spacy_arbo_el.corpora.docbin import read_docs, write_docbin, write_parts
from spacy_arbo_el.corpora.docs import to_doc
from spacy_arbo_el.corpora.read import read
from spacy_arbo_el.corpora.reader import MentionCorpus
from spacy_arbo_el.records.id_fields import find_id

from ..cases import cases
from ..expecting import raises
from .strategies import annotated_texts


def document(nlp, number):
    text = f"anti-G6PDx  {number}"
    mentions = (
        AnnotatedMention(5, 9, "Gene", ("D1", "D2")),
        AnnotatedMention(0, 4, "X", (), "new-1"),
        AnnotatedMention(0, 9, "Y", ("D3",)),
    )
    return to_doc(nlp, AnnotatedText(f"d{number}", text, mentions))


@pytest.fixture
def corpus(nlp, tmp_path):
    path = tmp_path / "corpus.spacy"
    write_docbin([document(nlp, number) for number in range(5)], path)
    return path


def ids(examples):
    return [example.reference.user_data["doc_id"] for example in examples]


def test_predicted_documents_have_mentions_without_links(corpus):
    config = {"corpus": {"@readers": "spacy-arbo-el.MentionCorpus.v1", "path": str(corpus)}}
    for example in registry.resolve(config)["corpus"](spacy.blank("en")):
        x, y = example.predicted, example.reference
        assert x.text == y.text
        assert [(t.text, t.whitespace_) for t in x] == [(t.text, t.whitespace_) for t in y]
        assert [e.kb_id_ for e in y.ents] == ["D3"]
        assert [s.kb_id_ for s in y.spans["mentions"]] == ["D1|D2", "NIL", "D3"]
        assert [s.id_ for s in y.spans["mentions"]] == ["", "new-1", ""]
        for given_spans, gold in [(x.ents, y.ents), (x.spans["mentions"], y.spans["mentions"])]:
            assert [(s.start, s.end, s.label_) for s in given_spans] == [
                (s.start, s.end, s.label_) for s in gold
            ]
            assert not any(s.kb_id or s.id or s.ent_id for s in given_spans)
        assert not any(token.ent_kb_id or token.ent_id for token in x)
        assert x.user_data == {"doc_id": y.user_data["doc_id"]}


@given(annotated_texts().filter(lambda text: text.text))
def test_predicted_and_reference_have_the_same_tokens(nlp, tmp_path, text):
    path = tmp_path / "one.spacy"
    write_docbin([to_doc(nlp, text)], path)
    (example,) = MentionCorpus(path)(nlp)
    assert example.predicted.text == example.reference.text
    assert example.reference.text == text.text
    assert [t.idx for t in example.predicted] == [t.idx for t in example.reference]
    assert len(example.predicted.spans["mentions"]) == len(text.mentions)


def test_without_gold_mentions_predicted_documents_have_none(corpus, nlp):
    for example in MentionCorpus(corpus, gold_mentions=False)(nlp):
        assert not example.predicted.ents
        assert not example.predicted.spans
        assert example.reference.ents


def test_limit_of_documents_applies_to_files_and_folders(corpus, nlp):
    write_docbin([document(nlp, 9)], corpus.parent / "more" / "b.spacy")
    (corpus.parent / "notes.txt").write_text("not a corpus")
    assert ids(MentionCorpus(corpus.parent)(nlp)) == ["d0", "d1", "d2", "d3", "d4", "d9"]
    assert ids(MentionCorpus(corpus.parent, limit=3)(nlp)) == ["d0", "d1", "d2"]


def test_shuffled_order_depends_on_the_seed(corpus, nlp):
    def passes(seed):
        reader = MentionCorpus(corpus, shuffle=True, seed=seed)
        return [ids(reader(nlp)) for _ in range(4)]

    assert passes(1) == passes(1)
    assert passes(1) != passes(2)
    assert len(set(map(tuple, passes(1)))) > 1
    assert all(sorted(order) == ["d0", "d1", "d2", "d3", "d4"] for order in passes(1))


def test_empty_documents_are_skipped(nlp, tmp_path):
    path = tmp_path / "o.spacy"
    write_docbin([nlp(""), nlp("a")], path)
    assert [example.text for example in MentionCorpus(path)(nlp)] == ["a"]


def test_a_path_without_a_corpus_is_an_error(nlp, tmp_path):
    with raises("has no path. Set it in the config"):
        MentionCorpus(None)
    with pytest.raises(FileNotFoundError, match=r"dev\.spacy does not exist. Convert"):
        list(MentionCorpus(tmp_path / "dev.spacy")(nlp))
    with pytest.raises(FileNotFoundError, match=r"\*\.spacy does not exist. The folder holds no"):
        list(MentionCorpus(tmp_path)(nlp))


@pytest.mark.parametrize("name", ["docs.SPACY", "folder"])
def test_documents_are_read_in_the_order_written_and_failures_keep_them(tmp_path, name):
    nlp = spacy.blank("en")
    texts = [f"document {n}" for n in range(7)]
    assert write_parts(map(nlp.make_doc, texts), tmp_path / name, part_size=3) == 7
    assert [doc.text for doc in read_docs(tmp_path / name, nlp.vocab)] == texts
    assert len(list(tmp_path.rglob("*.[sS]*"))) == (1 if name == "docs.SPACY" else 3)

    def failing():
        yield nlp.make_doc("one")
        raise ValueError("no more")

    with raises("no more"):
        write_parts(failing(), tmp_path / name, part_size=1)
    assert [doc.text for doc in read_docs(tmp_path / name, nlp.vocab)] == texts


@given(st.lists(annotated_texts(), max_size=4, unique_by=lambda text: text.id))
def test_every_annotated_text_is_read_as_it_was(tmp_path, texts):
    path = tmp_path / "texts.jsonl"
    lines = []
    for text in texts:
        mentions = [{**asdict(mention), "kb_id": mention.kb_id} for mention in text.mentions]
        lines.append(json.dumps({"id": text.id, "text": text.text, "mentions": mentions}))
    path.write_text("\n".join(lines), encoding="utf8")
    assert list(read(path, "jsonl")) == texts


@pytest.mark.parametrize("value, ids", cases("annotated_ids"))
def test_split_ids_of_annotations(value, ids):
    assert split_ids(value, "+") == tuple(ids)


def test_split_ids_uses_only_the_given_separators():
    assert split_ids("A+B|C") == ("A+B", "C")


@pytest.mark.parametrize("start, end", [(-1, 2), (2, 2), (2, 1), (0, 6)])
def test_mention_outside_the_text_is_an_error(start, end):
    with raises(rf"'d7'.*from {start} to {end}.*5 characters"):
        AnnotatedText("d7", "12345", (AnnotatedMention(start, end, "X"),))


def test_known_names_of_fields_go_before_others_and_empty_ones_after():
    assert find_id({"note": "x", "CUI": "", "mesh": 7}).value == "7"
    assert find_id({"note": "x", "CUI": ""}).unread == ()
    assert find_id({"note": "x", "is_mapped": True}).unread == ("note",)
