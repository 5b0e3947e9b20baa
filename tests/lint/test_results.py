"""Pages that scripts make: docs/results.md, docs/reference.md and docs/papers.md."""

import re
import runpy
from collections import Counter
from pathlib import Path

import pytest
import srsly

from spacy_arbo_el.config_sources import SYSTEMS

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
BUILD, REFERENCE, PAPERS = (
    runpy.run_path(str(DOCS / f"build_{name}.py")) for name in ("results", "reference", "papers")
)
ROWS, CLAIMS = (list(srsly.read_jsonl(one)) for one in (BUILD["ROWS"], PAPERS["CLAIMS"]))
PROJECT = srsly.read_yaml(ROOT / "experiments" / "project.yml")


def test_the_page_is_up_to_date_and_short():
    text = BUILD["PAGE"].read_text(encoding="utf8")
    assert text == BUILD["page"](ROWS), "Run python docs/build_results.py"
    assert len(text.splitlines()) <= 360


def test_the_table_of_the_readme_is_up_to_date():
    text = BUILD["README"].read_text(encoding="utf8")
    assert text == BUILD["with_table"](text, BUILD["readme_table"](ROWS))
    assert text.count(BUILD["MARKS"][0]) == 1


def test_each_row_has_a_table_a_commit_a_seed_and_scores():
    for row in ROWS:
        assert row["table"] in BUILD["TABLES"], row
        assert re.fullmatch(r"[0-9a-f]{7,}", row["commit"])
        assert row["seed"] is not None
        assert row["scores"], row
        assert set(row["scores"]) <= {*BUILD["HEADINGS"], "arbo_acc_95"}, row


def test_the_command_of_each_row_exists():
    names = {*PROJECT["workflows"], *(command["name"] for command in PROJECT["commands"])}
    for command in {row["command"] for row in ROWS}:
        run = re.match(r"project run (\S+)", command)
        script = re.match(r"(?:python )?(?:\.\./)?(benchmarks/\w+\.py)", command)
        assert run[1] in names if run else (ROOT / script[1]).exists(), command
        for name in re.findall(r"--vars\.(\w+)", command):
            assert name in PROJECT["vars"], command


def test_scores_of_a_metrics_file_replace_the_rows_of_the_same_name(tmp_path):
    srsly.write_json(tmp_path / "m.json", {"a": {"arbo_acc": 0.51234, "x": 1}, "b": {"ACC": 7.0}})
    new = BUILD["rows_of"](tmp_path / "m.json", {"table": "nel", "data": "D"}, {"a": "one"})
    assert [(row["row"], row["scores"]) for row in new] == [("one", {"arbo_acc": 0.5123})]
    old = [{"table": "nel", "data": "D", "row": name, "scores": {}} for name in ("one", "two")]
    assert [row["row"] for row in BUILD["add"](old, new)] == ["one", "two"]
    assert old[0] == new[0]


def test_the_reference_is_up_to_date_and_describes_every_setting_of_every_part():
    page = REFERENCE["PAGE"].read_text(encoding="utf8")
    assert page == REFERENCE["reference"](), "Run: python docs/build_reference.py"
    parts = REFERENCE["parts"]()
    assert len(parts) >= 50
    for part in parts:
        assert page.count(f"\n### {part.name}\n") == 1, part.name
        missing = set(part.settings()) - set(part.descriptions())
        assert not missing, (part.name, missing)
        described = set(REFERENCE["parameters_in"](part.doc)[1])
        assert "[components" not in described, part.name
        assert part.doc, part.name


def test_the_page_of_papers_is_up_to_date_and_has_a_row_for_each_claim():
    page = PAPERS["PAGE"].read_text(encoding="utf8")
    assert page == PAPERS["page"](CLAIMS), "Run python docs/build_papers.py"
    assert {claim["paper"] for claim in CLAIMS} >= {"DEER", "BioCoM", "VERBALIZED", "MOLEMAN"}
    rows = [line for line in page.splitlines() if line.startswith("| ")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in rows]
    verdicts = Counter(row[3] for row in cells if row[3] != "sign")
    assert verdicts == Counter(claim["verdict"] for claim in CLAIMS)
    assert all(len(row) == 7 for row in cells)


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim["claim"])
def test_a_claim_has_a_verdict_and_what_measures_it(claim):
    assert claim["verdict"] in PAPERS["VERDICTS"]
    assert bool(claim["ours"]) == (claim["verdict"] != "not shown")
    kind, name = claim["run"].split(" ", 1)
    if kind == "workflow":
        assert name in PROJECT["workflows"]
    elif kind == "script":
        assert (ROOT / "experiments" / name).exists()
    else:
        assert kind == "config"
        assert name in SYSTEMS
