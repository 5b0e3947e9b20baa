"""docs/results.md is made from experiments/results.jsonl, by commands that exist."""

import re
import runpy
from pathlib import Path

import srsly

ROOT = Path(__file__).parents[2]
BUILD = runpy.run_path(str(ROOT / "docs" / "build_results.py"))
ROWS = list(srsly.read_jsonl(BUILD["ROWS"]))


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
        assert re.fullmatch(r"[0-9a-f]{7,}", row["commit"]) and row["seed"] is not None
        assert row["scores"] and set(row["scores"]) <= {*BUILD["HEADINGS"], "arbo_acc_95"}, row


def test_rows_are_those_of_the_code_at_hand_or_give_a_reason():
    assert not BUILD["outdated"](ROWS), "Measure them again, or say why they stand: kept"
    assert all(len(row["kept"]) > 20 for row in ROWS if "kept" in row)


def test_comments_and_docstrings_do_not_make_rows_old():
    statements = BUILD["statements"]
    one = b'"""Text."""\n\nx = 1\n\ndef f():\n    """Text.\n\n    More.\n    """\n    return "a"\n'
    other = b'"""Other."""\n# A comment.\nx = 1\ndef f():\n    return "a"\n'
    assert statements(one) == statements(other)
    assert statements(one) != statements(other.replace(b'"a"', b'"b"'))


def test_no_row_is_there_twice():
    names = [(row["table"], row["data"], row["row"]) for row in ROWS]
    assert len(names) == len(set(names))


def test_the_command_of_each_row_exists():
    project = srsly.read_yaml(ROOT / "experiments" / "project.yml")
    names = {*project["workflows"], *(command["name"] for command in project["commands"])}
    for command in {row["command"] for row in ROWS}:
        run = re.match(r"project run (\S+)", command)
        script = re.match(r"(?:python )?(?:\.\./)?(benchmarks/\w+\.py)", command)
        assert run[1] in names if run else (ROOT / script[1]).exists(), command
        for name in re.findall(r"--vars\.(\w+)", command):
            assert name in project["vars"], command


def test_scores_of_a_metrics_file_replace_the_rows_of_the_same_name(tmp_path):
    srsly.write_json(tmp_path / "m.json", {"a": {"arbo_acc": 0.51234, "x": 1}, "b": {"ACC": 7.0}})
    new = BUILD["rows_of"](tmp_path / "m.json", {"table": "nel", "data": "D"}, {"a": "one"})
    assert [(row["row"], row["scores"]) for row in new] == [("one", {"arbo_acc": 0.5123})]
    old = [{"table": "nel", "data": "D", "row": name, "scores": {}} for name in ("one", "two")]
    assert [row["row"] for row in BUILD["add"](old, new)] == ["one", "two"] and old[0] == new[0]
