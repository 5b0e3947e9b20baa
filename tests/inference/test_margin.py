"""NIL where two candidates are as likely as each other."""

import pytest

from spacy_arbo_el.kb.entity import Entity

from ..linker.conftest import build
from ..linker.world import annotated, without_links

TWINS = [
    Entity("old", "Zorblat", "a spring in the north"),
    Entity("new", "Zorblat", "a spring in the north"),
    Entity("tree", "maple", "a tree"),
]
CLUSTERING = {"@misc": "spacy-arbo-el.Clustering.v1"}
INDEPENDENT = {"@misc": "spacy-arbo-el.Independent.v1", "exemplars": 8}
LEXICON = {"@misc": "spacy-arbo-el.CharacterNgrams.v1"}


@pytest.mark.parametrize("inner", [CLUSTERING, INDEPENDENT])
@pytest.mark.parametrize("lexicon", [None, LEXICON])
def test_margin(inner, lexicon):
    setting = {"@misc": "spacy-arbo-el.Margin.v1", "least": 0.1, "inference": inner}
    nlp = build(TWINS, [], inference=setting, lexicon=lexicon)
    doc = nlp(without_links(annotated(nlp, "They rested under a [maple|y].")))
    assert doc.ents[0].kb_id_ == "tree"
    doc = nlp(without_links(annotated(nlp, "They drank from the [Zorblat|x].")))
    assert doc.ents[0].kb_id_ == "NIL"
    link = doc.ents[0]._.arbo
    assert link.cluster and [c.kb_id for c in link.candidates[:2]] == ["old", "new"]
    # What a person has said is clear enough.
    linker = nlp.get_pipe("arbo_linker")
    linker.learn(doc.ents[0], "new")
    again = nlp(without_links(annotated(nlp, doc.text.replace("Zorblat", "[Zorblat|x]"))))
    assert again.ents[0].kb_id_ == "new"
    plain = build(TWINS, [], inference=inner, lexicon=lexicon)
    doc = plain(without_links(annotated(plain, "They drank from the [Zorblat|x].")))
    assert doc.ents[0].kb_id_ == "old", "of equal ones the first"
