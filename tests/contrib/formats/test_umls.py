"""UMLS is read from its files as the distribution packs them."""

import gzip
from pathlib import Path

import pytest

from spacy_arbo_el.contrib.formats.umls import UmlsReader

SUBSET = Path(__file__).parents[2] / "data" / "entities" / "umls" / "subset"


@pytest.mark.parametrize("packed", ["MRCONSO", "MRDEF", "MRSTY", ""])
def test_files_may_be_packed_by_gzip(tmp_path, packed):
    for file in SUBSET.iterdir():
        is_packed = file.stem == packed or not packed
        data = file.read_bytes()
        name = f"{file.name}.gz" if is_packed else file.name
        (tmp_path / name).write_bytes(gzip.compress(data) if is_packed else data)
    assert list(UmlsReader().read(tmp_path)) == list(UmlsReader().read(SUBSET))
