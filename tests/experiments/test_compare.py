"""The comparison of inference procedures, by document and in one graph."""

from spacy_arbo_el.corpora.docs import unlinked
from spacy_arbo_el.evaluation.outcomes import outcomes
from spacy_arbo_el.evaluation.report import score_rows
from spacy_arbo_el.fitting.thresholds import sweep_linking
from spacy_arbo_el.ranking.decisions import Independent

from ..linker.conftest import build
from ..linker.world import DEV, TRAIN, examples
from ..scores import compare, held_out

NIL = [
    "Boats with [sails|NIL] cross the river.",
    "She ate [cheese|NIL] with the fruit.",
    "The [telescope|NIL] showed a planet.",
    "Cars have [wheels|NIL] and doors.",
    "They ordered [tables|NIL] at a shop.",
    "A [fox|NIL] sleeps in the forest.",
]


def test_one_graph_gives_the_links_of_link_corpus():
    nlp = build(train=TRAIN[:6])
    data, linker = examples(nlp, DEV + TRAIN[6:]), nlp.get_pipe("arbo_linker")
    found = compare.outcomes_in_one_graph(nlp, data, compare.procedures)
    for name, stages in compare.procedures(linker.stages).items():
        linker.stages = stages
        docs = linker.corpus.link([unlinked(eg.reference) for eg in data])
        linked = [type(eg)(doc, eg.reference) for doc, eg in zip(docs, data)]
        assert found[name] == outcomes(linked, linker.mentions.getter, "arbo", linker.kb)
    folds = compare.outcomes_in_one_graph(nlp, data, compare.procedures, folds=2)
    assert all(len(found[name]) == len(folds[name]) for name in compare.PROCEDURES)
    by_document = held_out.outcomes_of_stages(nlp, data, compare.on_one_curve)
    printed = compare.as_markdown({"a": score_rows(nlp, by_document)})
    assert printed.count("| a |") == 2 and "directed, exemplars" in printed


def test_thresholds_are_chosen_on_the_other_parts(monkeypatch):
    nlp = build()
    # Each half has both.
    mixed = [text for i in (0, 2, 4) for text in (*DEV[i : i + 2], *NIL[i : i + 2])]
    data = examples(nlp, mixed)
    used = []

    def sweep(linker, docs, *, stages):
        used.append(([doc.text for doc in docs], stages))
        return sweep_linking(linker, docs, stages=stages)

    def scores(tune_by):
        rows = held_out.outcomes_of_stages(nlp, data, held_out.inferences, folds=2, tune_by=tune_by)
        return score_rows(nlp, rows)["names alone"]

    monkeypatch.setattr(held_out, "sweep_linking", sweep)
    fixed = scores("")
    assert not used and fixed["arbo_nil_r"] == 0.0, "the threshold is 0"
    tuned = scores("arbo_acc")
    assert tuned["arbo_nil_r"] > 0.5 and tuned["arbo_acc"] > fixed["arbo_acc"]
    parts = [[eg.reference.text for eg in data[i::2]] for i in (1, 0)]
    assert [texts for texts, _ in used] == [parts[0]] * 3 + [parts[1]] * 3
    assert used[0][1].inference == Independent(n_exemplars=0), "each procedure has its own"
    assert nlp.get_pipe("arbo_linker").threshold == 0.0
