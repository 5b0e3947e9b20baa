"""Wrong links by kind, and as they are written: text and table."""

import csv
import io

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from spacy.training import Example

from spacy_arbo_el import Evidence, Link, find_linker
from spacy_arbo_el.corpora.docbin import write_docbin
from spacy_arbo_el.corpora.docs import unlinked
from spacy_arbo_el.evaluation import wrong_links as kinds
from spacy_arbo_el.evaluation.outcomes import outcomes
from spacy_arbo_el.evaluation.report import CONFIGURED, inference_outcomes
from spacy_arbo_el.evaluation.wrong_links import WrongLink, as_csv, summary, wrong_links
from spacy_arbo_el.mentions.annotations import annotate
from spacy_arbo_el.mentions.getters import EntSpans, place_of

from ..cases import cases
from ..commands import run
from ..linker.conftest import TOWER, build
from ..linker.world import DEV, TRAIN, annotated, examples
from ..show.test_markup import VECTORS, any_text

SEEN = TRAIN[:3]


@pytest.fixture(scope="module")
def pipeline():
    return build(train=SEEN, **TOWER)


def linked(nlp, marked, link, label="THING"):
    """An example with one mention, and an outcome by hand."""
    gold = annotated(nlp, marked, label=label)
    doc = unlinked(gold)
    offsets = [place_of(ent) for ent in doc.ents]
    annotate(doc, dict.fromkeys(offsets, link), EntSpans(), "arbo", overwrite=True)
    return Example(doc, gold)


def wrong(nlp, *examples):
    return wrong_links(
        find_linker(nlp), outcomes(examples, EntSpans(), "arbo", find_linker(nlp).kb)
    )


def link(kb_id, *ids, score=0.9):
    path = [Evidence("entity", kb_id, "Title", "", 1.0)] if kb_id != "NIL" else []
    return Link(kb_id, score, ids, [score, *[0.05] * (len(ids) - 1)], path)


@pytest.mark.parametrize("marked, ids, kind, traits", cases("wrong_links"))
def test_each_wrong_link_has_a_kind(pipeline, marked, ids, kind, traits):
    (found,) = wrong(pipeline, linked(pipeline, marked, link(*ids)))
    assert found.kind == getattr(kinds, kind)
    assert found.traits == tuple(getattr(kinds, trait) for trait in traits)
    assert "river" not in ids or found.rank == ids[1:].index("river") + 1


def test_correct_links_are_no_errors(pipeline):
    right = [("On [Venus|planet].", link("planet", "planet")), ("On [Io|NIL].", link("NIL"))]
    assert wrong(pipeline, *(linked(pipeline, *one) for one in right)) == []
    assert summary([], 2) == "0 wrong links on 2 mentions"
    assert as_csv([]).count("\n") == 1


def test_a_discarded_label_is_the_reason():
    nlp = build(train=SEEN, mentions={"labels_discard": ["DATE"]}, **TOWER)
    (found,) = wrong(nlp, linked(nlp, "On [Venus|planet].", Link("NIL", 0.0), label="DATE"))
    assert found.kind == kinds.LEFT_OUT


def test_the_surest_come_first(pipeline):
    said = [link("metal", "metal", score=s) for s in (0.6, 0.9)] + [link("NIL", "metal", score=0.1)]
    found = wrong(pipeline, *(linked(pipeline, "On [Venus|planet].", one) for one in said))
    assert [one.confidence for one in found] == pytest.approx([0.9, 0.9, 0.6])
    text = summary(found, 10)
    assert text.startswith("3 wrong links on 10 mentions: not retrieved 3")


def wrong_link(kb_id, title, sentence, label, document):
    said = Link(kb_id, 0.9, [kb_id, "b"], [0.9, 0.1], [Evidence("entity", kb_id, title, "", 1.0)])
    texts = (sentence, sentence, sentence, label)
    titles = {kb_id: title, "b": title}
    kind, traits = kinds.BEHIND, (kinds.UNSEEN,)
    return WrongLink(document, 0, 1, *texts, ("b",), kb_id, titles, said, kind, traits, 2)


@given(st.tuples(*[any_text] * 5))
@example((VECTORS[1],) * 5)
def test_hostile_titles_ids_and_texts_stay_text(fields):
    table = as_csv([wrong_link(*fields)]).encode("utf8", "replace").decode("utf8")
    (row,) = csv.DictReader(io.StringIO(table, newline=""))
    assert not any(value.startswith(("=", "+", "-", "@")) for value in row.values())


def test_the_command_writes_a_table(tmp_path):
    nlp, model, dev = build(train=SEEN, **TOWER), tmp_path / "model", tmp_path / "dev.spacy"
    nlp.to_disk(model)
    write_docbin([annotated(nlp, text) for text in DEV], dev)
    table = tmp_path / "errors.csv"
    said = run("evaluate", model, dev, "--errors", table)
    linked = inference_outcomes(nlp, examples(nlp, DEV))[CONFIGURED]
    expected = [one for one in linked if not one.is_correct]
    count = f"{len(expected)} wrong links on {len(DEV)} mentions"
    assert len(expected) > 0
    assert len(expected) < len(DEV)
    assert count in said
    rows = list(csv.DictReader(table.open(encoding="utf8", newline="")))
    assert [*rows[0]] == list(kinds.COLUMNS)
    assert {row["sentence"] for row in rows} == {one.span.doc.text for one in expected}
    assert "E835" in run("evaluate", model, dev, "--errors", tmp_path / "errors.txt", code=1)
    assert "E838" in run("evaluate", model, model, dev, "--errors", table, code=1)
