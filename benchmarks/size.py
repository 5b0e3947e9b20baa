"""Lines of Python per package against its budget.

    python benchmarks/size.py           # print the table; status 1 where a package grew
    python benchmarks/size.py --write   # take the present lines as the new limits

The budget is where the design wants a package to be. The limit, in ``size.json``, is what it had
when the limits were last written: a change that needs more lines than that says so by writing them.
"""

import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "spacy_arbo_el"
LIMITS = Path(__file__).with_suffix(".json")

# Lines that DESIGN.md gives each room. Files outside them count for the component.
BUDGETS = {
    "component": 1020,
    "base": 1560,
    "storage": 860,
    "graph": 2000,
    "encoders": 3200,
    "kb": 3350,
    "mentions": 1270,
    "retrieval": 2250,
    "ranking": 2060,
    "discovery": 1620,
    "linking": 1270,
    "training": 1700,
    "show": 640,
    "corpora": 2150,
    "runs": 960,
    "evaluation": 1150,
    "fitting": 550,
    "cli": 2100,
}


def part_of(path: Path) -> str:
    """The part of the package that a file counts for."""
    place = path.relative_to(PACKAGE)
    if place.parts[0] == "contrib":
        return "/".join(place.parts[:2]) if len(place.parts) > 2 else "contrib"
    return place.parts[0] if len(place.parts) > 1 else "component"


def count(folder: Path) -> int:
    """Lines of the Python files below a folder."""
    return sum(lines_of(path) for path in folder.rglob("*.py"))


def lines_of(path: Path) -> int:
    return len(path.read_text(encoding="utf8").splitlines())


def sizes() -> dict[str, int]:
    """Lines of each part of the package, of the package, and of its tests."""
    parts = dict.fromkeys(BUDGETS, 0)
    for path in sorted(PACKAGE.rglob("*.py")):
        part = part_of(path)
        parts[part] = parts.get(part, 0) + lines_of(path)
    return {**parts, "package": sum(parts.values()), "tests": count(ROOT / "tests")}


def compare(now: dict[str, int], limits: dict[str, int]) -> tuple[str, int]:
    """The table, and how many parts are above their limits."""
    budgets = {**BUDGETS, "package": sum(BUDGETS.values())}
    lines = [f"{'':<12} {'lines':>7} {'limit':>7} {'budget':>7}"]
    grown = 0
    for part, size in now.items():
        limit = limits.get(part, 0)
        grown += size > limit
        mark = " grew" if size > limit else ""
        lines.append(f"{part:<12} {size:>7,} {limit:>7,} {budgets.get(part, 0) or '–':>7}{mark}")
    return "\n".join(lines), grown


def main() -> int:
    now = sizes()
    if "--write" in sys.argv:
        LIMITS.write_text(json.dumps(now, indent=1) + "\n", encoding="utf8")
    table, grown = compare(now, json.loads(LIMITS.read_text(encoding="utf8")))
    print(table)
    if grown:
        print("Say why in the commit, and run: python benchmarks/size.py --write")
    return int(grown > 0)


if __name__ == "__main__":
    sys.exit(main())
