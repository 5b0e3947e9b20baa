"""Write docs/papers.md: the claims of the five papers beside our figures.

    python docs/build_papers.py

The claims are those of experiments/papers.jsonl.
"""

from collections import Counter
from itertools import groupby
from pathlib import Path

import srsly

ROOT = Path(__file__).parents[1]
CLAIMS = ROOT / "experiments" / "papers.jsonl"
PAGE = ROOT / "docs" / "papers.md"
VERDICTS = ("same", "reversed", "not shown")
# What claims without a commit were measured at.
OLD = "30ad24b"
COMMANDS = {
    "workflow": "project run {}",
    "script": "{}",
    "config": "no workflow, system {}",
}
INTRODUCTION = """# The five papers

What became of each claim: the paper's figure, ours, and whether ours has the same sign. Of {count}
claims, {same} have the same sign, some of them weakly, {reversed} are reversed, and {missing} were
not shown here.

Ours are figures of dev sets, with the bundled encoder of 22 million parameters and one seed, on two
cores; the papers train larger encoders on far more data. *At* is the commit that was measured. The
last column is the workflow of `experiments/project.yml` or the script in `experiments/` that
measures the claim, or the system that a new workflow would take. This page is made by
`python docs/build_papers.py`.
"""


def page(claims: list[dict[str, str]]) -> str:
    """The page, one table for each paper."""
    counts = Counter(claim["verdict"] for claim in claims)
    same, wrong, missing = (counts[verdict] for verdict in VERDICTS)
    total = {"count": len(claims), "same": same, "reversed": wrong, "missing": missing}
    parts = [INTRODUCTION.format(**total)]
    for paper, rows in groupby(claims, key=lambda claim: claim["paper"]):
        lines = [f"## {paper[0].upper()}{paper[1:]}", ""]
        lines += [
            "| claim | paper | ours | sign | | at | run |",
            "|---|---|---|---|---|---|---|",
        ]
        for row in rows:
            kind, name = row["run"].split(" ", 1)
            cells = [row[key] or "–" for key in ("claim", "theirs", "ours", "verdict")]
            at = f"`{row.get('commit', OLD)}`" if row["ours"] else ""
            cells += [row["why"], at, f"`{COMMANDS[kind].format(name)}`"]
            lines.append("| " + " | ".join(cells) + " |")
        parts.append("\n".join(lines) + "\n")
    return "\n".join(parts)


if __name__ == "__main__":
    PAGE.write_text(page(list(srsly.read_jsonl(CLAIMS))), encoding="utf8")
