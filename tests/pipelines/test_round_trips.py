"""Round trips of pipelines with each kind of encoder: batches, folder, bytes, processes."""

import copy

import pytest
import spacy
from hypothesis import HealthCheck, example, given, settings
from thinc.api import Adam

from spacy_arbo_el import Entity, find_linker, load_pipeline, save_pipeline

from ..devices import needs_fork
from ..kb.test_round_trips import ODD, SOME, addable
from ..linker.conftest import NGRAMS, NGRAMS_OF_FIELDS, PLAIN, build
from ..linker.world import DEV, TRAIN, annotated, examples, links_of, unlinked_docs

LONG = f"{DEV[0]} {'word ' * 60} {DEV[1]} {' and more '.join(DEV)}"
TEXTS = [*DEV, *TRAIN, LONG, "Nothing here."]
TINY = {"window": 32, "precision": "float32"}
SETTINGS = {
    "words": {},
    "n-grams": NGRAMS_OF_FIELDS,
    "two vectors": {
        "model": {
            "mention": {
                "@architectures": "spacy-arbo-el.TransformerEncoder.v1",
                "pooling": {"@misc": "spacy-arbo-el.FirstLastPooling.v1"},
                **TINY,
            }
        }
    },
    "documents": {
        "model": {
            "mention": {
                "@architectures": "spacy-arbo-el.DocumentEncoder.v1",
                "pooling": {"@misc": "spacy-arbo-el.SpanMeanPooling.v1"},
                "precision": "float32",
                "passage": 40,
                "text": 32,
            }
        }
    },
}


@pytest.fixture(scope="module", params=SETTINGS)
def world(request, tiny_bert):
    """A trained pipeline, the settings of its linker, and its links. Don't change it."""
    settings = copy.deepcopy(SETTINGS[request.param])
    tower = settings.get("model", {}).get("mention")
    if tower is not None:
        tower["name"] = str(tiny_bert)
    nlp = build(**settings)
    assert nlp.update(examples(nlp, TRAIN), sgd=Adam(1e-4))["arbo_linker"] > 0
    expected = links_of(map(nlp, unlinked_docs(nlp, TEXTS)))
    assert any(kb_id != "NIL" for doc in expected for kb_id, _ in doc)
    return nlp, settings, expected


@pytest.mark.parametrize("batch_size", [1, 3, 64])
def test_pipe_equals_calls(world, batch_size):
    nlp, _, expected = world
    assert links_of(nlp.pipe(unlinked_docs(nlp, TEXTS), batch_size=batch_size)) == expected


def test_folder_and_bytes(world, tmp_path):
    nlp, settings, expected = world
    other = build(train=[], **settings)
    find_linker(other).from_bytes(find_linker(nlp).to_bytes())
    assert links_of(other.pipe(unlinked_docs(other, TEXTS))) == expected
    path, again = tmp_path / "model", nlp
    for save in (type(nlp).to_disk, save_pipeline):
        save(again, path)
        again = load_pipeline(path)
        assert links_of(again.pipe(unlinked_docs(again, TEXTS))) == expected
    assert links_of(spacy.load(path).pipe(unlinked_docs(again, TEXTS))) == expected


@pytest.mark.slow
@needs_fork
def test_two_processes(world):
    nlp, _, expected = world
    assert links_of(nlp.pipe(unlinked_docs(nlp, TEXTS), n_process=2, batch_size=3)) == expected


UNREADABLE = [Entity("sony", "ソニーグループ", aliases=["Sony"]), Entity("odd", "🍎", aliases=ODD)]


@pytest.fixture(scope="module", params=["transformer", "ngrams"])
def odd_nlp(request, tiny_bert):
    """A pipeline with exemplars, a correction and new entities that the encoder can't read."""
    tower = {"name": str(tiny_bert), "window": 24, "precision": "float32"}
    model = {"mention": tower} if request.param == "transformer" else NGRAMS
    nlp = build(UNREADABLE, ["They saw [☢|odd] and [Sony|sony]."], model=model, threshold=0.99)
    linker = find_linker(nlp)
    linker.feedback.learn(annotated(nlp, "They saw [ጎንደር|x].").ents[0], "odd")
    # The second is all of its text.
    docs = [annotated(nlp, text) for text in ("They met [☢☢|x].", "[🎉🎉|x]")]
    linker.new_entities = linker.corpus.discover(docs)
    assert len(linker.new_entities)
    assert len(linker.exemplars) == 3
    return nlp


def kept(nlp):
    linker = find_linker(nlp)
    parts = linker.exemplars, linker.stages.corrections, linker.new_entities
    return list(linker.kb), linker.kb.rows.owners.tolist(), [part.to_bytes() for part in parts]


@given(SOME)
@example(UNREADABLE)
@settings(max_examples=3, suppress_health_check=list(HealthCheck))
def test_pipelines_come_back_from_folders_and_bytes(odd_nlp, tmp_path_factory, entities):
    folder, linker = tmp_path_factory.mktemp("pipeline"), find_linker(odd_nlp)
    linker.set_kb(addable(entities)[0])
    linker.refresh()
    save_pipeline(odd_nlp, folder / "saved")
    odd_nlp.to_disk(folder / "to_disk")
    again = spacy.blank("xx")
    config = {**PLAIN, "model": odd_nlp.config["components"]["arbo_linker"]["model"]}
    again.add_pipe("arbo_linker", config=config).from_bytes(linker.to_bytes())
    for nlp in (load_pipeline(folder / "saved"), spacy.load(folder / "to_disk"), again):
        assert kept(nlp) == kept(odd_nlp)
