"""Counts of the real corpora against data/README.md. Skipped if the corpora are missing."""

import re
from collections import Counter

import pytest
import spacy

from spacy_arbo_el.contrib.formats.pubtator import PubTatorReader
from spacy_arbo_el.corpora.convert import convert_corpus
from spacy_arbo_el.corpora.docbin import read_docs
from spacy_arbo_el.corpora.read import read_ids

NCBI = {
    "train": "ncbi_disease/NCBItrainset_corpus.txt",
    "dev": "ncbi_disease/NCBIdevelopset_corpus.txt",
}
CDR = {
    "train": "bc5cdr/CDR_TrainingSet.PubTator.txt",
    "dev": "bc5cdr/CDR_DevelopmentSet.PubTator.txt",
}


@pytest.mark.filterwarnings("ignore:.*came before")
@pytest.mark.parametrize(
    ("file", "docs", "mentions", "composite", "duplicates"),
    [
        # The README's 593 abstracts and 5,145 mentions count PMID 8528200 (11 mentions) twice.
        (NCBI["train"], 592, 5134, 115, 1),
        (NCBI["dev"], 100, 787, 30, 0),
        (CDR["train"], 500, 9385, 97, 0),
        (CDR["dev"], 500, 9591, 99, 0),
    ],
)
def test_numbers_of_documents_and_mentions(data_dir, file, docs, mentions, composite, duplicates):
    counts = Counter()
    texts = list(PubTatorReader().read(data_dir / file, counts=counts))
    assert len(texts) == docs
    assert sum(len(text.mentions) for text in texts) == mentions
    assert sum(len(m.kb_ids) > 1 for text in texts for m in text.mentions) == composite
    assert counts["duplicates"] == duplicates


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*came before")
@pytest.mark.parametrize(
    ("file", "retokenised"),
    [
        pytest.param(NCBI["train"], 9, marks=pytest.mark.nightly),
        (NCBI["dev"], 0),
        (CDR["dev"], 131),
    ],
)
def test_converted_mentions_keep_their_offsets(data_dir, nlp, tmp_path, file, retokenised):
    path = tmp_path / "o.spacy"
    counts = convert_corpus(data_dir / file, path, format="pubtator", nlp=nlp)
    assert counts["retokenised"] == retokenised
    assert counts["overlapping"] == 0
    texts = {text.id: text for text in PubTatorReader().read(data_dir / file)}
    for doc in read_docs(path, spacy.blank("en").vocab):
        text = texts.pop(doc.user_data["doc_id"])
        assert doc.text == text.text
        assert [(s.start_char, s.end_char, s.kb_id_) for s in doc.ents] == sorted(
            (m.start, m.end, m.kb_id) for m in text.mentions
        )
    assert not texts


def test_corpora_have_no_abstract_of_the_test_set(data_dir):
    excluded = read_ids(data_dir / "medic_half" / "test_pmids.txt")
    assert len(excluded) == 1479
    for file in [*NCBI.values(), *CDR.values()]:
        pmids = set(re.findall(r"(?m)^(\d+)\|t\|", (data_dir / file).read_text(encoding="utf8")))
        assert not pmids & excluded
