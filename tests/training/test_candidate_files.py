"""Files of candidates: what they keep, and what they are refused for."""

from dataclasses import replace

import pytest

from spacy_arbo_el.kb.entity import Entity
from spacy_arbo_el.linker import find_linker
from spacy_arbo_el.training.candidate_files import CandidatesFile, pipeline_fingerprint
from spacy_arbo_el.training.candidates import annotated_mentions, make_candidates
from spacy_arbo_el.training.resume import fingerprint_of_docs

from ..linker.conftest import build_tiny
from ..linker.world import docs_of


@pytest.fixture
def nlp(tiny_bert):
    return build_tiny(tiny_bert)


def written(nlp, path):
    """A file of candidates, and these candidates."""
    linker, docs = find_linker(nlp), docs_of(nlp)
    table = make_candidates(linker.stages, annotated_mentions(linker.stages, docs), 4)
    names = pipeline_fingerprint(linker, 4), fingerprint_of_docs(docs)
    file = CandidatesFile(path, linker.kb, *names)
    file.write(table)
    return file, table


def test_a_file_of_candidates_survives_and_is_refused_for_others(nlp, tmp_path):
    file, table = written(nlp, tmp_path / "candidates.bin")
    again = file.find()
    for name in ("candidates", "scores", "gold", "gold_scores", "recall"):
        assert (getattr(again, name) == getattr(table, name)).all()
    for changed, message in (
        ({"corpus": "another"}, "E876.*another corpus"),
        ({"pipeline": "another"}, "E876.*another pipeline"),
    ):
        with pytest.raises(ValueError, match=message):
            replace(file, **changed).find()


def test_they_are_made_once(nlp, tmp_path):
    file, table = written(nlp, tmp_path / "candidates.bin")
    file.path.unlink()
    assert file.find() is None
    made, lines = [], []
    for _ in range(2):
        found = file.find_or_make(lambda: made.append(1) or table, lines.append)
        assert (found.candidates == table.candidates).all()
    assert len(made) == 1 and lines == [f"Candidates from {file.path}"]


def test_the_fingerprint_of_a_pipeline_is_that_of_all_that_candidates_depend_on(nlp):
    linker = find_linker(nlp)
    first = pipeline_fingerprint(linker, 4)
    assert pipeline_fingerprint(linker, 8) != first
    before = linker.calibration
    linker.calibration = replace(before, entity=(3.0, -1.0))
    assert pipeline_fingerprint(linker, 4) != first
    linker.calibration = before
    assert pipeline_fingerprint(linker, 4) == first
    aliases = [f"alias {i}" for i in range(9)]
    linker.kb.add(Entity("new", "something new", aliases=aliases))
    added = pipeline_fingerprint(linker, 4)
    assert added != first
    linker.kb.update(Entity("new", "something new", aliases=[*aliases[:-1], "another"]))
    assert pipeline_fingerprint(linker, 4) not in (first, added), "the last alias counts"


@pytest.mark.parametrize("damage", ["cut", "flipped", "empty", "other"])
def test_a_damaged_file_of_candidates_is_refused(nlp, tmp_path, damage):
    file, _ = written(nlp, tmp_path / "candidates.bin")
    data = file.path.read_bytes()
    flipped = bytes([*data[:-9], data[-9] ^ 1, *data[-8:]])
    damaged = {"cut": data[: len(data) // 2], "flipped": flipped, "empty": b"", "other": b"x" * 99}
    file.path.write_bytes(damaged[damage])
    with pytest.raises(ValueError, match="E877"):
        file.find()
