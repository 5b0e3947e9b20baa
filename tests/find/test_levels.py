"""What makes two strings one name, asked of all that compare names.

A level is exact, case, letters (accents, dashes, numerals) or words. Each room has its reason to
stop at one:

- exact names and near names: what is found in raw text, by letters and by words.
- linking: what a mention is read as before it is compared, by letters. What differs in words is
  weighed by the ranker.
- lookup and duplicates: what people search and merge, by letters, which they confirm.
- discovery: what needs no evidence but the name, by letters and whatever joins words. Further forms
  are joined by evidence.
- corrections: what is certain of another mention by the name alone, exact.
"""

import pytest
import spacy

from spacy_arbo_el import ArboKB, Entity, MentionRecord
from spacy_arbo_el.discovery.mention_names import MentionNames
from spacy_arbo_el.find.dictionary import Dictionary
from spacy_arbo_el.find.near_names import NearNames
from spacy_arbo_el.kb.duplicates import duplicate_pairs
from spacy_arbo_el.kb.lookup import same_name
from spacy_arbo_el.kb.respelling import match_spellings
from spacy_arbo_el.linking.reach import form_of

from ..cases import cases

NLP = spacy.blank("en")


def is_found(finder, text):
    doc = NLP.make_doc(text)
    return [doc[hit.start : hit.end].text for hit in finder.hits(doc)] == [text]


def is_exact_name(one, other):
    return is_found(Dictionary.build(NLP, [Entity("E", one)]), other)


def is_near_name(one, other):
    return is_found(NearNames.of(NLP.vocab, NLP.Defaults.stop_words, [Entity("E", one)]), other)


def entities_of(name):
    kb = ArboKB(NLP.vocab)
    kb.add(Entity("E", name))
    return kb.entities


def is_linked(one, other):
    entities = entities_of(one)
    return bool(entities.with_name(other)) or match_spellings(entities, [other])[0] is not None


def is_looked_up(one, other):
    return bool(same_name(entities_of(one), other))


def is_duplicate(one, other):
    return bool(duplicate_pairs([Entity("E", one), Entity("F", other)]))


def mentions(*texts):
    return [MentionRecord(("d", 0, n), (), text, normalized=text) for n, text in enumerate(texts)]


def is_one_new_entity(one, other):
    return len(set(MentionNames.of(mentions(one, other)).numbers.tolist())) == 1


def is_corrected(one, other):
    return len({form_of(record) for record in mentions(one, other)}) == 1


ROOMS = {
    "exact names": is_exact_name,
    "near names": is_near_name,
    "linking": is_linked,
    "lookup": is_looked_up,
    "duplicates": is_duplicate,
    "discovery": is_one_new_entity,
    "corrections": is_corrected,
}


@pytest.mark.parametrize(("one", "other", "rooms"), cases("levels"))
def test_who_takes_two_strings_for_one_name(one, other, rooms):
    assert [room for room, is_one in ROOMS.items() if is_one(one, other)] == rooms
