"""Namesakes with short descriptions, in twelve domains: the context decides. All are made up."""

from itertools import groupby

import pytest
import spacy

from ..cases import cases

pytestmark = pytest.mark.bundled
NAMESAKES = cases("namesakes")


def test_contexts_tell_namesakes_apart():
    first, linked, wrong = 0, 0, []
    for name, senses in groupby(NAMESAKES, key=lambda case: case[0]):
        nlp = spacy.blank("en")
        ruler = nlp.add_pipe("entity_ruler", config={"phrase_matcher_attr": "LOWER"})
        ruler.add_patterns([{"label": "X", "pattern": name}])
        entities, texts = [], []
        for _, title, description, contexts in senses:
            kb_id = f"{name}-{len(entities)}"
            about = {"title": title, "aliases": [name], "description": description}
            entities.append({"id": kb_id, **about})
            texts += [(text, kb_id) for text in contexts]
        nlp.add_pipe("arbo_linker").set_kb(entities)
        for doc, gold in nlp.pipe(texts, as_tuples=True):
            (mention,) = doc.ents
            first += mention._.arbo.candidates[0].kb_id == gold
            linked += mention.kb_id_ == gold
            if mention.kb_id_ != gold:
                wrong.append(f"{mention._.arbo.candidates[0]}, not {gold}: {doc}")
    total = 2 * len(NAMESAKES)
    assert first >= 0.9 * total, "\n".join(wrong)
    assert linked >= 0.8 * total, "\n".join(wrong)
