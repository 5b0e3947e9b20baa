"""Whole pipelines come back with entities whose names the encoder can't read."""

import pytest
import spacy
from hypothesis import HealthCheck, example, given, settings

from spacy_arbo_el import load_pipeline, save_pipeline
from spacy_arbo_el.kb.entity import Entity
from spacy_arbo_el.kb.knowledge_base import ArboKB

from ..kb.test_round_trips import ODD, SOME, addable
from ..linker.conftest import NGRAMS, PLAIN, build
from ..linker.world import annotated

UNREADABLE = [Entity("sony", "ソニーグループ", aliases=["Sony"]), Entity("odd", "🍎", aliases=ODD)]


@pytest.fixture(scope="module", params=["transformer", "ngrams"])
def odd_nlp(request, tiny_bert):
    """A pipeline with exemplars, a correction and new entities that the encoder can't read."""
    tower = {"name": str(tiny_bert), "window": 24, "precision": "float32"}
    model = {"mention": tower} if request.param == "transformer" else NGRAMS
    nlp = build(UNREADABLE, ["They saw [☢|odd] and [Sony|sony]."], model=model, threshold=0.99)
    linker = nlp.get_pipe("arbo_linker")
    linker.feedback.learn(annotated(nlp, "They saw [ጎንደር|x].").ents[0], "odd")
    # The second is all of its text.
    docs = [annotated(nlp, text) for text in ("They met [☢☢|x].", "[🎉🎉|x]")]
    linker.new_entities = linker.corpus.discover(docs)
    assert len(linker.new_entities) and len(linker.exemplars) == 3
    return nlp


def kept(nlp):
    linker = nlp.get_pipe("arbo_linker")
    parts = linker.exemplars, linker.stages.corrections, linker.new_entities
    return list(linker.kb), linker.kb.vectors.owners().tolist(), [part.to_bytes() for part in parts]


@given(SOME)
@example(UNREADABLE)
@settings(max_examples=3, suppress_health_check=list(HealthCheck))
def test_pipelines_come_back_from_folders_and_bytes(odd_nlp, tmp_path_factory, entities):
    folder, linker = tmp_path_factory.mktemp("pipeline"), odd_nlp.get_pipe("arbo_linker")
    linker.set_kb(addable(entities)[0])
    linker.refresh()
    save_pipeline(odd_nlp, folder / "saved")
    odd_nlp.to_disk(folder / "to_disk")
    again = spacy.blank("xx")
    config = {**PLAIN, "model": odd_nlp.config["components"]["arbo_linker"]["model"]}
    again.add_pipe("arbo_linker", config=config).from_bytes(linker.to_bytes())
    for nlp in (load_pipeline(folder / "saved"), spacy.load(folder / "to_disk"), again):
        assert kept(nlp) == kept(odd_nlp)


def test_a_folder_that_a_linker_encodes_stays_readable(odd_nlp, tmp_path):
    ArboKB(odd_nlp.vocab, UNREADABLE).to_disk(tmp_path / "kb")
    linker = odd_nlp.get_pipe("arbo_linker")
    linker.set_kb(tmp_path / "kb")
    linker.refresh()
    assert ArboKB.for_reading(tmp_path / "kb").in_sync
    doc = odd_nlp.get_pipe("arbo_linker")(annotated(odd_nlp, "They saw [Sony|x] there."))
    assert doc.ents[0].kb_id_ == "sony"
