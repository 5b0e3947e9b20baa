"""Options of the retriever: types, approximate indexes."""

import pytest
import spacy
from spacy.tokens import Span

from spacy_arbo_el.base.log import warn_once
from spacy_arbo_el.kb.entity import Entity

from ..devices import needs_index
from .conftest import build
from .world import ENTITIES, annotated, without_links

TEXT = "Boats travel up the [Amazon|river] through the rain forest."
INDEX = {"@misc": "spacy-arbo-el.FaissIndex.v1", "factory": "IVF2,SQ8", "search": "nprobe=2"}


def linked(nlp, text, label="THING"):
    doc = annotated(nlp, text, label=label)
    return nlp(without_links(doc)).ents[0]


def candidates(nlp, text, label="THING"):
    return [candidate.kb_id for candidate in linked(nlp, text, label)._.arbo.candidates]


def test_match_types_restricts_candidates():
    nlp = build(retriever={"match_types": True})
    linker = nlp.get_pipe("arbo_linker")
    assert linked(nlp, TEXT, "PLACE").kb_id_ == "river"
    assert linked(nlp, TEXT, "COMPANY").kb_id_ == "shop"
    assert set(candidates(nlp, TEXT, "COMPANY")) == {"shop", "maker", "car"}
    warn_once.cache_clear()
    with pytest.warns(UserWarning, match="W547.*'THING'.*COMPANY"):
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
    kb = again.get_pipe("arbo_linker").kb
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
    with pytest.warns(UserWarning, match=rf"W504.*{file.name}.*checksum"):
        again = spacy.load(tmp_path / "model")
    assert candidates(again, TEXT)[:5] == expected
