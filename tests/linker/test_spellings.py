"""The untrained linker reads a mention as the name that it is in another spelling."""

import unicodedata

import numpy as np
import pytest
import spacy

from spacy_arbo_el.mentions.normalization.text import with_names

from ..cases import cases


@pytest.fixture(scope="module")
def nlp():
    nlp = spacy.blank("en")
    nlp.add_pipe("arbo_linker")
    nlp.add_pipe("arbo_names", before="arbo_linker")
    return nlp


def linked(nlp, titles, mention, text="Yesterday they met {} there."):
    """The numbers of the linked entity, 0 for none."""
    linker = nlp.get_pipe("arbo_linker")
    linker.set_kb([{"id": str(n), "title": title} for n, title in enumerate(titles, 1)])
    doc = nlp.make_doc(text.format(mention))
    start = doc.text.index(mention)
    doc.ents = [doc.char_span(start, start + len(mention), label="E", alignment_mode="expand")]
    (ent,) = linker(doc).ents
    return 0 if ent.kb_id_ == "NIL" else int(ent.kb_id_)


@pytest.mark.bundled
@pytest.mark.parametrize("name, other, near", cases("other_spellings"))
def test_either_side_may_have_the_other_spelling(nlp, name, other, near):
    assert linked(nlp, [name, near, "Alder Mill"], other) == 1
    assert linked(nlp, [other, near, "Alder Mill"], name) == 1


@pytest.mark.bundled
def test_the_own_spelling_comes_first(nlp):
    titles = ["Müller", "Mueller", "Muller"]
    assert [linked(nlp, titles, title) for title in titles] == [1, 2, 3]
    assert linked(nlp, ["Weiß", "Weiss"], "Weiss") == 2


@pytest.mark.bundled
def test_names_of_the_list_may_be_in_another_form_of_unicode(nlp):
    decomposed = unicodedata.normalize("NFD", "がん病院")
    assert linked(nlp, [decomposed, "かん病院"], "がん病院") == 1
    assert linked(nlp, ["5 µg zelmone", "5 mg zelmone"], "5 μg zelmone") == 1
    assert linked(nlp, ["5 μg zelmone", "5 mg zelmone"], "5 µg zelmone") == 1
    assert linked(nlp, ["5 µg zelmone", "5 mg zelmone"], "5 µg zelmone") == 1
    assert nlp.get_pipe("arbo_linker").kb.get("1").title == "5 µg zelmone"


@pytest.mark.bundled
def test_headings_are_found_by_their_bare_names(nlp):
    titles = ["Tarnow, Peter, 1901-1967", "Velm, Ruth, 1850-1912", "Velm, Ruth, 1931-"]
    for mention in ("Peter Tarnow", "Tarnow, Peter", "P. Tarnow", "Péter Tarnow"):
        assert linked(nlp, titles, mention) == 1
    assert linked(nlp, titles, "Ruth Velm") == 0
    assert linked(nlp, titles, "Ruth Velm (1850-1912)") == 2
    assert linked(nlp, titles, "Velm, Ruth, 1999-") == 0


def test_mentions_that_overlap_others_keep_their_text():
    text, offsets = "Peter Tarnow met Tarnow", np.array([[0, 12], [6, 12], [17, 23], [17, 23]])
    new, moved = with_names(text, offsets, ["Tarnow, Peter", "", "Tarnów", "Tarnów"])
    assert new == "Peter Tarnow met Tarnów"
    assert moved.tolist() == offsets.tolist()
    new, moved = with_names(text, offsets[2:], ["Tarnow, Peter, 1901-1967"] * 2)
    assert new == "Peter Tarnow met Tarnow, Peter, 1901-1967"
    assert moved.tolist() == [[17, 41], [17, 41]]
