"""Rows of tables of scores, calibration errors, and what a list of entities lacks."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from spacy.tokens import DocBin
from spacy.training import Example

from spacy_arbo_el import Entity, Link
from spacy_arbo_el.evaluation import report
from spacy_arbo_el.evaluation.list_check import check_list
from spacy_arbo_el.evaluation.outcomes import Outcome
from spacy_arbo_el.evaluation.reliability import calibration_error, error_of_links
from spacy_arbo_el.fitting.thresholds import sweep_linking

from ..cases import cases
from ..commands import run
from ..linker.conftest import build
from ..linker.world import DEV, examples
from ..scores import compare_inference


@pytest.fixture(scope="module")
def pipeline():
    return build()


@pytest.fixture
def data(pipeline):
    return examples(pipeline, DEV)


def test_documents_are_not_changed(pipeline, data):
    compare_inference(pipeline, [Example(eg.predicted, eg.reference) for eg in data])
    assert all(not ent.kb_id_ for eg in data for ent in eg.predicted.ents)


def test_ids_of_merged_entities_are_those_of_the_entities_that_they_lead_to(nlp, linker):
    linker.kb.merge("maker", "shop")
    old = examples(nlp, DEV)
    new = examples(nlp, [text.replace("|maker]", "|shop]") for text in DEV])
    assert nlp.evaluate(old) == {**nlp.evaluate(new), "speed": pytest.approx(0, abs=1e9)}
    assert compare_inference(nlp, old) == compare_inference(nlp, new)
    best = max(row["arbo_acc"] for row in sweep_linking(linker, [eg.reference for eg in old]).rows)
    assert best == nlp.evaluate(old)["arbo_acc"] > 0.6


def test_gold_ids_of_another_knowledge_base_are_said(pipeline, tmp_path):
    other = [text.replace("|", "|other-") for text in DEV[:2]]
    path = tmp_path / "dev.spacy"
    DocBin(docs=[eg.reference for eg in examples(pipeline, other)]).to_disk(path)
    with pytest.warns(UserWarning, match="W546.*None of the 2 gold ids.*such as other-"):
        report.annotated_examples(pipeline, path)


PREDICTIONS = st.lists(st.tuples(st.floats(0, 1), st.booleans()), max_size=60)


def slow_error(predictions, bins):
    """The expected calibration error, as its definition reads."""
    total = 0.0
    for number in range(bins):
        inside = [(p, c) for p, c in predictions if min(int(p * bins), bins - 1) == number]
        if inside:
            gap = np.mean([p for p, _ in inside]) - np.mean([c for _, c in inside])
            total += abs(gap) * len(inside) / len(predictions)
    return total


@given(PREDICTIONS, st.integers(1, 12))
def test_error_is_that_of_the_definition(predictions, bins):
    probability = np.array([p for p, _ in predictions], dtype=float)
    correct = np.array([c for _, c in predictions], dtype=bool)
    error = calibration_error(probability, correct, bins)
    assert error == pytest.approx(slow_error(predictions, bins), abs=1e-9)


def link(kb_id, score, *ids):
    return Link(kb_id, score, ids, (score,) * len(ids))


def test_outcomes_that_count():
    outcomes = [
        Outcome("X", ("a",), "a", link("a", 0.9, "a", "b")),
        # Linked to an entity that is not the first candidate.
        Outcome("X", ("a",), "b", link("b", 0.8, "a", "b")),
        # NIL: the first candidate was rejected, and was right.
        Outcome("X", ("a",), "NIL", link("NIL", 0.3, "a")),
        Outcome("X", (), "NIL", link("NIL", 0.1, "b")),
        # No gold mention, no predicted mention, no candidate.
        Outcome("X", None, "a", link("a", 1.0, "a")),
        Outcome("X", ("a",), None, None),
        Outcome("X", ("a",), "NIL", link("NIL", 0.0)),
    ]
    assert error_of_links(outcomes) == pytest.approx((0.1 + 0.7 + 0.8 + 0.1) / 4)
    assert error_of_links([]) == 0


STOP_WORDS = frozenset(("it", "who"))


def found(*entities):
    """The kinds of problems by the first words of what they are, with examples."""
    findings, _ = check_list(entities, STOP_WORDS, {"impact"})
    names = ("short", "shared", "titles", "names", "symbols", "top", "columns", "entities")
    assert [finding.what.split()[0] for finding in findings] == list(names)
    return {name: finding.examples for name, finding in zip(names, findings) if finding.count}


@pytest.mark.parametrize("entities, examples", cases("shared_names"))
def test_shared_names_that_nothing_tells_apart(entities, examples):
    assert found(*(Entity(**one) for one in entities)).get("shared", ()) == tuple(examples)


def test_qualifiers_words_and_columns():
    problems = found(
        Entity("a", "Velmo (town)", meta={"Country": "NO"}),
        Entity("b", "Sern (lake)", "a lake"),
        Entity("c", "Alder", "a tree", ["it", "IT", "al", "AL"], meta={"unnamed": False}),
    )
    assert problems["titles"] == ("'Velmo (town)'",)
    assert problems["names"] == ("'it' of c", "'al' of c")
    assert problems["columns"] == ("'Country', which 1 entities have",)
    assert "shared" not in problems


def test_symbols_that_are_words_and_legal_forms():
    symbols = found(Entity("a", "IMPACT", "", ["WHO", "TP"]), Entity("b", "Impact", "", ["Ltd."]))
    assert symbols["symbols"] == ("'IMPACT' of a", "'WHO' of a", "'Ltd.' of b")


def test_top_terms_of_a_hierarchy_and_of_types():
    below = [Entity(f"D{n}", f"d{n}", meta={"parents": ["D", 1]}, types=["Kind"]) for n in range(9)]
    top = found(Entity("D", "disease", "", ["malady"], ["Kind"]), Entity("K", "kind"), *below)
    assert top["top"] == ("'disease'", "'kind'")
    assert "top" not in found(Entity("A", "Alder"), Entity("B", "b", meta={"parents": ["A"]}))


@pytest.mark.parametrize("titles, aliases", cases("short_names"))
def test_short_names_that_titles_share_or_that_stand_before_a_usual_word(titles, aliases):
    entities = [Entity(title, title, types=["ORG"]) for title in titles]
    assert check_list(entities, STOP_WORDS, {"united"})[1] == aliases


def test_the_command_needs_no_documents_and_writes_short_names(tmp_path):
    path = tmp_path / "entities.csv"
    path.write_text("id,title,types\nE1,Velmo,ORG\nE2,Velmo Oil,ORG\n")
    output = run("check", path, "--write", tmp_path / "more.csv")
    assert "2 entities, 2 names" in output
    written = "id,title,types,aliases\nE1,Velmo,ORG,\nE2,Velmo Oil,ORG,Velmo\n"
    assert (tmp_path / "more.csv").read_text() == written
    (tmp_path / "dev.spacy").write_bytes(b"")
    assert "E799" in run("check", tmp_path / "dev.spacy", code=1)


def test_the_command_writes_neither_over_the_list_nor_a_corpus(tmp_path):
    path = tmp_path / "entities.csv"
    path.write_text("id,title\nE1,Velmo\nE2,Velmo AG\n")
    assert "E896" in run("check", path, "--write", path, code=1)
    assert path.read_text() == "id,title\nE1,Velmo\nE2,Velmo AG\n"
    assert "E896" in run("check", "train.spacy", path, "--write", tmp_path / "new.csv", code=1)
