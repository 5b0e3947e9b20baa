"""Links in two lines: a knowledge base from whatever people have, without nlp.initialize()."""

import pytest
import spacy

from spacy_arbo_el.errors import Errors
from spacy_arbo_el.kb.importers import write_entities_jsonl
from spacy_arbo_el.kb.knowledge_base import ArboKB

from .world import DEV, ENTITIES, annotated


@pytest.fixture
def linker(tiny_bert):
    encoder = {"@architectures": "spacy-arbo-el.TransformerEncoder.v1", "name": str(tiny_bert)}
    config = {"model": {"mention": {**encoder, "window": 32}}}
    return spacy.blank("en").add_pipe("arbo_linker", config=config)


def test_two_lines_are_enough_and_leave_the_other_components_alone():
    nlp = spacy.blank("en")
    ruler = nlp.add_pipe("entity_ruler")
    ruler.add_patterns([{"label": "THING", "pattern": "quicksilver"}])
    linker = nlp.add_pipe("arbo_linker")
    linker.set_kb(ENTITIES)
    assert [ent.kb_id_ for ent in nlp("The quicksilver is poisonous.").ents] == ["metal"]
    assert linker.kb is linker.datastore.kb and len(ruler.patterns) == 1


@pytest.mark.parametrize("kind", ["entities", "dicts", "jsonl", "folder", "kb", "loader"])
def test_what_a_knowledge_base_is_made_of(linker, tmp_path, kind):
    kb = ArboKB(linker.vocab, ENTITIES)
    write_entities_jsonl(ENTITIES, tmp_path / "entities.jsonl")
    kb.to_disk(tmp_path / "kb")
    sources = {
        "entities": ENTITIES,
        "dicts": [entity.to_dict() for entity in ENTITIES],
        "jsonl": str(tmp_path / "entities.jsonl"),
        "folder": tmp_path / "kb",
        "kb": kb,
        "loader": lambda vocab: kb,
    }
    linker.set_kb(sources[kind])
    assert [entity.id for entity in linker.kb] == [entity.id for entity in ENTITIES]
    doc = annotated(spacy.blank("en"), DEV[0])
    assert all(link.ids for link in linker.link_docs([doc])[0].values())


@pytest.mark.parametrize("source", [3, None, b"kb", lambda vocab: "kb"])
def test_what_no_knowledge_base_can_be_made_of(linker, source):
    with pytest.raises(ValueError, match="E50[23]"):
        linker.set_kb(source)


def test_a_folder_is_encoded_once_and_keeps_its_vectors(linker, tmp_path):
    ArboKB(linker.vocab, ENTITIES).to_disk(tmp_path / "kb")
    linker.set_kb(tmp_path / "kb")
    texts = []
    linker.encoder.encode_texts = lambda inputs: texts.append(inputs)
    linker.refresh()
    linker.set_kb(tmp_path / "kb")
    linker.refresh()
    assert not texts
    assert ArboKB.for_reading(tmp_path / "kb").fingerprint == linker.encoder.fingerprint


def test_a_folder_that_another_program_edits_is_encoded_in_memory(linker, tmp_path):
    ArboKB(linker.vocab, ENTITIES).to_disk(tmp_path / "kb")
    with ArboKB.open(tmp_path / "kb"):
        linker.set_kb(tmp_path / "kb")
    linker.refresh()
    assert ArboKB.for_reading(tmp_path / "kb").fingerprint == ""
    assert linker.kb.fingerprint == linker.encoder.fingerprint


def test_no_message_advises_to_initialise_other_components():
    texts = [value for name, value in vars(Errors).items() if name.startswith("E")]
    assert len(texts) > 50
    assert not [text for text in texts if "nlp.initialize" in text]
