"""spaCy's own entity_linker, trained and run on an ArboKB."""

import numpy as np
import pytest
import spacy
from spacy.kb import InMemoryLookupKB
from spacy.training import Example
from spacy.vocab import Vocab
from thinc.api import Config, fix_random_seed

from spacy_arbo_el.kb.entity import Entity
from spacy_arbo_el.kb.knowledge_base import ArboKB
from spacy_arbo_el.kb.spacy_functions import CandidateBatchGenerator, CandidateGenerator
from spacy_arbo_el.kb.verbalizations import Names

CONFIG = """
[entity_linker]
n_sents = 0
use_gold_ents = true
candidates_batch_size = 4

[entity_linker.get_candidates]
@misc = "spacy-arbo-el.CandidateGenerator.v1"

[entity_linker.get_candidates_batch]
@misc = "spacy-arbo-el.CandidateBatchGenerator.v1"

[entity_linker.generate_empty_kb]
@misc = "spacy-arbo-el.EmptyLinkerKB.v1"
"""
# Two entities that share a name. Only the context of a mention distinguishes them.
ENTITIES = [
    Entity("planet", "Mercury", aliases=("planet Mercury",), frequency=1),
    Entity("metal", "mercury", aliases=("quicksilver",), frequency=1),
]
TEXTS = {
    "planet": ["The orbit of Mercury is small.", "Craters cover Mercury near the sun."],
    "metal": ["Fish hold much mercury and poison.", "They breathe mercury vapour and poison."],
}


def vectors(texts):
    rng = np.random.default_rng(len(texts))
    return rng.standard_normal((len(texts), 16)).astype(np.float32)


def mention(nlp, text, kb_id=""):
    doc = nlp.make_doc(text)
    i = next(token.i for token in doc if token.lower_ == "mercury")
    doc.ents = [spacy.tokens.Span(doc, i, i + 1, label="X", kb_id=kb_id)]
    for token in doc:
        token.is_sent_start = token.i == 0
    return doc


def test_entity_linker_trains_saves_and_links(tmp_path):
    fix_random_seed(0)
    kb = ArboKB(Vocab(), ENTITIES)
    kb.sync(Names(), vectors, "x")
    kb.to_disk(tmp_path / "kb")
    nlp = spacy.blank("en")
    linker = nlp.add_pipe("entity_linker", config=Config().from_str(CONFIG)["entity_linker"])
    examples = [
        Example(mention(nlp, text), mention(nlp, text, kb_id))
        for kb_id, texts in TEXTS.items()
        for text in texts
    ]
    linker.initialize(
        lambda: examples, nlp=nlp, kb_loader=lambda vocab: ArboKB(vocab).from_disk(tmp_path / "kb")
    )
    assert linker.kb.entity_vector_length == 16
    optimizer = nlp.create_optimizer()
    for _ in range(30):
        losses = nlp.update(examples, sgd=optimizer, losses={})
    assert losses["entity_linker"] < 0.5
    nlp.to_disk(tmp_path / "model")
    again = spacy.load(tmp_path / "model")
    assert isinstance(again.get_pipe("entity_linker").kb, ArboKB)
    for pipeline in (nlp, again):
        for kb_id, texts in TEXTS.items():
            kb_ids = [pipeline(mention(pipeline, text)).ents[0].kb_id_ for text in texts]
            assert kb_ids == [kb_id] * len(texts)


def test_candidate_generators_find_exact_and_similar_names():
    kb = ArboKB(Vocab(), [*ENTITIES, Entity("new", "quick silver")])
    kb.sync(Names(), vectors, "x")
    doc = spacy.blank("en")("Mercury quicksylver")
    single, batch = CandidateGenerator(), CandidateBatchGenerator(n_fuzzy=2)
    assert [c.entity_ for c in single(kb, doc[:1])] == ["planet", "metal"]
    assert single(kb, doc[1:]) == []
    exact, fuzzy = batch(kb, [doc[:1], doc[1:]])
    assert [(c.entity_, c.prior_prob) for c in exact] == [("planet", 0.5), ("metal", 0.5)]
    assert [c.entity_ for c in fuzzy] == ["metal", "new"]
    assert fuzzy[0].prior_prob > fuzzy[1].prior_prob and sum(c.prior_prob for c in fuzzy) == 1.0
    assert len(fuzzy[0].entity_vector) == 16
    with pytest.raises(ValueError, match="InMemoryLookupKB, but the linker needs an ArboKB"):
        single(InMemoryLookupKB(Vocab(), 3), doc[:1])


def test_candidates_that_were_never_encoded_have_an_empty_vector():
    kb = ArboKB(Vocab(), ENTITIES)
    assert [list(c.entity_vector) for c in kb.get_alias_candidates("mercury")] == [[], []]
