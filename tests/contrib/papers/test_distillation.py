"""Students of trained pipelines: losses against finite differences, training, and bad input."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from thinc.api import fix_random_seed

from spacy_arbo_el.contrib.papers.distillation import (
    LOSSES,
    TARGETS,
    DistillationSettings,
    check_student,
    distill,
    mention_lessons,
    name_lessons,
)
from spacy_arbo_el.contrib.papers.ngrams.towers import build_ngram_encoder
from spacy_arbo_el.corpora.names import spans_to_read
from spacy_arbo_el.encoders.dual import DualEncoder
from spacy_arbo_el.linker import find_linker

from ...commands import run
from ...encoders import numpy_tower  # noqa: F401  registers the architecture
from ...floats import assert_same_vectors
from ...linker.conftest import build
from ...linker.world import DEV, TRAIN, annotated, parse, without_links

WIDTH = 24
TEACHER = {
    "model": {"mention": {"@architectures": "test.HashedEncoder.v1", "width": WIDTH}},
    "retriever": {
        "@misc": "spacy-arbo-el.Retriever.v1",
        "verbalization": {"@misc": "spacy-arbo-el.Names.v1"},
    },
}
SIZES = {"vectors": 32, "rows": 4096, "hidden": 48, "subwords": 4}
QUICK = {"steps": 60, "batch": 16, "rate": 0.01, "held_out": 0.2}


def student_of(width=WIDTH):
    fix_random_seed(0)
    model = build_ngram_encoder(width=width, **SIZES)
    model.initialize()
    return model


@pytest.fixture(scope="module")
def teacher():
    fix_random_seed(0)
    return build(**TEACHER)


def spans_of(nlp, docs):
    linker = find_linker(nlp)
    return spans_to_read(docs, nlp, linker.kb.entities, linker.mentions.getter)


def documents(nlp, texts=(*TRAIN, *DEV)):
    """The spans of documents without mentions."""
    return spans_of(nlp, [nlp.make_doc(parse(text)[0]) for text in texts])


@pytest.mark.parametrize("target", TARGETS)
@given(st.integers(0, 10_000))
def test_gradients_of_the_losses_equal_finite_differences(target, seed):
    rng = np.random.default_rng(seed)
    vectors, direction = rng.normal(size=(2, 5, 4))
    taught = rng.normal(size=(5, 4 if target == "vectors" else 7))
    _, gradient = LOSSES[target](vectors, taught)
    step = 1e-5
    ends = [LOSSES[target](vectors + sign * step * direction, taught)[0] for sign in (1, -1)]
    numeric = (ends[0] - ends[1]) / (2 * step)
    assert numeric == pytest.approx(float((gradient * direction).sum()), rel=1e-4, abs=1e-6)


# The vectors of words that are held out can be learned from nothing: the gain is in the others.
@pytest.mark.parametrize(
    "target, width, gain", [("vectors", WIDTH, 0.1), ("similarities", 16, 0.0)]
)
def test_student_comes_nearer_to_its_teacher(teacher, target, width, gain):
    student = student_of(width)
    losses = []
    report = distill(
        find_linker(teacher),
        student,
        documents(teacher),
        DistillationSettings(target, **QUICK),
        lambda step, loss: losses.append(loss),
    )
    assert len(losses) == 60 and np.mean(losses[-10:]) < 0.5 * np.mean(losses[:10])
    assert report.after > report.before + gain
    assert report.names > 10 and report.mentions > 10


def test_lessons_are_the_vectors_of_the_teacher(teacher):
    linker, student = find_linker(teacher), DualEncoder(student_of())
    names = name_lessons(linker, student)
    texts = linker.kb.vectors.distinct_texts(linker.datastore.settings.verbalization)
    assert len(names.inputs) == len(texts) == len(names.vectors)
    assert np.allclose(np.linalg.norm(names.vectors, axis=1), 1, atol=1e-5)
    docs = [without_links(annotated(teacher, text)) for text in TRAIN]
    settings = DistillationSettings(**QUICK)
    mentions = mention_lessons(linker, student, spans_of(teacher, docs), settings)
    encoded = linker.stages.encode(linker.reader.read_docs(docs)).encoded
    assert_same_vectors(mentions.vectors, encoded)
    limited = DistillationSettings(mentions=3)
    assert len(mention_lessons(linker, student, spans_of(teacher, docs), limited).inputs) == 3


def test_names_are_sought_in_documents_without_mentions(teacher):
    linker, student = find_linker(teacher), DualEncoder(student_of())
    settings = DistillationSettings()
    docs = [teacher.make_doc("An apple and quicksilver."), teacher.make_doc("Nothing of that")]
    mentions = mention_lessons(linker, student, spans_of(teacher, docs), settings)
    # Two names and as many drawn spans, and one drawn span where there is no name.
    assert len(mentions.inputs) == 2 + 2 + 1


def test_teachers_and_students_that_do_not_fit_are_refused(teacher):
    linker, settings = find_linker(teacher), DistillationSettings(**QUICK)
    with pytest.raises(ValueError, match=f"arbo-E855.*width 16.*{WIDTH}"):
        distill(linker, student_of(16), documents(teacher), settings)
    for texts in ([], ["   "], ["1 2 3"]):
        docs = [teacher.make_doc(text) for text in texts]
        with pytest.raises(ValueError, match="arbo-E856.*mentions"):
            distill(linker, student_of(), spans_of(teacher, docs), settings)
    nlp = build(entities=[], train=["nothing here"], **TEACHER)
    with pytest.raises(ValueError, match="arbo-E856.*names"):
        distill(find_linker(nlp), student_of(), documents(nlp), settings)
    with pytest.raises(ValueError, match="arbo-E857"):
        check_student(linker.model)


@pytest.mark.parametrize(
    "setting", [{"target": "else"}, {"steps": 0}, {"batch": 0}, {"rate": 0.0}, {"held_out": 1.0}]
)
def test_settings_are_checked(setting):
    with pytest.raises(ValueError, match="arbo-E751"):
        DistillationSettings(**setting)


CONFIG = """
[components.arbo_linker.model]
@architectures = "spacy-arbo-el.NgramEncoder.v1"
width = {width}
vectors = 32
rows = 4096
hidden = 48
subwords = 4
"""


def distilled(
    teacher, folder, config, texts="An apple.\nQuicksilver and the Amazon River.\n", code=0
):
    teacher.to_disk(folder / "teacher")
    (folder / "student.cfg").write_text("[components]\n\n[components.arbo_linker]\n" + config)
    (folder / "raw.txt").write_text(texts)
    options = ["-c", folder / "student.cfg", "-t", folder / "raw.txt", "-o", folder / "encoder"]
    return run("distill", folder / "teacher", *options, "--steps", 5, code=code)


def test_command_writes_an_encoder_that_a_config_can_start_from(teacher, tmp_path):
    assert "mean cosine" in distilled(teacher, tmp_path, CONFIG.format(width=WIDTH))
    read = build_ngram_encoder(width=WIDTH, **SIZES, start=str(tmp_path / "encoder"))
    read.initialize()
    assert DualEncoder(read).fingerprint != DualEncoder(student_of()).fingerprint


def test_command_says_what_is_wrong(teacher, tmp_path):
    assert "arbo-E855" in distilled(teacher, tmp_path, CONFIG.format(width=7), code=1)
    assert not (tmp_path / "encoder").exists()
    assert "arbo-E" in distilled(teacher, tmp_path, CONFIG.format(width=WIDTH), texts="", code=1)
