"""The small inputs that once failed, where their folder is present."""

import os
import runpy
from pathlib import Path

import pytest

from spacy_arbo_el.corpora import convert
from spacy_arbo_el.corpora.read import read
from spacy_arbo_el.kb import importers
from spacy_arbo_el.storage.formats import entity_formats

DATA = Path(__file__).parents[3] / "shared" / "data"
CASES = Path(os.environ.get("ARBO_DATA_DIR", DATA)).resolve().parent / "cases"

# What the output of each has; the issue on unseen entities has the others.
EXPECTED = {
    "04_other_keys_no_names": ["('Alder Bank', 'C1', ", "('Birch Trust', 'C2', "],
    "08_symlinked_files": ["symbolic link", "cp -rL"],
    "09_link_edited_afterwards": ["[('NEW', 'OTHER')]"],
    "12_readers": [
        "('Q2', 'Port Veil', ('PV',))",
        "('C01', 'kidney failure', ('failure of kidneys',))",
        "set_kb(null_fields.jsonl): [Entity('1', 'Alpha')]",
        "set_kb(bom.csv): [Entity('1', 'Alpha', aliases=['A', 'AL'])",
        "noabstract.pubtator: [AnnotatedText(id='1', text='Blue fever.'",
        "blanks.pubtator: [AnnotatedText(id='1'",
    ],
}

pytestmark = [
    pytest.mark.slow,
    pytest.mark.bundled,
    pytest.mark.skipif(not CASES.is_dir(), reason="the folder of the cases is not here"),
]


def as_function(reader):
    return lambda path, report, **options: reader(**options).read(path, report)


def run(name, monkeypatch):
    monkeypatch.chdir(CASES)
    monkeypatch.syspath_prepend(str(CASES))
    # A case was written when the function had this name, and readers were functions.
    monkeypatch.setattr(convert, "read_corpus", read, raising=False)
    readers = {name: as_function(reader) for name, reader in entity_formats.get_all().items()}
    monkeypatch.setattr(importers, "READERS", readers, raising=False)
    runpy.run_path(str(CASES / f"{name}.py"), run_name="__main__")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", EXPECTED)
def test_a_case_has_the_right_output(name, monkeypatch, capsys):
    run(name, monkeypatch)
    output = capsys.readouterr().out
    for expected in EXPECTED[name]:
        assert expected in output


@pytest.mark.filterwarnings("ignore")
def test_training_without_gold_ids_is_refused(monkeypatch):
    with pytest.raises(ValueError, match="E508"):
        run("05_training_without_gold_ids", monkeypatch)
