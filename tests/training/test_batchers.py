"""Batches by mention and by concept: each labelled mention once, in batches of the right size."""

import random
from collections import Counter

import numpy as np
import pytest
import spacy
from hypothesis import given
from hypothesis import strategies as st
from spacy.tokens import Span
from spacy.training import Example
from spacy.util import registry

from spacy_arbo_el.contrib.papers.biocom import batch_by_concept
from spacy_arbo_el.mentions.record import gold_ids
from spacy_arbo_el.training.batchers import batch_by_mention, chosen_mentions

from ..expecting import raises
from ..linker.world import TRAIN, examples

NLP = spacy.blank("xx")
# Documents as lists of gold ids: "" is a mention without one.
corpora = st.lists(st.lists(st.sampled_from(["a", "b", "c", "d", ""]), max_size=5), max_size=6)


def corpus_of(documents):
    """Documents whose texts say their number, with one mention per gold id."""
    texts = [
        f"{number}: " + " ".join(f"[x{place}|{i}]" if i else "y" for place, i in enumerate(ids))
        for number, ids in enumerate(documents)
    ]
    return examples(NLP, texts)


def mentions_of(batch, chosen=chosen_mentions):
    """The mentions that a batch trains on: text, offsets and concept."""
    return [
        (doc.text, span.start_char, gold_ids(span))
        for doc in (example.reference for example in batch)
        for span in chosen(doc, doc.ents)
    ]


def all_mentions(corpus):
    return mentions_of(corpus, lambda doc, ents: filter(gold_ids, ents))


@given(corpora, st.integers(1, 5))
def test_batches_by_mention_hold_each_labelled_mention_once(documents, size):
    corpus = corpus_of(documents)
    batches = [mentions_of(batch) for batch in batch_by_mention(size)(iter(corpus))]
    flat = [mention for batch in batches for mention in batch]
    assert sorted(flat) == sorted(all_mentions(corpus))
    assert all(len(batch) == size for batch in batches[:-1])
    assert all(0 < len(batch) <= size for batch in batches)


@given(corpora, st.integers(1, 3), st.integers(1, 3))
def test_batches_by_concept_hold_so_many_concepts_and_mentions(documents, n_concepts, n_mentions):
    corpus = corpus_of(documents)
    mentions = all_mentions(corpus)
    batcher = batch_by_concept(n_concepts, n_mentions)
    count = len({concept for *_, concept in mentions})
    if count < n_concepts:
        with raises(f"E615.*n_concepts to {count}"):
            list(batcher(iter(corpus)))
        return
    batches = [mentions_of(batch) for batch in batcher(iter(corpus))]
    assert sorted(m for batch in batches for m in batch) == sorted(mentions)
    left = Counter(concept for *_, concept in mentions)
    for batch in batches:
        counts = Counter(concept for *_, concept in batch)
        assert len(counts) == min(n_concepts, len(+left))
        assert all(count <= n_mentions for count in counts.values())
        left -= counts


def test_the_other_mentions_of_a_sentence_take_part():
    nlp = spacy.blank("xx")
    docs = [nlp("a and b . a and c . d"), nlp("d . b . a c")]
    for doc in docs:
        doc.ents = [Span(doc, t.i, t.i + 1, "X", kb_id=t.text) for t in doc if t.text in "abcd"]
    corpus = [Example(nlp.make_doc(doc.text), doc) for doc in docs]
    sentences = [{"a0", "b6"}, {"a10", "c16"}, {"d20"}, {"d0"}, {"b4"}, {"a8", "c10"}]
    for batch in batch_by_concept(2, 1, sentences=True)(corpus):
        found = {f"{concept[0]}{start}" for _, start, concept in mentions_of(batch)}
        assert any(found == one | other for one in sentences for other in sentences)


def test_batches_depend_on_the_seed_alone():
    corpus = corpus_of([["a", "b"], ["c", "a"], ["d", "b", "a"]])
    for batcher in (batch_by_mention(2), batch_by_concept(2, 1)):
        runs = []
        for seed in (0, 0, 1, 2, 3):
            random.seed(seed)
            runs.append([mentions_of(batch) for batch in batcher(corpus)])
        assert runs[0] == runs[1]
        assert any(run != runs[0] for run in runs[2:])


def test_documents_keep_all_their_mentions_for_other_components():
    corpus = corpus_of([["a", "b", "c"]])
    (batch,) = (batch for batch, _ in zip(batch_by_mention(1)(corpus), range(1)))
    assert len(batch[0].reference.ents) == 3
    assert len(mentions_of(batch)) == 1
    assert not corpus[0].reference.user_data.get("arbo_train_on")


@pytest.mark.slow
def test_the_linker_trains_on_the_chosen_mentions_alone(nlp, linker):
    batcher = registry.batchers.get("spacy-arbo-el.batch_by_mention.v1")(size=3)
    steps = []
    step = linker.trainer.step
    linker.trainer.step = lambda rows: steps.append(rows) or step(rows)
    stored = len(linker.exemplars)
    for batch in batcher(examples(nlp, TRAIN)):
        nlp.update(batch)
    assert len(linker.exemplars) == stored
    assert [len(rows) for rows in steps[:-1]] == [3] * (len(steps) - 1)
    assert sorted(np.concatenate(steps).tolist()) == list(range(stored))
