"""Where a pipeline's config says what was trained for its linker."""

from spacy_arbo_el.linker import find_linker
from spacy_arbo_el.reranking.cross_encoder import cross_encoder
from spacy_arbo_el.reranking.mention_pairs import mention_pairs
from spacy_arbo_el.training.reranker_run import read_config, set_mention_scorer, set_reranker

from ..linker.conftest import build_tiny


def test_the_section_of_a_renamed_linker_says_what_it_was_given(tiny_bert):
    nlp = build_tiny(tiny_bert)
    nlp.rename_pipe("arbo_linker", "linker")
    linker = find_linker(nlp)
    settings = read_config(None, {})["reranker"]
    reranker = cross_encoder(linker.reranker, as_feature=False)
    set_reranker(nlp, linker, reranker, settings)
    scorer = {"@misc": "spacy-arbo-el.MentionPairs.v1"}
    set_mention_scorer(nlp, linker, mention_pairs(), scorer)
    section = nlp.get_pipe_config("linker")
    assert (section["reranker"], section["mention_scorer"]) == (settings, scorer)
    assert (linker.reranker, linker.mention_scorer) == (reranker, mention_pairs())
