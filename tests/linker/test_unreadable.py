"""Text that the encoder's vocabulary does not know is linked by name alone."""

import pytest
from spacy.tokens import Doc, Span

from spacy_arbo_el import Entity, find_linker
from spacy_arbo_el.base.log import warn_once

from ..expecting import no_warnings, warns
from .conftest import build_bundled as build
from .world import ENTITIES, TRAIN, unlinked_doc

CITY = Entity("city", "አዲስ አበባ", "", ["ኣዲስ"])
# Not a name of anything.
OTHER = "ጎንደር"
UNREADABLE = [OTHER, "ភ្នំពេញ", "☢", "🎉🎉", " ", "☢ 2"]


@pytest.fixture(scope="module")
def nlp():
    trained = [*TRAIN, f"They drove to [{OTHER}|city] at night."]
    return build([*ENTITIES, CITY, Entity("symbol", "☢"), Entity("mark", "⚛")], trained)


def linked(nlp, mention, before="They saw", after="there"):
    doc = Doc(nlp.vocab, words=[*before.split(), mention, *after.split()])
    start = len(before.split())
    doc.ents = [Span(doc, start, start + 1, label="THING")]
    return nlp(doc).ents[0]._.arbo


@pytest.mark.parametrize("mention", UNREADABLE[:2] + UNREADABLE[3:])
def test_unreadable_mentions_without_a_name_are_nil(nlp, mention):
    link = linked(nlp, mention)
    assert link.is_nil
    assert not link.ids
    assert link.score == 0.0


@pytest.mark.parametrize(
    "mention, kb_id", [("አዲስ አበባ", "city"), ("ኣዲስ", "city"), ("☢", "symbol"), ("⚛", "mark")]
)
def test_unreadable_mentions_are_linked_by_their_exact_name(nlp, mention, kb_id):
    link = linked(nlp, mention)
    assert link.kb_id == kb_id
    assert link.ids == [kb_id]
    assert link.score > 0.9


def test_unreadable_entities_and_exemplars_are_near_to_nothing(nlp, linker):
    links = [linked(nlp, word) for word in ("Amazon", "Kathmandu", "x", "ship")]
    ids = {kb_id for link in links for kb_id in link.ids}
    assert ids == {entity.id for entity in ENTITIES}
    retriever = linker.refresh().retriever
    rows = {linker.exemplars.records[row].text for row in retriever.exemplar_rows.tolist()}
    assert OTHER not in rows
    assert "Amazon" in rows


def test_mentions_influence_no_others_and_are_influenced_by_none(nlp):
    text = f"They saw [{OTHER}|x] and [☢☢|x] and the [Amazon|x] and the [{OTHER}|x]."
    doc = nlp(unlinked_doc(nlp, text))
    links = [ent._.arbo for ent in doc.ents]
    assert [link.is_nil for link in links] == [True, True, False, True]
    docs = find_linker(nlp).corpus.link([unlinked_doc(nlp, text)] * 2)
    assert [ent._.arbo.is_nil for ent in docs[0].ents] == [True, True, False, True]


def test_the_most_frequent_of_many_entities_of_a_name_are_candidates():
    many = [Entity(f"c{i}", "አዲስ አበባ", frequency=i) for i in range(10)]
    nlp = build([*ENTITIES, *many], [])
    link = linked(nlp, CITY.title)
    assert set(link.ids) == {f"c{i}" for i in range(2, 10)}


def test_types_count_for_names_too():
    entities = [Entity("a", "☢", types=["SIGN"]), Entity("b", "⚛", types=["PLACE"])]
    nlp = build(entities, [], retriever={"match_types": True})
    text = "The [☢|x] and the [⚛|x]."
    doc = unlinked_doc(nlp, text, label="SIGN")
    assert [ent.kb_id_ for ent in nlp(doc).ents] == ["a", "NIL"]
    # Among no entities at all, too.
    find_linker(nlp).set_kb([])
    assert [ent.kb_id_ for ent in nlp(doc).ents] == ["NIL", "NIL"]


def test_one_warning_in_a_process(nlp):
    warn_once.cache_clear()
    with warns("cannot read some mentions.*multilingual") as caught:
        linked(nlp, OTHER)
    assert len(caught) == 1
    with no_warnings():
        linked(nlp, OTHER)
        linked(nlp, "☢")


def test_explanation_says_that_the_mention_cannot_be_read(nlp):
    doc = Doc(nlp.vocab, words=["They", "saw", OTHER])
    doc.ents = [Span(doc, 2, 3, label="THING")]
    doc = nlp(doc)
    text = str(find_linker(nlp).explain(doc.ents[0], "river"))
    assert "the encoder cannot read the mention" in text
