"""The share of mentions whose entity the list has: set, estimated without labels, undone."""

from dataclasses import replace

import pytest
import spacy
from spacy.tokens import Span

from spacy_arbo_el import Entity, find_linker, load_pipeline
from spacy_arbo_el.base.display import shown_probability
from spacy_arbo_el.corpora.docbin import write_docbin
from spacy_arbo_el.kb.entity import NIL

from ..commands import run
from ..expecting import raises
from ..linker.conftest import build
from ..ranking.examples import weights_of

NAMES = [f"{first}{last}" for first in ("bar", "kel", "tov") for last in ("mun", "dra", "sil")]
ENTITIES = [Entity(name, name) for name in NAMES]
FITTED = 0.4


def weights():
    """Weights by which a name that is in the list is surely present, and others hardly are."""
    return weights_of({"ngrams": 20.0}, offset=-14.0, coverage=FITTED, ngrams=20.0)


def pipeline(entities=ENTITIES, **config):
    config = {"reranker": {"@misc": "spacy-arbo-el.FeatureRanker.v1"}, "threshold": 0.3, **config}
    nlp = build(entities, train=[], **config)
    linker = find_linker(nlp)
    linker.reranker = replace(linker.reranker, weights=weights())
    return nlp


def document(nlp, name, label="NAME"):
    doc = nlp.make_doc(f"We saw {name} there.")
    doc.ents = [Span(doc, 2, 3, label=label)]
    return doc


def documents(nlp, known, unknown, label="NAME"):
    names = [NAMES[i % len(NAMES)] for i in range(known)]
    names += [f"phyx{i}qw" for i in range(unknown)]
    return [document(nlp, name, label) for name in names]


def links(nlp, docs):
    return [doc.ents[0]._.arbo for doc in nlp.pipe(docs)]


def link_of(nlp, name=NAMES[0]):
    """The link of a document's mention."""
    return links(nlp, [document(nlp, name)])[0]


@pytest.fixture
def nlp():
    return pipeline()


def test_coverage_moves_presence_and_leaves_shares(nlp, linker):
    before = links(nlp, documents(nlp, 3, 3))
    linker.coverage = 0.8
    after = links(nlp, documents(nlp, 3, 3))
    for old, new in zip(before, after):
        assert new.ids == old.ids
        assert new.shares == pytest.approx(old.shares, abs=0.01)
        odds = old.presence / (1 - old.presence) * (0.8 / 0.2) / (FITTED / (1 - FITTED))
        assert new.presence == pytest.approx(odds / (1 + odds), abs=0.01)
        assert new.scores[0] == pytest.approx(new.presence * new.shares[0], abs=0.001)
    linker.coverage = None
    assert links(nlp, documents(nlp, 3, 3)) == before


def test_coverage_by_label(nlp, linker):
    plain = link_of(nlp)
    linker.coverage = {"GENE": 1e-4, "*": FITTED}
    gene, name = links(nlp, [document(nlp, NAMES[0], "GENE"), document(nlp, NAMES[0])])
    assert name == plain
    assert gene.presence < 0.3
    assert plain.presence > 0.3
    assert gene.kb_id == NIL


@pytest.mark.parametrize("known, unknown", [(90, 10), (50, 50), (10, 90)])
def test_the_share_of_a_list_is_estimated_from_texts_without_labels(nlp, linker, known, unknown):
    estimate = linker.estimate_coverage(documents(nlp, known, unknown))
    assert estimate.share.share == pytest.approx(known / 100, abs=0.1)
    assert linker.coverage == estimate.setting
    assert nlp.config["components"]["arbo_linker"]["coverage"] == estimate.setting
    assert f"{estimate.mentions} mentions" in str(estimate)
    assert "NIL" in str(estimate)


def test_each_label_with_enough_mentions_has_its_own(nlp, linker):
    docs = [*documents(nlp, 36, 4, "DISEASE"), *documents(nlp, 4, 36, "GENE")]
    docs += documents(nlp, 3, 0, "RARE")
    setting = linker.estimate_coverage(docs).setting
    assert list(setting) == ["DISEASE", "GENE", "*"]
    assert setting["DISEASE"] > 0.7
    assert setting["GENE"] < 0.3
    linker.threshold = {"GENE": 1.0, "*": 0.0}
    estimate = linker.estimate_coverage(docs)
    assert estimate.nil_before == estimate.nil_after
    assert estimate.nil_after == 40 / len(docs)


def test_documents_texts_and_files_give_the_same_estimate(nlp, linker, tmp_path):
    texts = [doc.text for doc in documents(nlp, 30, 0)]
    nlp.add_pipe("arbo_names", before="arbo_linker")
    of_texts = linker.estimate_coverage(texts)
    found = list(nlp.pipe(texts))
    linker.coverage = None
    assert linker.estimate_coverage(found).share == of_texts.share
    for i, text in enumerate(texts):
        (tmp_path / f"{i:02}.txt").write_text(text, encoding="utf8")
    linker.coverage = None
    assert linker.estimate_coverage(tmp_path).share.share == pytest.approx(of_texts.share.share)


def test_what_can_not_be_estimated_is_refused(nlp, linker):
    with raises("29 mentions.*at least 30"):
        linker.estimate_coverage(documents(nlp, 29, 0))
    assert linker.coverage is None
    plain = build(ENTITIES, train=[])
    with raises("BestEvidence"):
        find_linker(plain).estimate_coverage(documents(plain, 40, 0))


def test_command_estimates_and_saves_coverage(nlp, tmp_path):
    docs = documents(nlp, 24, 12)
    nlp.to_disk(tmp_path / "model")
    write_docbin(docs, tmp_path / "docs.spacy")
    paths = tmp_path / "model", tmp_path / "docs.spacy"
    said = run("fit", *paths, "--no-labels", "--output", tmp_path / "fitted")
    assert "estimated from 36 mentions" in said
    fitted = find_linker(load_pipeline(tmp_path / "fitted")).coverage
    assert fitted == find_linker(nlp).estimate_coverage(docs).setting != FITTED


@pytest.mark.parametrize("value", [0, 1, 1.5, "half", True, {}, {"A": 0.0}, [0.5]])
def test_coverage_is_a_share(nlp, value):
    with raises("coverage"):
        find_linker(nlp).coverage = value


def test_coverage_is_saved_with_the_pipeline(nlp, linker, tmp_path):
    linker.coverage = {"NAME": 0.7, "*": 0.5}
    nlp.to_disk(tmp_path / "saved")
    again = find_linker(spacy.load(tmp_path / "saved"))
    assert again.coverage == linker.coverage
    assert again.reranker.weights.coverage == pytest.approx(FITTED)
    assert link_of(spacy.load(tmp_path / "saved")) == link_of(nlp)


def test_it_is_explained(nlp, linker):
    doc = nlp(document(nlp, NAMES[0]))
    assert "coverage 0.40, that of the reranker's fit" in str(linker.explain(doc.ents[0]))
    linker.coverage = 0.8
    shown = str(linker.explain(doc.ents[0]))
    assert "coverage 0.80; that of the reranker's fit is 0.40" in shown
    link = link_of(nlp)
    assert f"in the knowledge base: {shown_probability(link.presence)}" in shown


def test_a_corpus_as_a_whole_is_linked_by_the_estimate_of_its_mentions(nlp, linker):
    corpus = documents(nlp, 36, 4)
    expected = linker.estimate_coverage(corpus).setting
    linked = linker.corpus.link(corpus)
    linker.coverage = "estimate"
    again = linker.corpus.link(documents(nlp, 36, 4))
    for one, other in zip(linked, again):
        assert one.ents[0]._.arbo.to_data() == other.ents[0]._.arbo.to_data()
    # A document alone is linked by the coverage of the fit.
    alone = link_of(nlp)
    assert alone.presence < again[0].ents[0]._.arbo.presence
    assert expected > FITTED


def test_a_small_corpus_has_the_coverage_of_the_fit(nlp, linker):
    plain = linker.corpus.link(documents(nlp, 3, 1))
    linker.coverage = "estimate"
    again = linker.corpus.link(documents(nlp, 3, 1))
    assert [doc.ents[0]._.arbo for doc in plain] == [doc.ents[0]._.arbo for doc in again]


def test_nothing_tells_equals_apart_so_neither_is_linked():
    nlp = pipeline([Entity("A", "barmun"), Entity("B", "barmun"), Entity("C", "tovsil")])
    linker = find_linker(nlp)
    tie, sure = links(nlp, [document(nlp, "barmun"), document(nlp, "tovsil")])
    assert tie.kb_id == NIL
    assert tie.scores[0] > linker.threshold
    assert [one.kb_id for one in tie.undecided] == ["A", "B"]
    assert "undecided between A" in repr(tie)
    assert tie.to_dict()["undecided"] == ["A", "B"]
    assert sure.kb_id == "C"
    assert not sure.undecided
    doc = linker.corpus.link([document(nlp, "barmun")])[0]
    assert doc.ents[0]._.arbo.undecided == tie.undecided
    linker.threshold = 0.0
    assert link_of(nlp, "barmun").kb_id == "A", "all are linked"
