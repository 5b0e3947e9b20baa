"""The size of the package, of its tests and of what is in them, each under a fixed ceiling.

Code is counted in tokens, without docstrings and comments, since a line that is saved by packing is
not saved. A ceiling has room for a contribution. It is lowered where the code has become smaller,
and raised in a commit of its own, with the reason.
"""

import ast
import io
import tokenize
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "spacy_arbo_el"
CONTRIB = PACKAGE / "contrib"
TESTS = ROOT / "tests"
# The longest that a function may be, in lines.
LONGEST = 60
# Names that do not say what a thing is.
VAGUE = frozenset(
    [
        "one",
        "own",
        "some",
        "others",
        "other",
        "found",
        "given",
        "wanted",
        "kept",
        "both",
        "rest",
        "about",
        "known",
        "every",
        "left",
        "said",
        "held",
        "part",
        "parts",
        "whole",
        "near",
        "told",
        "asked",
        "alike",
    ]
)
CODE = (tokenize.NAME, tokenize.OP, tokenize.NUMBER, tokenize.STRING)
CEILINGS = {
    "tokens of the core": 227_150,
    "tokens of contrib/": 77_970,
    "tokens of tests/": 247_540,
    "tokens a line of code": 8.6,
    "percent of names that are vague": 0.6,
    "asserts that join several checks": 50,
    f"functions above {LONGEST} lines": 0,
}


class Size(NamedTuple):
    """What is counted of a file or of several."""

    tokens: int
    lines: int
    names: int
    vague: int
    joined: int
    long: int


def size_of(path):
    text = path.read_text("utf8")
    nodes = list(ast.walk(ast.parse(text)))
    docstrings = {line for node in nodes if is_docstring(node) for line in lines_of(node)}
    tokens = [
        token.start[0]
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type in CODE and token.start[0] not in docstrings
    ]
    names = [name for node in nodes for name in names_bound_by(node)]
    return Size(
        len(tokens),
        len(set(tokens)),
        len(names),
        sum(name in VAGUE for name in names),
        sum(map(is_joined, nodes)),
        sum(map(is_long, nodes)),
    )


def total(sizes):
    return Size(*map(sum, zip(*sizes)))


def lines_of(node):
    return range(node.lineno, node.end_lineno + 1)


def is_docstring(node):
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def names_bound_by(node):
    if isinstance(node, ast.arg):
        return [node.arg]
    is_stored = isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    return [node.id] if is_stored else []


def is_joined(node):
    """Whether an assert does not say which of its checks has failed."""
    if not isinstance(node, ast.Assert):
        return False
    is_chain = isinstance(node.test, ast.Compare) and len(node.test.ops) > 1
    return is_chain or isinstance(node.test, ast.BoolOp)


def is_long(node):
    is_function = isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    return is_function and len(lines_of(node)) > LONGEST


@pytest.fixture(scope="module")
def measured():
    files = {path: size_of(path) for path in PACKAGE.rglob("*.py")}
    package = total(files.values())
    contrib = total(size for path, size in files.items() if CONTRIB in path.parents)
    tests = total(map(size_of, TESTS.rglob("*.py")))
    values = (
        package.tokens - contrib.tokens,
        contrib.tokens,
        tests.tokens,
        package.tokens / package.lines,
        100 * package.vague / package.names,
        tests.joined,
        package.long,
    )
    return dict(zip(CEILINGS, values))


@pytest.mark.parametrize("name", CEILINGS)
def test_nothing_grows_above_its_ceiling(name, measured):
    assert measured[name] <= CEILINGS[name], f"{measured[name]:,.1f} {name}"


@pytest.mark.parametrize(
    "code, joined",
    [("assert a", 0), ("assert a == b", 0), ("assert a and b", 1), ("assert a == b == c", 1)],
)
def test_an_assert_of_several_checks_is_joined(code, joined, tmp_path):
    path = tmp_path / "module.py"
    path.write_text(f'"""Not counted."""\n{code}  # Nor this.\n', encoding="utf8")
    assert size_of(path).joined == joined
    assert size_of(path).tokens == len(code.split())
