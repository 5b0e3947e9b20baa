"""UMLS is read from its files as the distribution packs them."""

import bz2
import gzip
from pathlib import Path

from spacy_arbo_el.contrib.formats.umls import UmlsReader
from spacy_arbo_el.kb.importers import ImportReport

SUBSET = Path(__file__).parents[2] / "data" / "entities" / "umls" / "subset"


def concepts(path):
    return list(UmlsReader().read(path, ImportReport()))


def test_files_may_be_packed_and_in_a_folder_inside(tmp_path):
    (tmp_path / "META").mkdir()
    ways = [(".gz", gzip.compress), (".BZ2", bz2.compress), ("", bytes)]
    for file, (end, pack) in zip(sorted(SUBSET.iterdir()), ways, strict=True):
        (tmp_path / "META" / f"{file.name.lower()}{end}").write_bytes(pack(file.read_bytes()))
    expected = concepts(SUBSET)
    assert concepts(tmp_path) == expected
    assert concepts(tmp_path / "META" / "mrconso.rrf.gz") == expected


def test_files_of_folders_further_inside_are_none_of_the_folder(tmp_path):
    for folder in (".", "META/2019"):
        (tmp_path / folder).mkdir(parents=True, exist_ok=True)
        for file in SUBSET.iterdir():
            (tmp_path / folder / file.name).write_bytes(file.read_bytes())
    (tmp_path / "META/2019/MRCONSO.RRF").write_bytes(b"")
    (tmp_path / "MRDEF.RRF").unlink()
    entities = concepts(tmp_path)
    assert len(entities) == len(concepts(SUBSET))
    assert not any(entity.description for entity in entities)
