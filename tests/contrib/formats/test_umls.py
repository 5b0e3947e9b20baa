"""UMLS is read from its files as the distribution packs them."""

import bz2
import gzip
from pathlib import Path

import pytest

from spacy_arbo_el.contrib.formats.umls import UmlsReader

SUBSET = Path(__file__).parents[2] / "data" / "entities" / "umls" / "subset"


@pytest.mark.parametrize("packed", ["MRCONSO", "MRDEF", "MRSTY", ""])
@pytest.mark.parametrize("end, pack", [(".gz", gzip.compress), (".BZ2", bz2.compress)])
def test_files_may_be_packed_and_in_a_folder_inside(tmp_path, packed, end, pack):
    (tmp_path / "META").mkdir()
    for file in SUBSET.iterdir():
        is_packed = file.stem == packed or not packed
        data = file.read_bytes()
        name = f"{file.name}{end}" if is_packed else file.name.lower()
        (tmp_path / "META" / name).write_bytes(pack(data) if is_packed else data)
    expected = list(UmlsReader().read(SUBSET))
    assert list(UmlsReader().read(tmp_path)) == expected
    (names,) = (path for path in tmp_path.rglob("*") if path.name.lower().startswith("mrconso"))
    assert list(UmlsReader().read(names)) == expected
