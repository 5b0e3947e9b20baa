"""Where a pipeline's config says what was trained for its linker."""

from spacy_arbo_el.contrib.papers.cross_encoder.cross_encoder import cross_encoder
from spacy_arbo_el.contrib.papers.cross_encoder.reranker_run import read_config, set_reranker
from spacy_arbo_el.linker import find_linker

from ...linker.conftest import build_tiny


def test_the_section_of_a_renamed_linker_says_what_it_was_given(tiny_bert):
    nlp = build_tiny(tiny_bert)
    nlp.rename_pipe("arbo_linker", "linker")
    linker = find_linker(nlp)
    settings = read_config(None, {})["reranker"]
    reranker = cross_encoder(linker.reranker, as_feature=False)
    set_reranker(nlp, linker, reranker, settings)
    assert nlp.get_pipe_config("linker")["reranker"] == settings
    assert linker.reranker == reranker
