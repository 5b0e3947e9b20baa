"""The size of the package and of its statements. Each number may only fall.

A line saved by packing two statements into one is not saved, so both are counted. A ceiling is what
was measured when it was last written; the aim is where it is to be.
"""

import ast
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "spacy_arbo_el"
CONTRIB = PACKAGE / "contrib"
# The longest that a function may be.
LONGEST = 60


class Limit(NamedTuple):
    """ceiling: It may not be above this. aim: Where it is to be. slack: How far it may fall below
    the ceiling before that is written anew.
    """

    ceiling: int
    aim: int
    slack: int


LIMITS = {
    "lines of the core": Limit(36_300, 34_500, 800),
    "lines of contrib/": Limit(11_900, 11_900, 400),
    "lines of tests/": Limit(27_220, 26_500, 800),
    "packed assignments, a, b = x, y": Limit(50, 50, 40),
    f"functions above {LONGEST} lines": Limit(0, 0, 0),
}


def lines_of(folder):
    return {path: len(path.read_text("utf8").splitlines()) for path in folder.rglob("*.py")}


def nodes():
    for path in PACKAGE.rglob("*.py"):
        yield from ast.walk(ast.parse(path.read_text("utf8")))


def is_packed(node):
    """Whether a statement assigns several values to several names."""
    is_tuple = isinstance(node, ast.Assign) and isinstance(node.value, ast.Tuple)
    return is_tuple and isinstance(node.targets[0], ast.Tuple)


def is_long(node):
    is_function = isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    return is_function and node.end_lineno - node.lineno + 1 > LONGEST


@pytest.fixture(scope="module")
def measured():
    package = lines_of(PACKAGE)
    contrib = sum(count for path, count in package.items() if CONTRIB in path.parents)
    statements = list(nodes())
    values = (
        sum(package.values()) - contrib,
        contrib,
        sum(lines_of(ROOT / "tests").values()),
        sum(map(is_packed, statements)),
        sum(map(is_long, statements)),
    )
    return dict(zip(LIMITS, values))


@pytest.mark.parametrize("name", LIMITS)
def test_nothing_grows_and_ceilings_follow_down(name, measured):
    limit, now = LIMITS[name], measured[name]
    assert now <= limit.ceiling, f"{now:,} {name}, at most {limit.ceiling:,}; aim {limit.aim:,}"
    assert now >= limit.ceiling - limit.slack, f"Lower the ceiling of {name} to {now:,}."
    assert limit.aim <= limit.ceiling
