"""What the benchmarks train on and leave out."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import spacy
from hypothesis import given
from hypothesis import strategies as st
from spacy.tokens import Span
from spacy.util import import_file

from spacy_arbo_el.corpora.convert import write_docbin
from spacy_arbo_el.corpora.reader import read_docs
from spacy_arbo_el.kb.entity import Entity
from spacy_arbo_el.kb.knowledge_base import ArboKB
from spacy_arbo_el.linker import find_linker
from spacy_arbo_el.pipelines import save_pipeline

from .linker.world import DEV, TRAIN, annotated
from .reranking.test_cross_encoder import IN_RANKER, with_scorer

NLP = spacy.blank("en")
NAMES = ["grippe", "Grippe", "mumps", "rubella"]
BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
silver, folds, paired = (
    import_file(name, BENCHMARKS / f"{name}.py") for name in ("silver", "folds", "paired")
)


def document(number, names):
    """A document whose words are all mentions."""
    doc = NLP(" ".join(names))
    doc.user_data["doc_id"] = str(number)
    doc.ents = [Span(doc, i, i + 1, label="X", kb_id=name.lower()) for i, name in enumerate(names)]
    return doc


def texts(docs):
    return [span.text for doc in docs for span in doc.ents]


corpora = st.lists(st.lists(st.sampled_from(NAMES), min_size=1, max_size=6), min_size=1, max_size=6)


@given(corpora, st.integers(1, 4))
def test_mentions_of_a_name(corpus, count):
    kept = texts(silver.at_most([document(i, names) for i, names in enumerate(corpus)], count))
    every = [name for names in corpus for name in names]
    # "Grippe" and "grippe" are one name.
    for name in {name.lower() for name in every}:
        wanted = sum(one.lower() == name for one in every)
        assert sum(one.lower() == name for one in kept) == min(wanted, count)


def test_exemplars_have_neither_hidden_names_nor_documents_of_dev(tmp_path):
    kb = ArboKB(NLP.vocab, [Entity("flu", "grippe"), Entity("mumps", "mumps")])
    kb.to_disk(tmp_path / "kb")
    docs = [document(i, NAMES) for i in range(3)]
    kept = silver.known(docs, tmp_path / "kb", [document(1, ["mumps"])])
    assert [doc.user_data["doc_id"] for doc in kept] == ["0", "2"]
    assert texts(kept) == ["grippe", "Grippe", "mumps"] * 2
    assert texts(silver.without_mentions(docs)) == []


@given(st.integers(2, 9), st.integers(2, 9))
def test_each_document_is_in_one_fold(count, number):
    docs = [document(i, ["flu"]) for i in range(count)]
    parts = folds.split(docs, number)
    assert len(parts) == min(count, number) and all(parts)
    ids = [doc.user_data["doc_id"] for part in parts for doc in part]
    assert sorted(ids) == [str(i) for i in range(count)]
    for part in parts:
        assert len(folds.others_of(part, parts)) == count - len(part)


@pytest.mark.parametrize("count, number", [(1, 5), (5, 1), (0, 5)])
def test_nothing_to_train_on(count, number):
    with pytest.raises(ValueError, match=f"not {number} and {count}"):
        folds.split([document(i, ["flu"]) for i in range(count)], number)


def test_halves_are_the_two_folds(tmp_path, monkeypatch):
    docs = [document(i, ["flu", "mumps"]) for i in range(7)]
    write_docbin(docs, tmp_path / "all.spacy")
    paths = [str(tmp_path / name) for name in ("all.spacy", "a.spacy", "b.spacy")]
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    monkeypatch.setattr("sys.argv", ["halves.py", *paths])
    import_file("halves", BENCHMARKS / "halves.py").main()
    for path, part in zip(paths[1:], folds.split(docs, 2)):
        half = list(read_docs(path, NLP.vocab))
        assert [doc.to_json() for doc in half] == [doc.to_json() for doc in part]


def counts(differences):
    """Documents of ten mentions, of which five are linked correctly before."""
    before = np.full(len(differences), 5)
    return paired.Counts(np.full(len(differences), 10), before, before + np.array(differences))


def test_an_interval_without_a_difference_is_empty():
    assert paired.interval(counts([0] * 9)) == (0.0, 0.0)


def test_counts_leave_out_mentions_without_annotation(tiny_bert, tmp_path):
    nlp = with_scorer(tiny_bert, section=IN_RANKER)
    docs = [annotated(nlp, text) for text in (*DEV, *TRAIN)]
    total = sum(len(doc.ents) for doc in docs)
    docs[0].set_ents([Span(docs[0], s.start, s.end, label=s.label) for s in docs[0].ents])
    left_out = len(docs[0].ents)
    save_pipeline(nlp, tmp_path / "model")
    write_docbin(docs, tmp_path / "dev.spacy")
    found = paired.counts_of(tmp_path / "model", tmp_path / "dev.spacy", 2, False)
    assert left_out and found.mentions.sum() == total - left_out
    assert (found.before <= found.mentions).all() and (found.after <= found.mentions).all()
    assert found.before.sum() > 0 and found.after.sum() > 0
    assert sorted(found.mentions) == [0, *sorted(len(doc.ents) for doc in docs[1:])]
    in_consensus = paired.counts_of(tmp_path / "model", tmp_path / "dev.spacy", 2, True)
    assert (in_consensus.mentions == found.mentions).all() and in_consensus.after.sum() > 0
    find_linker(nlp).reranker = replace(find_linker(nlp).reranker, scorer=None)
    save_pipeline(nlp, tmp_path / "untrained")
    with pytest.raises(SystemExit, match="no trained cross-encoder"):
        paired.counts_of(tmp_path / "untrained", tmp_path / "dev.spacy", 2, False)


def test_an_interval_needs_two_documents_with_mentions():
    one = paired.Counts(np.array([3, 0, 0]), np.array([1, 0, 0]), np.array([2, 0, 0]))
    assert np.isnan(paired.interval(one)).all()


def test_an_interval_is_about_that_of_a_normal_distribution():
    differences = np.random.default_rng(0).integers(-2, 4, 200)
    low, high = paired.interval(counts(differences))
    middle = differences.mean() / 10
    half = 1.96 * differences.std() / np.sqrt(200) / 10
    assert low == pytest.approx(middle - half, abs=0.2 * half)
    assert high == pytest.approx(middle + half, abs=0.2 * half)


def test_an_interval_is_of_documents_and_not_of_mentions():
    """One document with all the difference may be missing, or be drawn three times."""
    low, high = paired.interval(counts([0] * 19 + [4]))
    assert low == 0.0 and high >= 3 * 4 / 200
