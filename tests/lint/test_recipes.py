"""The recipes of docs/knowledge_base.md, on small made-up files."""

import bz2
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from spacy_arbo_el.kb.knowledge_base import ArboKB

from ..commands import run

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "knowledge_base.md").read_text(encoding="utf8")
LINES = PAGE.partition("Recipes for")[2].partition("```\n")[2].partition("```")[0].splitlines()
READER = re.search(r"```python\n(.*?mesh.*?)```", PAGE, re.S)[1]
GEONAMES = "7\tVeil\tVeil\tVeyl,Vail\t1.5\t2.5\tP\tPPL\tXX\t\t1\t\t\t\t900\t\t12\tX/Y\t2025-01-01\n"
ESCO = (
    "conceptType,conceptUri,preferredLabel,altLabels,description\n"
    'Occupation,x:1,baker,"bread maker\npastry baker","Bakes, daily."\n'
)
TURTLE = """@prefix skos: <http://www.w3.org/2004/02/skos/core#> .
<x:1> a skos:Concept ; skos:prefLabel "baker"@en ; skos:altLabel "bread maker"@en ."""
CONCEPT = (
    "concept_id\tconcept_name\tdomain_id\n"
    '1\tblue fever\tCondition\n2\t"blue" syndrome\tCondition\n3\t6" bandage\tDevice\n'
)
SYNONYM = "concept_id\tconcept_synonym_name\tlanguage_concept_id\n1\tfever, blue\t4180186\n"
MESH = """*NEWRECORD
RECTYPE = D
MH = Blue Fever
PRINT ENTRY = Azure Fever|T047|EQV
ENTRY = Fever, Blue|T047|NON
MS = A fever.
ST = T047
UI = D1

*NEWRECORD
RECTYPE = Q
SH = abnormalities
UI = Q1
"""
CTD = "# a comment\nBlue Fever\tMESH:D1\t\tA fever.\t\t\t\tAzure Fever|Fever, Blue\t\n"
ITEM = {
    "id": "Q1",
    "labels": {"en": {"value": "Ada"}},
    "claims": {"P31": [{"mainsnak": {"datavalue": {"value": {"id": "Q5"}}}}]},
}
SNOMED = (
    "id\tactive\tconceptId\tlanguageCode\tterm\n"
    "1\t1\t11\ten\tblue fever\n2\t1\t11\ten\tazure fever\n"
    "3\t0\t11\ten\tmarsh cough\n4\t1\t11\tes\tfiebre azul\n"
)
FILES = {
    "sct2_Description_Snapshot.txt": (SNOMED, {"11": ("blue fever", "azure fever")}),
    "cities15000.txt": (GEONAMES, {"7": ("Veil", "Veyl", "Vail")}),
    "occupations_en.csv": (ESCO, {"x:1": ("baker", "bread maker", "pastry baker")}),
    "esco.ttl": (TURTLE, {"x:1": ("baker", "bread maker")}),
    "CONCEPT.csv": (
        CONCEPT,
        {"1": ("blue fever",), "2": ('"blue" syndrome',), "3": ('6" bandage',)},
    ),
    "names.tsv": (
        "",
        {"1": ("blue fever", "fever, blue"), "2": ('"blue" syndrome',), "3": ('6" bandage',)},
    ),
    "d2025.bin": (MESH, {"D1": ("Blue Fever", "Azure Fever", "Fever, Blue")}),
    "CTD_diseases.tsv": (CTD, {"D1": ("Blue Fever", "Azure Fever", "Fever, Blue")}),
    "latest-all.json.bz2": (bz2.compress(json.dumps(ITEM).encode()), {"Q1": ("Ada",)}),
    "Q42.json": (json.dumps({"entities": {"Q1": ITEM}}), {"Q1": ("Ada",)}),
    "train_dictionary.txt": (
        "D1|D2||blue fever\nD1||azure fever\n",
        {"D1": ("blue fever", "azure fever")},
    ),
}
COMMANDS = [line.split()[6:] for line in LINES if line.startswith("python -m spacy arbo kb")]


@pytest.mark.parametrize("arguments", COMMANDS, ids=[command[0] for command in COMMANDS])
def test_recipes(arguments, tmp_path, monkeypatch):
    source = arguments[0]
    if source == "META":
        pytest.skip("read in test_formats.py")
    if source.endswith(".ttl"):
        pytest.importorskip("rdflib")
    monkeypatch.chdir(tmp_path)
    for name, (content, _) in FILES.items():
        Path(name).write_bytes(content if isinstance(content, bytes) else content.encode())
    Path("CONCEPT_SYNONYM.csv").write_text(SYNONYM)
    Path("readers.py").write_text(READER)
    Path("experiments").mkdir()
    shutil.copy(ROOT / "experiments" / "readers.py", "experiments")
    for line in LINES:
        if line.startswith("cut "):
            subprocess.run(line, shell=True, check=True)
    options = [argument.strip('"') for argument in arguments]
    run("kb", "build", *options)
    kb = ArboKB.for_reading(tmp_path / "kb")
    assert {entity.id: tuple(entity.names) for entity in kb} == FILES[source][1]
