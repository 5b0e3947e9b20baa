"""What annotated documents can be used for, compared on documents that were held out."""

import numpy as np
import pytest
import spacy

from spacy_arbo_el import find_linker
from spacy_arbo_el.base.log import progress
from spacy_arbo_el.corpora.docbin import write_docbin
from spacy_arbo_el.evaluation.outcomes import Outcome
from spacy_arbo_el.fitting import strategies
from spacy_arbo_el.fitting.strategies import FitComparison, FitStrategy, compare_strategies

from .. import commands
from ..expecting import raises
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


def state(linker):
    return (
        len(linker.exemplars),
        linker.calibration,
        linker.reranker,
        linker.threshold,
        dict(linker.cfg),
    )


def test_exemplars_teach_what_names_do_not_say_and_the_linker_stays_as_it_is(plain):
    linker = find_linker(plain)
    before = state(linker)
    comparison = compare_strategies(linker, docs_of(plain, NICKNAMES), folds=3)
    scores = dict(
        zip([strategy.name for strategy in comparison.strategies], comparison.scores("accuracy"))
    )
    assert list(scores) == ["unchanged", "calibrated", "exemplars", "both"]
    assert scores["unchanged"] < 1
    assert scores["exemplars"] == 1
    assert state(linker) == before
    assert comparison.best.name == "exemplars"
    assert all(len(strategy.outcomes) == len(NICKNAMES) for strategy in comparison.strategies)


def test_no_mention_is_encoded_twice(plain, monkeypatch):
    linker = find_linker(plain)
    linker.refresh()
    encode = linker.encoder.encode_mentions
    keys = []

    def counted(inputs):
        keys.extend(inputs.keys())
        return encode(inputs)

    monkeypatch.setattr(linker.encoder, "encode_mentions", counted)
    compare_strategies(linker, docs_of(plain, NICKNAMES), folds=3)
    assert keys
    assert len(keys) == len(set(keys))


def test_encoding_is_a_step_of_the_bar_whose_time_is_not_that_of_the_others(plain, monkeypatch):
    bars = []
    monkeypatch.setattr(strategies, "progress", lambda *a: bars.append(progress(*a)) or bars[-1])
    compare_strategies(find_linker(plain), docs_of(plain, NICKNAMES), folds=3)
    (bar,) = bars
    assert bar.n == bar.total
    assert bar.initial == 1


def test_documents_that_are_exemplars_already_are_held_out_too(plain):
    """Otherwise each mention would find itself, and a pipeline without any use would look best."""
    docs = docs_of(plain, [f"The [Nickname{i}|planet] is bright." for i in range(4)])
    linker = find_linker(plain)
    linker.feedback.add_exemplars(docs)
    unchanged = compare_strategies(linker, docs, folds=2).strategies[0]
    assert len(linker.exemplars) == len(docs), "they stay in the pipeline"
    sources = {
        step.kind
        for outcome in unchanged.outcomes
        if outcome.link is not None
        for step in outcome.link.evidence
    }
    assert "exemplar" not in sources


def compared(*predicted, gold, by="accuracy"):
    """Strategies by what they say of each mention, which is of a document of its own."""
    nlp = spacy.blank("xx")
    docs = [annotated(nlp, "[x|E]") for _ in gold]
    rows = [
        FitStrategy(
            str(number),
            [
                Outcome("", (one,) if one else (), said, None, doc.ents[0])
                for one, said, doc in zip(gold, row, docs)
            ],
            None,
        )
        for number, row in enumerate(predicted)
    ]
    return FitComparison(rows, by, 5, {})


def test_the_simplest_within_a_standard_error_is_taken():
    gold = ["E"] * 100
    base = ["E"] * 70 + ["F"] * 30
    level = ["E"] * 69 + ["F"] * 29 + ["E", "E"]
    better = ["E"] * 90 + ["F"] * 10
    noise = compared(base, level, gold=gold)
    assert noise.best.name == "0", "a gain of one mention"
    assert "The 1.0 points that 1 has more may be chance (95 %: -" in noise.advice
    assert compared(base, better, gold=gold).best.name == "1"
    assert compared(base, better, better, gold=gold).best.name == "1", "no later one that is level"
    assert compared(better, base, gold=gold).best.name == "0"


def test_strategies_are_chosen_by_accuracy_or_by_f1():
    """A strategy that links less has more mentions right, NIL among them, and fewer links."""
    gold = ["E"] * 40 + [""] * 60
    bold = ["E"] * 40 + ["F"] * 30 + ["NIL"] * 30
    shy = ["E"] * 16 + ["NIL"] * 84
    comparison = compared(bold, shy, gold=gold)
    assert comparison.scores("accuracy").tolist() == pytest.approx([0.7, 0.76])
    f1 = [2 * 40 / (70 + 40), 2 * 16 / (16 + 40)]
    assert comparison.scores("f1").tolist() == pytest.approx(f1)
    assert compared(shy, bold, gold=gold, by="f1").best.name == "1"
    assert np.quantile(comparison.samples(), 0.5, axis=1).tolist() == pytest.approx(
        [0.7, 0.76], abs=0.02
    )


def test_a_linker_takes_the_best_way_or_the_one_that_it_is_given(plain):
    linker = find_linker(plain)
    docs = docs_of(plain, NICKNAMES)
    result = linker.fit(docs, folds=3)
    assert result.strategy == "exemplars"
    assert len(linker.exemplars) == len(NICKNAMES)
    assert "Take: exemplars" in str(result)
    assert "unchanged" in str(result)
    linker.feedback.remove_exemplars(span for doc in docs for span in doc.ents)
    before = linker.calibration
    assert linker.fit(docs, strategy="calibrated").comparison is None
    assert linker.calibration != before
    assert not len(linker.exemplars)
    with raises("E751.*strategy.*unchanged.*'trained'"):
        linker.fit(docs, strategy="trained")
    with raises("E751.*accuracy.*f1.*'beauty'"):
        linker.fit(docs, by="beauty")
    with raises("E837.*1 documents"):
        linker.fit(docs[:1])


def test_each_threshold_is_chosen_without_the_part_that_it_is_used_on(plain, monkeypatch):
    from spacy_arbo_el.fitting import held_out

    used = []

    def chosen(sweeps, score, prior):
        used.append(([len(set(sweep.documents.tolist())) for sweep in sweeps], score, prior))
        return 0

    monkeypatch.setattr(held_out, "cautious_row", chosen)
    linker = find_linker(plain)
    texts = [*NICKNAMES, "A [planet|planet] and a [river|river]."]
    compare_strategies(linker, docs_of(plain, texts), folds=3, by="f1")
    sizes = [[3, 2, 2], [2, 2], [3, 2], [3, 2]]
    assert used == [(size, "nel_micro_f", linker.threshold) for size in sizes]


def test_thresholds_by_label_stay(plain):
    linker = find_linker(plain)
    linker.threshold = {"*": 0.4, "Disease": 0.8}
    linker.fit(docs_of(plain, NICKNAMES), strategy="both")
    assert linker.cfg["threshold"] == {"*": 0.4, "Disease": 0.8}


def test_command_prints_a_table_and_saves_the_way_that_it_takes(plain, tmp_path):
    plain.to_disk(tmp_path / "model")
    write_docbin(docs_of(plain, NICKNAMES), tmp_path / "docs.spacy")
    arguments = ("fit", tmp_path / "model", tmp_path / "docs.spacy", "--folds", "3")
    printed = commands.run(*arguments)
    assert "calibrated" in printed
    assert "Take: exemplars" in printed
    assert "Nothing is saved" in printed
    assert {path.name for path in tmp_path.iterdir()} == {"model", "docs.spacy"}
    commands.run(*arguments, "--output", tmp_path / "fitted")
    saved = find_linker(spacy.load(tmp_path / "fitted"))
    assert len(saved.exemplars) == len(NICKNAMES)
    commands.run(*arguments, "--output", tmp_path / "same", "--strategy", "unchanged")
    assert len(find_linker(spacy.load(tmp_path / "same")).exemplars) == 0
    assert "arbo-E751" in commands.run(*arguments, "-o", tmp_path / "x", "--strategy", "y", code=1)
    assert not (tmp_path / "x").exists()


@pytest.mark.slow
def test_trained_too_is_a_row_of_the_table(tiny_bert, tmp_path):
    nlp = build_tiny(tiny_bert, train=[])
    weights = find_linker(nlp).encoder.fingerprint
    write_docbin(docs_of(nlp, TRAIN + DEV), tmp_path / "docs.spacy")
    nlp.to_disk(tmp_path / "model")
    arguments = ("fit", tmp_path / "model", tmp_path / "docs.spacy", "--folds", "2")
    printed = commands.run(*arguments, "--train")
    assert "│ trained" in printed
    commands.run(*arguments, "--strategy", "trained", "--output", tmp_path / "trained")
    trained = find_linker(spacy.load(tmp_path / "trained"))
    assert trained.encoder.fingerprint != weights
    assert len(trained.exemplars) == 28
