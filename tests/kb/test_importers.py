"""The reader and the writer of entities in JSONL."""

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_arbo_el.kb.entity import Entity
from spacy_arbo_el.kb.importers import read_entities_jsonl, write_entities_jsonl


@pytest.fixture
def write(tmp_path):
    def write(content, name="kb.jsonl"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode("utf8"))
        return path

    return write


@pytest.fixture(scope="module")
def data_dir():
    default = Path(__file__).parents[2].parent / "shared" / "data"
    folder = Path(os.environ.get("ARBO_DATA_DIR", default))
    if not folder.is_dir():
        pytest.skip("no real data here: set ARBO_DATA_DIR to its folder")
    return folder


def test_lines_of_jsonl_become_entities(write):
    full = {
        "id": "Q7259",
        "title": "Ada Lovelace",
        "description": "Mathematician.",
        "aliases": ["Ada", "Countess of Lovelace"],
        "types": ["Person"],
        "born": 1815,
        "meta": {"source": "demo"},
    }
    first, second = read_entities_jsonl(write(json.dumps(full) + '\n\n{"id": "Q1"}\n'))
    assert first == Entity(
        id="Q7259",
        title="Ada Lovelace",
        description="Mathematician.",
        aliases=("Ada", "Countess of Lovelace"),
        types=("Person",),
        meta={"source": "demo", "born": 1815},
    )
    assert second == Entity("Q1")


BROKEN = [
    ("{", "no valid JSON"),
    ("[]", "expected a JSON object, got a list"),
    ("{}", "'id' must be a non-empty string and not 'NIL' (got None)"),
    ('{"id": 7.5}', "(got 7.5)"),
    ('{"id": " "}', "(got ' ')"),
    ('{"id": "NIL"}', "(got 'NIL')"),
    ('{"id": "A|B"}', "must not hold '|'"),
    ('{"id": "\\ud83d"}', "'id' must be"),
    ('{"id": "Q2", "title": "\\ud83d"}', "'title' of 'Q2' must be a string of whole characters"),
    ('{"id": "Q2", "description": 3}', "'description' of 'Q2' must be a string"),
    ('{"id": "Q2", "aliases": ["Ada", 1]}', "'aliases' of 'Q2' must be a list of strings"),
    ('{"id": "Q2", "types": {}}', "'types' of 'Q2' must be a list of strings"),
    ('{"id": "Q2", "meta": []}', "'meta' of 'Q2' must be an object"),
    ('{"id": "Q1"}', "the entity id 'Q1' was used before, in line 1"),
]


@pytest.mark.parametrize(("line", "problem"), BROKEN, ids=[line for line, _ in BROKEN])
def test_an_invalid_line_of_jsonl_is_named(write, line, problem):
    path = write(f'{{"id": "Q1"}}\n\n{line}\n')
    entities = read_entities_jsonl(path)
    assert next(entities).id == "Q1"
    with pytest.raises(ValueError) as caught:
        next(entities)
    assert f"{path}, line 3: " in str(caught.value)
    assert problem in str(caught.value)


TEXT = st.text(max_size=12)


def test_a_failed_write_leaves_the_old_file(write):
    path = write("old")

    def entities():
        yield Entity("Q1")
        raise RuntimeError("midway")

    with pytest.raises(RuntimeError, match="midway"):
        write_entities_jsonl(entities(), path)
    assert path.read_text() == "old"
    assert list(path.parent.iterdir()) == [path]


@given(st.binary(max_size=40) | st.lists(TEXT, max_size=4).map(lambda x: "\n".join(x).encode()))
def test_any_bytes_give_entities_or_an_error_with_file_and_line(tmp_path, content):
    path = tmp_path / "fuzz"
    path.write_bytes(content)
    try:
        assert all(entity.id for entity in read_entities_jsonl(path))
    except ValueError as err:
        assert f"{path}, line " in str(err)
