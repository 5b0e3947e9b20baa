"""Knowledge bases that version 2 of the format has saved."""

import json

import numpy as np
import pytest

from spacy_arbo_el.kb.database import Database
from spacy_arbo_el.kb.folder import state
from spacy_arbo_el.kb.knowledge_base import ArboKB
from spacy_arbo_el.kb.upgrade import outdated, upgrade
from spacy_arbo_el.kb.vectors import HEADER
from spacy_arbo_el.kb.verification import verify

from .test_folder import build


@pytest.fixture
def old(tmp_path):
    """A knowledge base as version 2 wrote it, in a pipeline, and what it holds."""
    path = build(tmp_path / "model" / "linker" / "kb", 8)
    kb = ArboKB.for_reading(path)
    expected = list(kb), kb.rows.array(), kb.vectors.owners(), state(path)
    (path / "owners-1.bin").write_bytes(
        bytes(HEADER) + kb.vectors.owners().tobytes() + b"more rows"
    )
    (path / "manifest.json").write_text(json.dumps({"version": 2}))
    database = Database(path / "entities.sqlite")
    database.rows("DROP TABLE owner")
    database.rows("CREATE TABLE block (number INTEGER PRIMARY KEY, vectors, owners)")
    database.rows("DELETE FROM manifest WHERE key = 'crc'")
    database.set(version=2)
    database.close()
    return path, expected


def test_an_older_knowledge_base_is_named_with_the_command_and_upgraded(old):
    path, (entities, vectors, owners, identity) = old
    with pytest.raises(ValueError, match=r"E044.*arbo kb upgrade .*linker/kb"):
        ArboKB.for_reading(path)
    assert outdated(path) == outdated(path.parent.parent) == [path]
    upgrade(path)
    assert verify(path) == [] and outdated(path) == [] and state(path) == identity
    kb = ArboKB.for_reading(path)
    assert list(kb) == entities
    np.testing.assert_array_equal(kb.rows.array(), vectors)
    np.testing.assert_array_equal(kb.vectors.owners(), owners)


@pytest.mark.parametrize("name", ["owners-1.bin", "vectors-1.bin", "entities.sqlite"])
def test_a_damaged_one_stays_as_it_was(old, name):
    path, _ = old
    data = (path / name).read_bytes()[:HEADER]
    (path / name).write_bytes(data)
    with pytest.raises((ValueError, OSError), match=r"^\[arbo-E0"):
        upgrade(path)
    assert (path / name).read_bytes() == data and (path / "manifest.json").exists()
