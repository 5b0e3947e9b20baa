"""Links in two lines: a knowledge base from whatever people have, without nlp.initialize()."""

import pytest
import spacy
from spacy.kb import InMemoryLookupKB, KnowledgeBase

from spacy_arbo_el import ArboKB
from spacy_arbo_el.kb.importers import write_entities_jsonl

from ..expecting import raises
from .world import DEV, ENTITIES, annotated


class OtherKB(KnowledgeBase):
    """A knowledge base of a kind that can't be read."""

    def __init__(self, vocab):
        super().__init__(vocab, 1)


def linker_of(tiny_bert, **settings):
    encoder = {"@architectures": "spacy-arbo-el.TransformerEncoder.v1", "name": str(tiny_bert)}
    config = {"model": {"mention": {**encoder, "window": 32, "text": 32, **settings}}}
    return spacy.blank("xx").add_pipe("arbo_linker", config=config)


@pytest.fixture
def linker(tiny_bert):
    return linker_of(tiny_bert)


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
    doc = annotated(spacy.blank("xx"), DEV[0])
    assert all(link.ids for link in linker.predict([doc])[0].values())


@pytest.mark.parametrize("kind", ["kb", "loader"])
def test_spacys_own_knowledge_base_keeps_its_priors(linker, tmp_path, kind):
    theirs = InMemoryLookupKB(linker.vocab, entity_vector_length=1)
    for name in ("planet", "metal"):
        theirs.add_entity(name, 342, [0.0])
    theirs.add_alias("Mercury", ["planet", "metal"], [0.875, 0.125])
    theirs.add_alias("quicksilver", ["metal"], [1.0])
    linker.set_kb({"kb": theirs, "loader": lambda vocab: theirs}[kind])
    found = {c.entity_: c.prior_prob for c in linker.kb.get_alias_candidates("Mercury")}
    assert found == {"planet": 0.875, "metal": 0.125}
    assert linker.kb["metal"].names == ["quicksilver", "Mercury"]
    theirs.to_disk(tmp_path / "kb")
    with raises("E040.*linker.set_kb"):
        linker.set_kb(tmp_path / "kb")


def test_the_folder_of_a_pipeline_says_which_folder_inside_to_use(linker, tmp_path):
    linker.set_kb(ENTITIES)
    (tmp_path / "nlp").mkdir()
    linker.to_disk(tmp_path / "nlp" / "arbo_linker")
    inner = tmp_path / "nlp" / "arbo_linker" / "kb"
    for path in (tmp_path / "nlp", tmp_path / "nlp" / "arbo_linker"):
        with raises("E029") as error:
            linker.set_kb(path)
        assert str(inner) in str(error.value)
    linker.set_kb(inner)


@pytest.mark.parametrize(
    "source",
    [
        3,
        None,
        b"kb",
        lambda vocab: "kb",
        OtherKB,
        {"D1": 5},
        {"id": "D1"},
        {"id": "D1", "title": "x"},
    ],
)
def test_what_no_knowledge_base_can_be_made_of(linker, source):
    with raises("E50[23]"):
        linker.set_kb(source)


def test_a_folder_is_encoded_once_and_keeps_its_vectors(linker, tmp_path):
    ArboKB(linker.vocab, ENTITIES).to_disk(tmp_path / "kb")
    linker.set_kb(tmp_path / "kb")
    linker.refresh()
    texts = []
    linker.encoder.encode_texts = lambda inputs: texts.append(inputs)
    linker.refresh()
    linker.set_kb(tmp_path / "kb")
    linker.refresh()
    assert not texts
    assert ArboKB.for_reading(tmp_path / "kb").fingerprint == linker.encoder.text_fingerprint


def test_a_folder_keeps_vectors_while_another_program_edits_it(linker, tmp_path):
    ArboKB(linker.vocab, ENTITIES).to_disk(tmp_path / "kb")
    with ArboKB.open(tmp_path / "kb"):
        linker.set_kb(tmp_path / "kb")
        linker.refresh()
    assert ArboKB.for_reading(tmp_path / "kb").fingerprint == linker.encoder.text_fingerprint


@pytest.mark.parametrize("setting", ["window", "predict_tokens"])
def test_how_mentions_are_read_does_not_change_the_vectors_of_names(linker, tiny_bert, setting):
    other = linker_of(tiny_bert, **{setting: 48})
    assert linker.encoder.load()
    assert other.encoder.load()
    assert other.encoder.text_fingerprint == linker.encoder.text_fingerprint
    assert (other.encoder.fingerprint != linker.encoder.fingerprint) == (setting == "window")
