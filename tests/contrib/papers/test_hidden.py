"""Hidden synonyms: what is hidden, what stays in the knowledge base, and what no one may learn."""

import json

import numpy as np
import pytest
import spacy
from hypothesis import given
from hypothesis import strategies as st

from spacy_arbo_el import ArboKB, Entity
from spacy_arbo_el.contrib.papers import hidden as hidden_names
from spacy_arbo_el.contrib.papers.hidden import BARE, HiddenDev, is_dev, without_names
from spacy_arbo_el.contrib.papers.silver import scanned, write_chosen
from spacy_arbo_el.corpora.docbin import read_docs
from spacy_arbo_el.find.dictionary import Dictionary, key_of
from spacy_arbo_el.kb.importers import write_entities_jsonl
from spacy_arbo_el.names.words import words_of

from ...commands import run
from ...expecting import raises

NLP = spacy.blank("en")
ENTITIES = [
    Entity("flu", "influenza", "A virus.", aliases=("flu", "Flu", "grippe"), types=("Disease",)),
    Entity("cold", "common cold", aliases=("coryza",)),
    Entity("mump", "mumps", aliases=("epidemic parotitis",)),
    Entity("rage", "rabies", aliases=("hydrophobia", "lyssa")),
    Entity("gout", "gout"),
    # Names of two entities can't be hidden: what they mean is open.
    Entity("one", "shared name"),
    Entity("two", "shared name"),
]
TEXTS = ["The influenza and the common cold.", "A grippe, a flu and gout.", "Coryza again."]


def hidden(tmp_path, texts=TEXTS, entities=ENTITIES, share=1.0, **options):
    docs = [NLP(text) for text in texts]
    for number, doc in enumerate(docs):
        doc.user_data["doc_id"] = str(number)
    dictionary = Dictionary.build(NLP, entities)
    with scanned(docs, dictionary) as scan:
        dev = HiddenDev.choose(scan, share, **options)
        dev.write(NLP, tmp_path / "dev.spacy")
    return dev, dictionary, list(read_docs(tmp_path / "dev.spacy", NLP.vocab))


def test_one_name_of_each_entity_is_hidden(tmp_path):
    dev, dictionary, docs = hidden(tmp_path)
    names = [dictionary.names[number] for number in dev.hidden]
    assert {name.kb_id for name in names} == {"cold", "flu", "mump", "rage"}
    in_text = [span.text.lower() for doc in docs for span in doc.ents]
    # Of entities in the texts, a name that the texts have.
    assert {name.text.lower() for name in names} <= set(in_text)
    bare = [doc for doc in docs if doc.user_data["doc_id"].startswith(BARE)]
    assert {doc.ents[0].kb_id_ for doc in bare} == {"mump", "rage"}
    assert len(bare) == len(dev.bare)
    assert all(len(doc.ents) == 1 and doc.ents[0].text == doc.text for doc in bare)
    # Known names are in the dev set as well.
    assert {"gout"} < set(in_text)
    assert dev.in_text == sum(
        key_of(span.text) in {key_of(name.text) for name in names}
        for doc in docs[: -len(bare)]
        for span in doc.ents
    )


def test_every_second_name_is_hidden_with_those_of_the_same_words(tmp_path):
    def entity(kind):
        names = (f"{kind} neoplasm", f"Neoplasms, {kind}", f"{kind}  neoplasms", f"{kind} cancer")
        return Entity(kind, names[0], aliases=names[1:])

    kinds = ("breast", "lung", "colon", "skin")
    entities = [entity(kind) for kind in kinds]
    text = " ".join(f"A {kind} neoplasm." for kind in kinds)
    dev, dictionary, _ = hidden(tmp_path, [text], entities)
    assert dev.in_text == len(kinds)
    left = [new.names for new in without_names(entities, dictionary, dev.hidden)]
    assert left[0::2] == [["Neoplasms, breast", "breast  neoplasms", "breast cancer"],
                          ["Neoplasms, colon", "colon  neoplasms", "colon cancer"]]  # fmt: skip
    assert left[1::2] == [["lung cancer"], ["skin cancer"]]


@given(st.floats(0, 1), st.integers(0, 5))
def test_share_and_seed(tmp_path_factory, share, seed):
    path = tmp_path_factory.mktemp("hidden")
    dev, dictionary, _ = hidden(path, share=share, seed=seed)
    again, _, _ = hidden(path, share=share, seed=seed)
    assert (dev.hidden, dev.bare) == (again.hidden, again.bare)
    ids = [dictionary.names[number].kb_id for number in dev.hidden]
    in_text = {"flu", "cold"}.intersection(ids)
    keys = {(dictionary.names[n].kb_id, *words_of(dictionary.names[n].text)) for n in dev.hidden}
    assert len(keys) == len(set(ids))
    assert len(in_text) == int(np.ceil(share * 2))
    assert len(dev.bare) <= dev.in_text


def test_documents_are_of_one_part():
    ids = [str(number) for number in range(2000)]
    assert 0.15 < np.mean([is_dev(id_, 0) for id_ in ids]) < 0.25
    assert [is_dev(id_, 0) for id_ in ids] != [is_dev(id_, 1) for id_ in ids]
    is_dev("\ud800", 0)


def test_what_is_inside_of_a_hidden_name_is_no_mention(tmp_path):
    """ "Bird flu" is hidden: the flu in it is not suddenly a mention of another entity."""
    entities = [Entity("bird", "bird flu", aliases=["H5N1"]), Entity("flu", "flu")]
    dictionary = Dictionary.build(NLP, entities)
    number = next(n for n, name in enumerate(dictionary.names) if name.text == "bird flu")
    docs = [NLP("A bird flu, a flu.")]
    with scanned(docs, dictionary, hidden={number}) as scan:
        report = write_chosen(scan, tmp_path / "x.spacy")
    (doc,) = read_docs(tmp_path / "x.spacy", NLP.vocab)
    assert [span.start for span in doc.ents] == [5]
    assert report.counts["hidden"] == 1


def test_no_entity_has_two_names(tmp_path):
    entities = [Entity("a", "gout"), Entity("b", "mumps", aliases=["Mumps"])]
    with raises("E842.*synonyms"):
        hidden(tmp_path, ["Gout and mumps."], entities)
    assert not (tmp_path / "dev.spacy").exists()


# The command


@pytest.fixture
def world(tmp_path):
    write_entities_jsonl(ENTITIES, tmp_path / "kb.jsonl")
    lines = [{"id": str(n), "text": TEXTS[n % 3]} for n in range(60)]
    text = "\n".join(map(json.dumps, lines))
    (tmp_path / "texts.jsonl").write_text(text, encoding="utf8")
    return tmp_path


def arguments(folder):
    out = {"--output": "train.spacy", "--dev": "dev.spacy", "--hidden-kb": "hidden"}
    paths = [part for name, file in out.items() for part in (name, folder / file)]
    return [folder / "texts.jsonl", "--kb", folder / "kb.jsonl", *paths]


def test_hidden_names_are_nowhere_but_in_the_dev_set(world, monkeypatch):
    monkeypatch.setattr(hidden_names, "HIDE", 1.0)
    run("silver", *arguments(world))
    train, dev = (list(read_docs(world / f"{name}.spacy", NLP.vocab)) for name in ("train", "dev"))
    kb = ArboKB.for_reading(world / "hidden")
    names = {key_of(name) for entity in kb.entities for name in entity.names}
    lost = {key_of(name) for entity in ENTITIES for name in entity.names} - names
    lacking = [{name.lower() for name in lost.intersection(map(key_of, e.names))} for e in ENTITIES]
    assert lacking == [{"flu"}, {"coryza"}, {"mumps"}, {"rabies"}, set(), set(), set()]
    mentioned = {key_of(span.text) for doc in train for span in doc.ents}
    assert mentioned
    assert not mentioned & lost
    in_dev = {key_of(span.text).lower() for doc in dev for span in doc.ents}
    assert in_dev >= {name.lower() for name in lost}
    ids = [{doc.user_data["doc_id"] for doc in docs} for docs in (train, dev)]
    assert not ids[0] & ids[1]


def test_a_knowledge_base_is_not_replaced_without_asking(world):
    run("silver", *arguments(world))
    before = (world / "dev.spacy").read_bytes()
    assert "E034" in run("silver", *arguments(world), "--seed", 1, code=1)
    assert (world / "dev.spacy").read_bytes() == before
    run("silver", *arguments(world), "--replace")
