"""A stopwatch on the review: the same decisions by keys in the browser, and in a table.

    python benchmarks/review.py            # 200 clusters; needs Chromium and Playwright

Of ten clusters five are accepted, two linked to the nearest entity, two rejected, one skipped.
Keystrokes of the table are those that a spreadsheet needs: each character of a cell, and one for
the way to the next cell. Seconds are those of the machine. They are without the time for reading;
the table does not have the texts of the mentions.
"""

import argparse
import shutil
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.serve import pipeline  # noqa: E402
from spacy_arbo_el import load_pipeline, save_pipeline  # noqa: E402
from spacy_arbo_el.contrib.review.decisions.decision_table import (
    apply_all,
    as_csv,
    read_decisions,
    write_decisions,
)
from spacy_arbo_el.contrib.review.review import Review  # noqa: E402
from spacy_arbo_el.contrib.review.serve.app import create_app  # noqa: E402
from spacy_arbo_el.linker import find_linker  # noqa: E402
from tests.contrib.review.serve.world import serving  # noqa: E402

KEYS = "axa1axa1as"
# The keystrokes in the table for each key, beside the id of the entity.
TYPED = {"a": "accept", "1": "accept", "x": "reject", "s": ""}
TURNED = """before => document.querySelector("h1").textContent !== before
    && !document.body.classList.contains("busy")"""


def by_keys(review: Review, browser: str, count: int):
    """Decide in the browser. RETURNS: Keystrokes, requests, seconds."""
    from playwright.sync_api import sync_playwright

    requests = []
    with serving(lambda rules: create_app(review, rules)) as rules, sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        page = chromium.new_page()
        page.goto(f"{rules.origins[0]}/?token={rules.token}", wait_until="networkidle")
        page.on("request", lambda request: requests.append(request.url))
        keys = ["Enter", *(KEYS * count)[:count]]
        start = time.perf_counter()
        for key in keys:
            before = page.locator("h1").inner_text()
            page.keyboard.press(key)
            page.wait_for_function(TURNED, arg=before)
        seconds = time.perf_counter() - start
        chromium.close()
    return len(keys), len(requests), seconds


def by_table(model: Path, entries, count: int):
    """Make the same decisions by a table. RETURNS: Keystrokes, seconds."""
    path, chosen = model.with_name("decisions.csv"), as_csv(entries)
    start = time.perf_counter()
    nlp = load_pipeline(model)
    linker = find_linker(nlp)
    write_decisions(linker.new_entities, path)
    written = time.perf_counter()
    path.write_text(chosen, encoding="utf8")
    filled = time.perf_counter()
    made = apply_all(path, list(read_decisions(path)), linker.new_entities)
    save_pipeline(nlp, model)
    seconds = written - start + time.perf_counter() - filled
    assert sum(made.values()) == sum(entry["action"] != "skip" for entry in entries), made
    words = "".join(TYPED[key] for key in (KEYS * count)[:count])
    ids = [entry["kb_id"] for entry in entries if entry["action"] == "link"]
    return count + len(words) + sum(1 + len(kb_id) for kb_id in ids), seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--clusters", type=int, default=200)
    count = parser.parse_args().clusters
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    if browser is None:
        raise SystemExit("Chromium is not installed.")
    with tempfile.TemporaryDirectory() as folder:
        model, copy = Path(folder, "model"), Path(folder, "copy")
        save_pipeline(pipeline(count + 1, 3 * count), model)
        shutil.copytree(model, copy)
        review = Review(load_pipeline(model), model)
        keys, requests, seconds = by_keys(review, browser, count)
        entries = review.standing
        assert [entry["action"][0] for entry in entries] == [
            {"a": "a", "1": "l", "x": "r", "s": "s"}[key] for key in (KEYS * count)[:count]
        ]
        typed, table_seconds = by_table(copy, entries, count)
    print("| way | decisions | keystrokes | requests | seconds |\n|---|---|---|---|---|")
    print(f"| keys in the browser | {count} | {keys} | {requests} | {seconds:.1f} |")
    print(f"| a table, `arbo new apply` | {count} | {typed} | 0 | {table_seconds:.1f} |")


if __name__ == "__main__":
    main()
