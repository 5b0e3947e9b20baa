"""Round trips of the component and its Docs, other processes, and options of the retriever."""

import pickle
import shutil

import pytest
import spacy
import torch
from spacy.tokens import Doc, DocBin, Span

from spacy_arbo_el import Entity, find_linker, links_to_dicts
from spacy_arbo_el.base.log import warn_once

from ..devices import needs_index
from ..expecting import raises, warns
from .conftest import TOWER, build, build_tiny
from .world import ENTITIES, TRAIN, annotated, links_of, unlinked_doc, unlinked_docs, without_links


def test_nothing_is_unpickled(shared_nlp, tmp_path, monkeypatch):
    def refuse(*args, **kwargs):
        raise AssertionError("unpickled")

    shared_nlp.to_disk(tmp_path / "model")
    for module, name in ((pickle, "load"), (pickle, "loads"), (torch, "load")):
        monkeypatch.setattr(module, name, refuse)
    monkeypatch.setattr(pickle, "Unpickler", refuse)
    assert len(find_linker(spacy.load(tmp_path / "model")).kb) == 8


def test_loads_without_the_original_folder(tiny_bert, tmp_path):
    shutil.copytree(tiny_bert, tmp_path / "encoder")
    nlp = build_tiny(tmp_path / "encoder")
    before = links_of(nlp.pipe(unlinked_docs(nlp)))
    nlp.to_disk(tmp_path / "model")
    shutil.rmtree(tmp_path / "encoder")
    assert links_of(spacy.load(tmp_path / "model").pipe(unlinked_docs(nlp))) == before


def test_docs_keep_their_links(shared_nlp):
    doc = shared_nlp(unlinked_doc(shared_nlp, TRAIN[0]))
    link = doc.ents[0]._.arbo
    assert len(link.candidates) > 5
    assert all(candidate.title for candidate in link.candidates)
    assert link.score > 0
    assert [step.kind for step in link.evidence] == ["entity", "exemplar", "mention"]
    again = Doc(shared_nlp.vocab).from_bytes(doc.to_bytes())
    assert again.ents[0]._.arbo == link
    assert again.ents[0].kb_id_ == link.kb_id
    box = DocBin(docs=[doc], store_user_data=True).to_bytes()
    third = next(iter(DocBin().from_bytes(box).get_docs(shared_nlp.vocab)))
    assert third.ents[0]._.arbo == link
    bare = DocBin(docs=[doc]).to_bytes()
    fourth = next(iter(DocBin().from_bytes(bare).get_docs(shared_nlp.vocab)))
    assert fourth.ents[0]._.arbo is None
    assert fourth.ents[0].kb_id_ == link.kb_id
    assert doc[:].as_doc(copy_user_data=True).ents[0]._.arbo == link


def test_sourced_into_another_pipeline(shared_nlp):
    app = spacy.blank("xx")
    ruler = app.add_pipe("entity_ruler")
    ruler.add_patterns([{"label": "THING", "pattern": name} for name in ("Mercury", "Amazon")])
    app.add_pipe("arbo_linker", source=shared_nlp)
    doc = app("The probe flew past Mercury and photographed the craters of Mercury.")
    assert [ent.kb_id_ for ent in doc.ents] == ["planet", "planet"]
    assert app.analyze_pipes()["problems"] == {"entity_ruler": [], "arbo_linker": []}


def test_overwrite():
    nlp = build(overwrite=False)
    doc = annotated(nlp, "The probe flew past [Mercury|mine] today.")
    assert nlp(doc).ents[0].kb_id_ == "mine"
    nlp = build()
    assert (
        nlp(annotated(nlp, "The probe flew past [Mercury|mine] today.")).ents[0].kb_id_ == "planet"
    )


@pytest.mark.parametrize("key", ["", "sc"])
def test_a_second_linker_links_what_the_first_left_nil(key):
    text = "In [Port Veil|] and [Mercury|] and [nowhere|]."
    settings = {"key": key, "threshold": 0.9, "overwrite": "nil", **TOWER}
    places = find_linker(build([Entity("P1", "Port Veil")], [], **settings))
    nlp = build(train=[], extension="two", **settings)
    linker = find_linker(nlp)
    for order in ((places, linker), (linker, places), (places, linker, places)):
        doc = annotated(nlp, text, key)
        for component in order:
            doc = component(doc)
        spans = doc.spans[key] if key else doc.ents
        assert [span.kb_id_ for span in spans] == ["P1", "planet", "NIL"]
        rows = links_to_dicts([doc], get_spans=linker.mentions.getter)
        assert [row["title"] for row in rows] == ["Port Veil", "Mercury", ""], "of either linker"
    with raises("overwrite must be one of True, False, 'nil'"):
        build(overwrite="NIL")


def test_another_verbalization_on_loading_counts(nlp, tmp_path):
    nlp.to_disk(tmp_path / "model")
    names = {"@misc": "spacy-arbo-el.Names.v1", "description": False}
    config = {"components.arbo_linker.retriever.verbalization": names}
    linker = find_linker(spacy.load(tmp_path / "model", config=config))
    texts = linker.kb.vectors.distinct_texts(linker.datastore.settings.verbalization).texts
    assert ("quicksilver", "") in texts
    assert len(texts) < len(linker.kb.rows)


def test_an_emptied_knowledge_base_is_saved(nlp, linker, tmp_path):
    linker.refresh()
    linker.kb.remove([entity.id for entity in linker.kb])
    nlp.to_disk(tmp_path / "model")
    docs = spacy.load(tmp_path / "model").pipe(unlinked_docs(nlp))
    assert all(ent.kb_id_ == "NIL" for doc in docs for ent in doc.ents)


TEXT = "Boats travel up the [Amazon|river] through the rain forest."
INDEX = {"@misc": "spacy-arbo-el.FaissIndex.v1", "factory": "IVF2,SQ8", "search": "nprobe=2"}


def linked(nlp, text, label="THING"):
    doc = annotated(nlp, text, label=label)
    return nlp(without_links(doc)).ents[0]


def candidates(nlp, text, label="THING"):
    return [candidate.kb_id for candidate in linked(nlp, text, label)._.arbo.candidates]


def test_match_types_restricts_candidates():
    nlp = build(retriever={"match_types": True})
    linker = find_linker(nlp)
    assert linked(nlp, TEXT, "PLACE").kb_id_ == "river"
    assert linked(nlp, TEXT, "COMPANY").kb_id_ == "shop"
    assert set(candidates(nlp, TEXT, "COMPANY")) == {"shop", "maker", "car"}
    warn_once.cache_clear()
    with warns("W547.*'THING'.*COMPANY"):
        assert linked(nlp, TEXT, "THING").kb_id_ == "NIL", "no entity has that type"
    linker.kb.add(Entity("any", "Amazon basin"))
    assert candidates(nlp, TEXT, "THING") == ["any"], "no type is every type"
    # Each of several types in a document is searched by itself.
    doc = annotated(nlp, "The [Amazon|river] and [Apple|maker] and [Amazon|shop].")
    labels = ("PLACE", "COMPANY", "COMPANY")
    doc.ents = [Span(doc, s.start, s.end, label) for s, label in zip(doc.ents, labels)]
    types = {entity.id: entity.types for entity in linker.kb}
    for span in nlp(doc).ents:
        ids = [candidate.kb_id for candidate in span._.arbo.candidates]
        assert all(span.label_ in (types[kb_id] or [span.label_]) for kb_id in ids)
        assert len(ids) == (2 if span.label_ == "PLACE" else 4)


@needs_index
def test_an_approximate_index_is_saved_with_the_pipeline(tmp_path):
    many = [Entity(f"x{i}", f"thing number {i}") for i in range(300)]
    nlp = build([*ENTITIES, *many], retriever={"index": INDEX})
    expected = candidates(build([*ENTITIES, *many]), TEXT)[:5]
    assert candidates(nlp, TEXT)[:5] == expected
    nlp.to_disk(tmp_path / "model")
    folder = tmp_path / "model" / "arbo_linker" / "kb"
    again = spacy.load(tmp_path / "model")
    kb = find_linker(again).kb
    (file,) = folder.glob("index-*.faiss")
    assert kb.vectors.index.source == file or callable(kb.vectors.index.source)
    assert candidates(again, TEXT)[:5] == expected
    # A new entity is retrieved at once, without building the index again.
    kb.add(Entity("new", "zorblat", "a thing"))
    assert candidates(again, "A [zorblat|new] appeared.")[0] == "new"
    assert kb.vectors.index.about["rows"] == len(many) + len(ENTITIES)
    kb.remove("new")
    assert "new" not in candidates(again, "A [zorblat|new] appeared.")
    file.write_bytes(b"x" * file.stat().st_size)
    with warns(rf"W504.*{file.name}.*checksum"):
        again = spacy.load(tmp_path / "model")
    assert candidates(again, TEXT)[:5] == expected


def test_entities_of_another_pipeline_are_not_mixed_with_the_present_one(tmp_path, nlp, linker):
    nlp.to_disk(tmp_path / "model")
    loaded = find_linker(spacy.load(tmp_path / "model"))
    linker.kb.add(Entity("b", "B"))
    nlp.to_disk(tmp_path / "model")
    assert not loaded.kb.reload_if_changed()
    assert "b" not in loaded.kb
