"""The comparison of inference procedures, by document and in one graph."""

from pathlib import Path

from spacy.util import import_file

from spacy_arbo_el.corpora.docs import unlinked
from spacy_arbo_el.evaluation.outcomes import outcomes
from spacy_arbo_el.evaluation.report import score_rows
from spacy_arbo_el.fitting.held_out import outcomes_of_stages

from ..linker.conftest import build
from ..linker.world import DEV, TRAIN, examples

compare = import_file("compare", Path(__file__).parents[2] / "experiments" / "compare.py")


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
    by_document = outcomes_of_stages(nlp, data, compare.on_one_curve)
    printed = compare.as_markdown({"a": score_rows(nlp, by_document)})
    assert printed.count("| a |") == 2 and "directed, exemplars" in printed
