"""A training starts from the vectors that linking has stored in the folder of a knowledge base."""

import io

import pytest
import spacy
from spacy.training.initialize import init_nlp

from spacy_arbo_el.corpora.docbin import write_docbin
from spacy_arbo_el.kb.knowledge_base import ArboKB
from spacy_arbo_el.retrieval import datastore
from spacy_arbo_el.runs.loop import train

from ..default import entities, marked
from ..systems import load_system
from ..tiny import save_tiny


def corpus(path):
    """Documents with one mention each, of several entities."""
    nlp, docs = spacy.blank("xx"), []
    for organ in ("kidney", "heart", "liver", "lung", "brain", "stomach", "bone", "skin"):
        doc = marked(nlp, f"She had {organ} cancer for years.", [f"{organ} cancer"])
        doc.ents = [spacy.tokens.Span(doc, 2, 4, "DISEASE", kb_id=f"{organ}:cancer")]
        docs.append(doc)
    write_docbin(docs, path)
    return str(path)


def tower(name):
    """The default settings, but for the encoder."""
    return {"model": {"mention": {"name": name}}}


@pytest.mark.slow
def test_a_training_encodes_no_name_that_linking_has_stored(tmp_path, monkeypatch):
    kb = ArboKB(spacy.blank("xx").vocab)
    kb.add(entities())
    kb.to_disk(tmp_path / "kb")
    nlp = spacy.blank("xx")
    encoder = str(save_tiny(tmp_path / "bert", "bert", positions=128))
    nlp.add_pipe("arbo_linker", config=tower(encoder)).set_kb(tmp_path / "kb")
    encoded, encode_texts = [], datastore.encode_texts

    def counting(encoder, texts):
        encoded.append((encoder.is_trained, len(texts)))
        return encode_texts(encoder, texts)

    monkeypatch.setattr(datastore, "encode_texts", counting)
    nlp(marked(nlp))
    names = sum(count for _, count in encoded)
    assert names > 500
    encoded.clear()
    settings = {
        "paths.train": corpus(tmp_path / "train.spacy"),
        "paths.dev": corpus(tmp_path / "dev.spacy"),
        "paths.kb": str(tmp_path / "kb"),
        "paths.encoder": encoder,
        "training.max_steps": 2,
        "training.eval_frequency": 2,
    }
    train(init_nlp(load_system("linker", settings)), tmp_path / "out", stdout=io.StringIO())
    assert sum(count for is_trained, count in encoded if not is_trained) == 0
    # After the two steps, all names are encoded once for the pipeline that is saved.
    assert sum(count for is_trained, count in encoded if is_trained) == names
