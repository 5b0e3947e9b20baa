"""Write docs/results.md and the table in README.md from experiments/results.jsonl.

    python docs/build_results.py
    python docs/build_results.py add METRICS.json TABLE DATA COMMAND [KEY=LABEL ...]

``add`` takes a file that ``arbo evaluate --output`` or ``benchmarks/peers.py --output`` wrote at
HEAD and replaces the rows of the same names. KEY=LABEL selects rows of the file and names them.
A row names the commit that was measured. The first table is made of rows of the others.
"""

import argparse
import subprocess
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import srsly

ROOT = Path(__file__).parents[1]
ROWS = ROOT / "experiments" / "results.jsonl"
PAGE = ROOT / "docs" / "results.md"
README = ROOT / "README.md"
MARKS = ("<!-- Made by docs/build_results.py. -->\n", "<!-- End. -->\n")

Row = dict[str, Any]

# Headings of scores, in the order of columns. Shares are printed in percent.
SHARES = {
    "arbo_acc": "accuracy",
    "arbo_acc_new_strings": "new strings",
    "arbo_acc_namesakes": "namesakes",
    "arbo_acc_seen": "seen",
    "arbo_acc_unseen": "unseen",
    "arbo_balanced_acc": "balanced",
    "arbo_recall_at_1": "R@1",
    "arbo_recall_at_8": "R@8",
    "arbo_recall_at_16": "R@16",
    "arbo_recall_at_64": "R@64",
    "arbo_recall_at_100": "R@100",
    "arbo_nil_f": "NIL F1",
    "arbo_calibration_error": "ECE",
    "first": "R@1",
    "decided_before": "accuracy, before",
    "decided_after": "accuracy, after",
    "ece_before": "ECE, before",
    "ece_after": "ECE, after",
    "present": "in the list",
    "estimate": "estimated",
    "ari": "ARI, all",
    "b3": "B³, all",
    "ari_unseen": "ARI, unseen",
    "b3_unseen": "B³, unseen",
    "before": "R@1 before",
    "fitted": "fitted",
    "trained": "trained",
    "averaged": "averaged",
    "fitted_unseen": "fitted, unseen",
    "trained_unseen": "trained, unseen",
}
# Paired differences of shares: the mean, and the ends of the interval.
DIFFERENCES = {
    "trained_less_before": "trained less before",
    "averaged_less_trained": "averaged less trained",
    "trained_less_fitted": "trained less fitted",
    "trained_less_fitted_unseen": "trained less fitted, unseen",
}
# Scores of benchmarks/peers.py, in its units.
MEASURES = {
    "ACC": "R@1",
    "NEW": "R@1, new strings",
    "SAME": "R@1, namesakes",
    "m/s": "mentions/s",
    "MB": "MB",
    "FIRST": "first link, s",
    "KB": "encode the names, s",
    "P50": "a document, ms",
    "ms": "ms a query",
}
HEADINGS = {**MEASURES, **SHARES, **DIFFERENCES}
SPEED = ("ACC", "NEW", "SAME", "m/s", "MB", "FIRST")
# The corpus whose namesakes the README shows.
NAMESAKES = "tweeki"

INTRODUCTION = """# Results

Dev sets of public corpora, with the mentions given, the bundled encoder (all-MiniLM-L6-v2, 22
million parameters), and one seed. Shares are in percent.

- *Accuracy* is that of links as decided, with the threshold: a mention is right if its link is one
  of the gold ids, or NIL where the gold is NIL. The interval holds 95 % of bootstrap samples of the
  documents.
- *New strings* are mentions whose surface form is no training mention's: the column to compare
  systems by. *Namesakes* are mentions that are a name of several entities. *Seen* and *unseen* are
  mentions of entities with and without a training mention; *balanced* is the mean of the two.
- *R@k* is the share of mentions whose entity is among the first k candidates, at whatever
  probability; R@1 that of right first candidates. *ECE* is the expected calibration error.

Commands run in `experiments/`, see its [README](../experiments/README.md). `NCBI`, `BC5CDR` (its
diseases) and the CRAFT rows use the dictionaries that `project.yml` names. *Commit* is the
code that was measured. [What was tried](tried.md) and is not in use has a page of its own.
This page is made by `python docs/build_results.py` from `experiments/results.jsonl`.
"""
# The columns of the first table: the rows of other tables that they show, by the table.
LABELLED = ("linker", "craft", "nel")
SUMMARY = {
    "TF-IDF": {"default": "TF-IDF of names"},
    "untrained": {"default": "default"},
    "TF-IDF, with train": dict.fromkeys(
        LABELLED, "TF-IDF of names and training mentions"
    ),
    "exemplars and ranker": {
        **dict.fromkeys(LABELLED, "exemplars, and a ranker fitted on train"),
        "linker": "untrained encoder, exemplars",
    },
    "trained": {"linker": "trained, one epoch", "nel": "trained"},
}
# The tables in their order: title, and what a reader must know.
TABLES = {
    "speed": (
        "Speed and memory beside other linkers",
        "One thread, CPU seconds. *First link* is the time from the start of the process, with the "
        "names encoded already: that is done once, in the seconds of the next column. All was "
        "measured beside other work: compare rows of one corpus and commit. The "
        "trained row is calibrated on the documents that are scored, so it is a little too high. "
        "Of equal names, TF-IDF and MiniLM take the first in the list; tweeki's is in an order by "
        "hash. Rows with *AVX2* are without 8-bit instructions (VNNI): `14f8e57` by settings "
        "of the libraries (`ONEDNN_MAX_CPU_ISA` and others), `854368f` on such a CPU. Those of "
        "`fbaaccb` are of a CPU that is twice as fast as that of `14f8e57`. *News-like* are 50 "
        "documents of wned-wiki, with some 20 mentions each.",
    ),
    "default": (
        "The default, untrained",
        '`nlp.add_pipe("arbo_linker")` and `set_kb`, with a threshold of 0.3. *Names alone* is the '
        "nearest name. The ranker's weights were fitted on training sets of NCBI, BC5CDR, CRAFT "
        "and NEL, and on wned-wiki and reddit-posts, so these two are not held out. They expect a "
        "list that lacks some entities; these lists are complete, but for NEL's. Two strings of "
        "one paper make 5 points of CRAFT CL. Namesakes of NEL are 21 mentions.",
    ),
    "coverage": (
        "Whether: coverage estimated from the same mentions, without labels",
        "The default, untrained, before (with the coverage of the fit, 0.40) and after "
        "`estimate_coverage`, with lists that have all, half and a tenth of the entities; about "
        "600 mentions of each corpus, each mention by itself. *In the list* is the share of "
        "mentions with the right entity among the candidates. The ranker was fitted on the "
        "training sets of all but NEL and tweeki, whose domain it has seen.",
    ),
    "literature": (
        "Diseases, by the literature's protocol",
        "Dev, with MEDIC of July 2012, the list of the literature, and the mentions of the "
        "training set as exemplars. BioSyn, SapBERT and ANGEL print the first candidate, here "
        "R@1, of the test set, with dev's mentions too: 91.1, 92.0 to 92.5, and 92.8 on NCBI, up "
        "to 93.5 on BC5CDR, with encoders of 110 to 400 million parameters that were trained on "
        "it. *Unseen* are the entities without a training mention.",
    ),
    "new_strings": (
        "Diseases whose string training has not seen",
        "Dev with CTD's 90,590 names of 2026, and only the mentions whose string no training "
        "mention has. An 8-billion-parameter reranker with labels is reported to have 73.4 on "
        "NCBI's test set and 77.0 on BC5CDR's, where strings of dev are left out too.",
    ),
    "linker": (
        "`linker`, the recommended config",
        "Calibration and ranker are held out (`held_out.py`). On NCBI, exemplars and a fitted "
        "ranker gain 11 points, and an epoch of training 3: 5 on unseen entities, 4 on new "
        "strings. On BC5CDR it is 23, and 0.4: 2 and 2. Four epochs gain no more than one.",
    ),
    "fit_or_train": (
        "Training beside a fit, on documents that neither has seen",
        "R@1 on a fifth of the training documents (`fit_or_train.py`). *Fitted* is `arbo fit "
        "--strategy both` on the others, with the encoder untrained; *trained* is `linker` on the "
        "same documents. Intervals are over mentions. On CRAFT a batch is one paper.",
    ),
    "folds": (
        "Training, judged by entities that it has not seen",
        "All mentions of a fifth of the entities are withheld from training, and none is an "
        "exemplar (`judges.py`). R@1 of the withheld mentions: before training, trained by "
        "`linker`, and with the mean of the weights before and after. The ranker is fitted on dev; "
        "20,000 names, seed 0 where none is given, intervals over mentions. On CRAFT a batch is "
        "one paper. Dev of wned-wiki is tweeki. NCBI and BC5CDR have half of MEDIC's names.",
    ),
    "rerank": (
        "A cross-encoder",
        "Trained on one half of wned-wiki, with 19,682 Wikipedia titles.",
    ),
    "arborescence": (
        "The objectives of the arborescence paper",
        "150 steps each. Accuracy with exemplars and directed clustering, R@k by entities alone.",
    ),
    "silver": (
        "Without labels",
        "A dictionary and 7.5 MB of raw text; names that are hidden from training are the dev set.",
    ),
    "documents": (
        "Whole documents: VERBALIZED",
        "Trained on wned-wiki for 60 steps.",
    ),
    "deer": (
        "Search indexes (DEER)",
        "One query at a time, CPU time. Recall on the titles is of the gold entity, by `deer`; on "
        "the random vectors it is of the neighbours that exact search finds.",
    ),
    "moleman": (
        "Exemplars alone (MOLEMAN)",
        "Entities have no names; 22.9 % of the mentions are of entities without an exemplar.",
    ),
    "craft": (
        "CRAFT: ontologies and whole papers",
        "The encoder is not trained on mentions. *Fitted on train* is `arbo fit --strategy both`. "
        "In the first rows the ranker is fitted on other parts of dev, by `held_out.py`: these "
        "are a dozen papers, and `erythroid cells`, 18 mentions of one paper, makes 3 points of "
        "CL.",
    ),
    "nel": (
        "NEL: a third of the mentions is NIL",
        "The threshold is chosen on the other folds (`held_out.py --tune arbo_acc`); *fitted on "
        "train* is `arbo fit --strategy both`, with its threshold. *Trained* is "
        "the best checkpoint of 650 steps, a part of an epoch.",
    ),
    "clusters": (
        "Clusters across documents",
        "4,000 mentions of dev, grouped without a knowledge base by the vectors of the default, "
        "untrained. *As configured* has its threshold of 0.7, the same for all corpora; the "
        "other distances are tuned on 2,500 mentions of the "
        "corpus's training set. *Unseen* scores the mentions of unseen entities. In the mean of "
        "15 corpora, up to 4,000 mentions of each, ARI is 74.9 and B³ 86.1 as configured, and "
        "66.3 and 79.8 for equal strings.",
    ),
}


def page(rows: Sequence[Row]) -> str:
    """The page: one table for each system."""
    parts = [INTRODUCTION, f"## In short: R@1\n\n{summary(rows)}"]
    for key, (title, about) in TABLES.items():
        own = [row for row in rows if row["table"] == key]
        if own:
            parts.append(f"## {title}\n\n{about}\n\n{as_table(own)}\n{commands(own)}")
    return "\n".join(parts)


def summary(rows: Sequence[Row]) -> str:
    """The right first candidates of each corpus, with what there is to link with."""
    scores = {tuple(name_of(row)): row["scores"] for row in rows}
    lines = ["| | " + " | ".join(SUMMARY) + " |", "|---|" + "---:|" * len(SUMMARY)]
    for data in dict.fromkeys(
        row["data"] for row in rows if row["table"] == "default"
    ):
        cells = []
        for name_by_table in SUMMARY.values():
            shown = [
                scores[table, data, name]["arbo_recall_at_1"]
                for table, name in name_by_table.items()
                if (table, data, name) in scores
            ]
            cells.append(f"{100 * shown[0]:.1f}" if shown else "–")
        lines.append("| " + " | ".join([data, *cells]) + " |")
    return "\n".join(lines) + "\n"


def as_table(rows: Sequence[Row]) -> str:
    """Rows as Markdown, a row's data only where it changes."""
    keys = [key for key in HEADINGS if any(key in row["scores"] for row in rows)]
    head = ["", "", *(HEADINGS[key] for key in keys), "commit"]
    lines = [
        "| " + " | ".join(head) + " |",
        "|---|---|" + "---:|" * len(keys) + "---|",
    ]
    for data, group in groupby(rows, key=lambda row: row["data"]):
        for i, row in enumerate(group):
            cells = ["" if i else data, row["row"], *(cell(row, key) for key in keys)]
            lines.append("| " + " | ".join([*cells, f"`{row['commit']}`"]) + " |")
    return "\n".join(lines) + "\n"


def cell(row: Row, key: str) -> str:
    """A score as it is printed, with its interval where it has one."""
    value = row["scores"].get(key)
    if value is None:
        return "–"
    if key in DIFFERENCES:
        mean, low, high = (100 * one for one in value)
        return f"{mean:+.1f} ({low:+.1f} to {high:+.1f})"
    if key in MEASURES:
        return (
            f"{value:,.1f}"
            if key in ("ACC", "NEW", "SAME") or value < 10
            else f"{value:,.0f}"
        )
    interval = row["scores"].get(f"{key}_95")
    shown = f"{100 * value:.1f}"
    return (
        f"{shown} ({100 * interval[0]:.1f}–{100 * interval[1]:.1f})"
        if interval
        else shown
    )


def commands(rows: Sequence[Row]) -> str:
    """The commands of a table, each once."""
    return ", ".join(dict.fromkeys(f"`{row['command']}`" for row in rows)) + "\n"


def readme_table(rows: Sequence[Row]) -> str:
    """Linkers beside each other on the first corpus, with namesakes of another."""
    own = [row for row in rows if row["table"] == "speed"]
    shown = [row for row in own if row["data"] == own[0]["data"]]
    names = {row["row"]: row["scores"] for row in own if row["data"] == NAMESAKES}
    lines = ["| | " + " | ".join(HEADINGS[key] for key in SPEED) + " |"]
    lines.append("|---|" + "---:|" * len(SPEED))
    for row in sorted(shown, key=lambda one: one["scores"]["ACC"]):
        scores = {**row["scores"], "SAME": names.get(row["row"], {}).get("SAME")}
        cells = [cell({**row, "scores": scores}, key) for key in SPEED]
        lines.append("| " + " | ".join([row["row"], *cells]) + " |")
    return "\n".join(lines) + "\n"


def with_table(text: str, table: str) -> str:
    """The text of README.md, with this table between its marks."""
    before, _, rest = text.partition(MARKS[0])
    _, _, after = rest.partition(MARKS[1])
    return f"{before}{MARKS[0]}{table}{MARKS[1]}{after}"


def add(rows: list[Row], new: Sequence[Row]) -> list[Row]:
    """Rows with new ones, each in the place of the one of the same name, or after its table."""
    for row in new:
        near = [
            i for i, old in enumerate(rows) if name_of(old)[:2] == name_of(row)[:2]
        ]
        same = [i for i in near if name_of(rows[i]) == name_of(row)]
        if same:
            rows[same[0]] = row
        else:
            rows.insert(near[-1] + 1 if near else len(rows), row)
    return rows


def name_of(row: Row) -> list[str]:
    return [row["table"], row["data"], row["row"]]


def rows_of(metrics: Path, place: Row, names: dict[str, str]) -> list[Row]:
    """The rows of a file of scores.

    place: Table, data, command and commit.
    names: From the rows of the file to labels; empty for all of them.
    """
    found = srsly.read_json(metrics)
    rows = []
    for key, label in (names or {key: key for key in found}).items():
        scores = {
            k: v
            for k, v in found[key].items()
            if k in (*HEADINGS, "arbo_acc_95") and v
        }
        if (
            found[key].get("arbo_acc_seen") is None
        ):  # Nothing was seen, so all are alike.
            for name in (
                "arbo_acc_unseen",
                "arbo_balanced_acc",
                "arbo_acc_new_strings",
            ):
                scores.pop(name, None)
        scores.pop("arbo_recall_at_100", None)
        scores = {
            k: v if isinstance(v, list) else round(v, 4) for k, v in scores.items()
        }
        if scores:
            rows.append({**place, "row": label, "seed": 0, "scores": scores})
    return rows


def head() -> str:
    """The short hash of the commit at HEAD."""
    command = ["git", "-C", str(ROOT), "rev-parse", "--short=7", "HEAD"]
    return subprocess.run(
        command, capture_output=True, text=True, check=True
    ).stdout.strip()


def main() -> None:
    parser = argparse.ArgumentParser(
        description="Write docs/results.md and README's table."
    )
    added = parser.add_subparsers(dest="action").add_parser("add")
    added.add_argument("metrics", type=Path)
    for name in ("table", "data", "command"):
        added.add_argument(name)
    added.add_argument("names", nargs="*", metavar="KEY=LABEL")
    added.add_argument("--commit", help="What was measured; by default HEAD")
    args = parser.parse_args()
    rows = list(srsly.read_jsonl(ROWS))
    if args.action == "add":
        names = dict(one.rsplit("=", 1) for one in args.names)
        place = {key: getattr(args, key) for key in ("table", "data", "command")}
        place.update(commit=args.commit or head())
        rows = add(rows, rows_of(args.metrics, place, names))
        srsly.write_jsonl(ROWS, rows)
    PAGE.write_text(page(rows), encoding="utf8")
    text = README.read_text(encoding="utf8")
    if MARKS[0] in text:
        README.write_text(with_table(text, readme_table(rows)), encoding="utf8")


if __name__ == "__main__":
    main()
