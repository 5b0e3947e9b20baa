"""What annotated documents can be used for, compared on documents that were held out."""

import pytest
import spacy

from spacy_arbo_el.corpora.docbin import write_docbin
from spacy_arbo_el.evaluation.outcomes import Outcome
from spacy_arbo_el.fitting.learning import LearningWay, best_way, compare_ways, gain
from spacy_arbo_el.linker import find_linker

from .. import commands
from ..linker.conftest import build, build_tiny
from ..linker.world import DEV, TRAIN, annotated, docs_of

# Surface forms that no entity has, so that only exemplars know them.
NICKNAMES = [f"We saw the [Redspot|planet] again, number {i}." for i in range(6)]


@pytest.fixture
def plain():
    """A linker without exemplars, which links by vectors of words alone."""
    nlp = build()
    find_linker(nlp).feedback.remove_exemplars(
        span for doc in docs_of(nlp, TRAIN) for span in doc.ents
    )
    return nlp


def state(nlp):
    linker = find_linker(nlp)
    return (
        len(linker.exemplars),
        linker.calibration,
        linker.reranker,
        linker.threshold,
        dict(linker.cfg),
    )


def test_exemplars_teach_what_names_do_not_say_and_the_pipeline_stays_as_it_is(plain):
    before = state(plain)
    ways = {way.name: way for way in compare_ways(plain, docs_of(plain, NICKNAMES), folds=3)}
    assert ways["unchanged"].accuracy < 1 and ways["exemplars"].accuracy == 1
    assert state(plain) == before
    assert best_way(list(ways.values())).name == "exemplars"
    difference, low, high = gain(ways["exemplars"], ways["unchanged"])
    assert low <= difference <= high and difference > 0
    assert all(len(way.outcomes) == len(NICKNAMES) for way in ways.values())


def test_documents_that_are_exemplars_already_are_held_out_too(plain):
    """Otherwise each mention would find itself, and a pipeline without any use would look best."""
    docs = docs_of(plain, [f"The [Nickname{i}|planet] is bright." for i in range(4)])
    find_linker(plain).feedback.add_exemplars(docs)
    unchanged = compare_ways(plain, docs, folds=2)[0]
    assert len(find_linker(plain).exemplars) == len(docs), "they stay in the pipeline"
    sources = {
        step.kind
        for outcome in unchanged.outcomes
        if outcome.link is not None
        for step in outcome.link.evidence
    }
    assert "exemplar" not in sources


def ways_of(*right):
    """Ways by whether each of their mentions is right; each mention is of a document of its own."""
    nlp = spacy.blank("xx")
    docs = [annotated(nlp, "[x|E]") for _ in right[0]]
    return [
        LearningWay(
            str(number),
            [
                Outcome("", ("E",), "E" if one else "F", None, doc.ents[0])
                for one, doc in zip(flags, docs)
            ],
            0.0,
        )
        for number, flags in enumerate(right)
    ]


def test_the_simplest_within_a_standard_error_is_taken():
    base = [True] * 70 + [False] * 30
    level = [True] * 69 + [False] * 29 + [True, True]
    better = [True] * 90 + [False] * 10
    assert best_way(ways_of(base, level)).name == "0", "a gain of one mention is noise"
    assert best_way(ways_of(base, better)).name == "1"
    assert best_way(ways_of(base, better, better)).name == "1", "no later one that is level"
    assert best_way(ways_of(better, base)).name == "0"


def test_command_prints_a_table_and_saves_the_way_that_it_takes(plain, tmp_path):
    plain.to_disk(tmp_path / "model")
    write_docbin(docs_of(plain, NICKNAMES), tmp_path / "docs.spacy")
    arguments = ("learn", tmp_path / "model", tmp_path / "docs.spacy", "--folds", "3")
    printed = commands.run(*arguments)
    assert "calibrated, with exemplars" in printed and "Take: exemplars" in printed
    assert {path.name for path in tmp_path.iterdir()} == {"model", "docs.spacy"}
    printed = commands.run(*arguments, "--output", tmp_path / "learned")
    saved = find_linker(spacy.load(tmp_path / "learned"))
    assert len(saved.exemplars) == len(NICKNAMES)
    commands.run(*arguments, "--output", tmp_path / "taken", "--take", "unchanged")
    assert len(find_linker(spacy.load(tmp_path / "taken")).exemplars) == 0
    assert "arbo-E839" in commands.run(*arguments, "-o", tmp_path / "x", "--take", "y", code=1)
    assert "arbo-E837" in commands.run(*arguments[:3], "--folds", "7", code=1)
    assert not (tmp_path / "x").exists()


@pytest.mark.slow
def test_trained_too_is_a_row_of_the_table(tiny_bert, tmp_path):
    nlp = build_tiny(tiny_bert, train=[])
    weights = find_linker(nlp).encoder.fingerprint
    ways = compare_ways(nlp, docs_of(nlp, TRAIN + DEV), folds=2, train=True)
    assert [way.name for way in ways][-1] == "trained"
    assert find_linker(nlp).encoder.fingerprint == weights and not len(find_linker(nlp).exemplars)
    write_docbin(docs_of(nlp, TRAIN), tmp_path / "docs.spacy")
    nlp.to_disk(tmp_path / "model")
    printed = commands.run(
        *("learn", tmp_path / "model", tmp_path / "docs.spacy", "--folds", "2", "--train"),
        *("--take", "trained", "--output", tmp_path / "trained"),
    )
    assert "20 mentions to train on, fewer than 200" in printed
    trained = find_linker(spacy.load(tmp_path / "trained"))
    assert trained.encoder.fingerprint != weights and len(trained.exemplars) == 20
