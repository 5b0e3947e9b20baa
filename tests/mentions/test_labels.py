"""Gold ids of entities that were merged."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from spacy.vocab import Vocab

from spacy_arbo_el.kb.entity import Entity
from spacy_arbo_el.kb.knowledge_base import ArboKB
from spacy_arbo_el.mentions.labels import current_ids, gold_positions

IDS = [f"e{i}" for i in range(5)]
ids = st.sampled_from([*IDS, "unknown"])


@given(st.data())
def test_ids_are_those_of_the_entities_that_they_lead_to(data):
    kb = ArboKB(Vocab(), map(Entity, IDS))
    for _ in range(data.draw(st.integers(0, 3))):
        old, new = data.draw(st.tuples(ids, ids))
        if old in kb and new in kb and kb.get(old).id != kb.get(new).id:
            kb.merge(old, new)
    gold = data.draw(st.lists(st.lists(ids, max_size=3), max_size=4))
    found = current_ids(kb, gold)
    for before, after in zip(gold, found):
        assert after == tuple(dict.fromkeys(kb.get(i).id if i in kb else i for i in before))
    # The same entities as those that training and calibration use.
    one, other = gold_positions(kb, gold), gold_positions(kb, found)
    for left, right in zip(one, other):
        assert {*left[left >= 0]} == {*right[right >= 0]}
    assert len(found) == len(gold) and one.dtype == np.int64
