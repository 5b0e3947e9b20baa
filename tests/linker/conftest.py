import spacy
from thinc.api import Config

from spacy_arbo_el import ArboKB

from ..encoders import numpy_tower  # noqa: F401  registers the architecture
from .world import ENTITIES, TRAIN, examples

# Vectors alone decide, and everything is linked: what most tests are about. The defaults have
# tests of their own.
PLAIN = {
    "threshold": 0.0,
    "calibration": None,
    "mentions": {"@misc": "spacy-arbo-el.Mentions.v1", "normalizer": None},
    "retriever": {
        "@misc": "spacy-arbo-el.Retriever.v1",
        "verbalization": {
            "@misc": "spacy-arbo-el.TitleDescription.v1",
            "aliases": True,
            "types": True,
        },
    },
    "reranker": {"@misc": "spacy-arbo-el.BestEvidence.v1"},
    "discovery": {"@misc": "spacy-arbo-el.Discovery.v1", "threshold": 0.5},
    "objective": {
        "@misc": "spacy-arbo-el.Objective.v1",
        "positives": {"@misc": "spacy-arbo-el.ArborescencePositives.v1", "with_entity": False},
    },
}


# Vectors of words, which cost next to nothing: those of the span alone, and with its context.
TOWER = {"model": {"mention": {"@architectures": "test.HashedEncoder.v1"}}}
HASHED = {"mention": {"@architectures": "test.HashedEncoder.v1", "context": 0.5}}
# The encoder of n-grams, small.
NGRAMS = {
    "@architectures": "spacy-arbo-el.NgramEncoder.v1",
    "width": 32,
    "vectors": 32,
    "rows": 2048,
    "hidden": 32,
}
FIELDS = {"@misc": "spacy-arbo-el.Fields.v1"}
NGRAMS_OF_FIELDS = {
    "model": NGRAMS,
    "retriever": {"@misc": "spacy-arbo-el.Retriever.v1", "verbalization": FIELDS},
}


def build(entities=ENTITIES, train=TRAIN, key="", model=HASHED, factory="arbo_linker", **config):
    """A pipeline with an initialised linker. config: What differs from ``PLAIN``.

    key: Of the span group with the mentions, if they are not entities.
    Its language is "xx", whose tokenizer is made four times as fast as that of "en".
    """
    nlp = spacy.blank("xx")
    group = {"getter": {"@misc": "spacy-arbo-el.GroupSpans.v1", "spans_key": key}}
    base = Config(PLAIN).merge(Config({"mentions": group} if key else {}))
    config = base.merge(Config({"model": model, **config}))
    linker = nlp.add_pipe(factory, name="arbo_linker", config=config)
    linker.initialize(
        lambda: examples(nlp, train, key) or examples(nlp, ["nothing here"]),
        nlp=nlp,
        kb_loader=lambda vocab: ArboKB(vocab, entities),
    )
    return nlp


def build_bundled(*args, model=None, **config):
    """As ``build``, with the bundled encoder, for what words alone can't do."""
    return build(*args, model=model or {}, **config)


def build_tiny(folder, *args, **config):
    """As ``build``, with the transformer of a folder, such as that of ``tiny_bert``."""
    tower = {"name": str(folder), "window": 32, "precision": "float32"}
    return build(*args, model={"mention": tower}, **config)


def learned_scalars(linker):
    """Scale and offset of each objective of a linker, all by ``LearnedScale.v1``."""
    terms = linker.trainer.objective.terms
    return [term.loss.scalars(linker.model, i) for i, term in enumerate(terms)]
