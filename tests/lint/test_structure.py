"""Rooms import only rooms before them, add-ons none of each other, and scripts what exists."""

import ast
import re
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from string import Formatter

import pytest

import spacy_arbo_el
from spacy_arbo_el.base.errors import Errors, Warnings
from spacy_arbo_el.contrib.formats.errors import FormatMessages
from spacy_arbo_el.contrib.papers.errors import PaperMessages
from spacy_arbo_el.contrib.review.errors import ReviewMessages
from spacy_arbo_el.contrib.scale.errors import ScaleMessages

PACKAGE = Path(spacy_arbo_el.__file__).parent
# From the ground up. A room may import the rooms before it, at any place of a file.
ROOMS = [
    "base",
    "names",
    "storage",
    "graph",
    "encoders",
    "records",
    "kb",
    "mentions",
    "retrieval",
    "ranking",
    "discovery",
    "linking",
    "training",
    "show",
    "config_sources",
    "linker",
    "corpora",
    "find",
    "factory",
    "pipelines",
    "runs",
    "evaluation",
    "fitting",
    "cli",
    "contrib",
]
REVIEW = PACKAGE / "contrib" / "review"
WEB = {"fastapi", "starlette", "uvicorn", "prometheus_client"}


def room_of(path):
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imports_of(path):
    """The modules that a file imports, as paths of names; functions and types included."""
    package = path.relative_to(PACKAGE.parent).with_suffix("").parts[:-1]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf8"))):
        if isinstance(node, ast.Import):
            yield from (tuple(one.name.split(".")) for one in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else ()
            module = (*above, *(node.module or "").split(".")) if node.module else above
            yield from ((*module, one.name) for one in node.names)


FILES = sorted(path for path in PACKAGE.rglob("*.py") if room_of(path) != "__init__")


def test_every_file_is_in_a_room():
    assert {room_of(path) for path in FILES} == set(ROOMS)


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_imports_none_that_stands_above_it(room):
    above = set(ROOMS[ROOMS.index(room) + 1 :])
    for path in FILES:
        if room_of(path) == room:
            own = [one for one in imports_of(path) if one[0] == PACKAGE.name and len(one) > 1]
            assert not above & {one[1] for one in own}, path


ADD_ONS = {"papers", "formats", "review", "scale"}


def test_add_ons_import_nothing_of_each_other():
    folders = {path.name for path in (PACKAGE / "contrib").iterdir() if path.is_dir()}
    assert folders - {"__pycache__"} == ADD_ONS
    for path in (PACKAGE / "contrib").glob("*/**/*.py"):
        own = path.relative_to(PACKAGE).parts[1]
        others = {one[2] for one in imports_of(path) if one[1:2] == ("contrib",) and len(one) > 2}
        assert others <= {own}, path


def test_the_web_framework_is_imported_for_http_alone():
    for path in FILES:
        is_http = path.is_relative_to(REVIEW / "serve") or path == REVIEW / "commands" / "serve.py"
        assert is_http or not WEB & {one[0] for one in imports_of(path)}, path


ADD_ON_MESSAGES = [PaperMessages, FormatMessages, ReviewMessages, ScaleMessages]


@pytest.mark.parametrize("messages", [Errors, Warnings, *ADD_ON_MESSAGES])
def test_the_codes_that_are_raised_are_those_that_exist(messages):
    use = re.compile(rf"\b{messages.__name__}\.([EW]\d+)\b")
    files = [path for path in PACKAGE.rglob("*.py") if path.name != "errors.py"]
    raised = {code for path in files for code in use.findall(path.read_text(encoding="utf8"))}
    assert raised == {code for code in vars(messages) if not code.startswith("_")}


def messages_raised(path, classes):
    """The class and code of each message that is filled in, and the names that it is given."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf8"))):
        if isinstance(node, ast.Call):
            message = node.func
            if isinstance(message, ast.Attribute) and message.attr == "format":
                message = message.value
            match message:
                case ast.Attribute(ast.Name(name), code) if name in classes and code[1:].isdigit():
                    yield name, code, {keyword.arg or "" for keyword in node.keywords}


def test_a_message_is_given_what_it_names():
    classes = {cls.__name__: cls for cls in (Errors, Warnings, *ADD_ON_MESSAGES)}
    for path in PACKAGE.rglob("*.py"):
        for name, code, keywords in messages_raised(path, classes):
            fields = Formatter().parse(getattr(classes[name], code))
            named = {field.partition(".")[0] for _, field, _, _ in fields if field is not None}
            assert keywords == named or "" in keywords, (path, code)


def test_the_graph_package_needs_arrays_alone():
    files = (PACKAGE / "graph").glob("*.py")
    trees = [ast.parse(path.read_text(encoding="utf8")) for path in files]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    absolute = {name.name for node in nodes if isinstance(node, ast.Import) for name in node.names}
    relative = [node for node in nodes if isinstance(node, ast.ImportFrom)]
    absolute |= {node.module for node in relative if not node.level}
    assert not {name.split(".")[0] for name in absolute} & {"spacy", "torch", "thinc", "faiss"}
    above = {node.module for node in relative if node.level == 2}
    assert above <= {"base.arrays", "base.compiling", "base.errors"}


ROOT = Path(__file__).parents[2]
SCRIPTS = sorted([*ROOT.glob("benchmarks/*.py"), *ROOT.glob("experiments/*.py")])


def imported(script):
    """What a script imports from the package: modules and names in them."""
    for node in ast.walk(ast.parse(script.read_text(encoding="utf8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("spacy_arbo_el"):
            yield from ((node.module, alias.name) for alias in node.names)


def test_there_are_scripts():
    assert sum(1 for script in SCRIPTS for _ in imported(script)) > 50


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_the_imports_of_scripts_exist(script):
    for module, name in imported(script):
        found = hasattr(import_module(module), name) or find_spec(f"{module}.{name}")
        assert found, f"{module} has no {name}"
