"""docs/papers.md: each claim has a verdict and a command that exists."""

import runpy
from collections import Counter
from pathlib import Path

import pytest
import srsly

from spacy_arbo_el.config_sources import SYSTEMS

ROOT = Path(__file__).parents[2]
BUILD = runpy.run_path(str(ROOT / "docs" / "build_papers.py"))
CLAIMS = list(srsly.read_jsonl(BUILD["CLAIMS"]))


def test_the_page_is_up_to_date():
    assert BUILD["PAGE"].read_text(encoding="utf8") == BUILD["page"](CLAIMS), (
        "Run python docs/build_papers.py"
    )


def test_each_paper_has_claims_and_a_row_for_each():
    assert {claim["paper"] for claim in CLAIMS} >= {"DEER", "BioCoM", "VERBALIZED", "MOLEMAN"}
    rows = [line for line in BUILD["page"](CLAIMS).splitlines() if line.startswith("| ")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in rows]
    verdicts = Counter(row[3] for row in cells if row[3] != "sign")
    assert verdicts == Counter(claim["verdict"] for claim in CLAIMS)
    assert all(len(row) == 7 for row in cells)


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim["claim"])
def test_a_claim_has_a_verdict_and_what_measures_it(claim):
    assert claim["verdict"] in BUILD["VERDICTS"]
    assert bool(claim["ours"]) == (claim["verdict"] != "not shown")
    kind, name = claim["run"].split(" ", 1)
    project = srsly.read_yaml(ROOT / "experiments" / "project.yml")
    if kind == "workflow":
        assert name in project["workflows"]
    elif kind == "script":
        assert (ROOT / "experiments" / name).exists()
    else:
        assert kind == "config" and name in SYSTEMS
