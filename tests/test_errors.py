"""Messages: each code is raised somewhere, and each that is raised exists."""

import re
from pathlib import Path

import pytest

import spacy_arbo_el
from spacy_arbo_el.errors import Errors, Warnings

PACKAGE = Path(spacy_arbo_el.__file__).parent


@pytest.mark.parametrize("messages", [Errors, Warnings])
def test_the_codes_that_are_raised_are_those_that_exist(messages):
    use = re.compile(rf"\b{messages.__name__}\.([EW]\d+)\b")
    files = [path for path in PACKAGE.rglob("*.py") if path.name != "errors.py"]
    raised = {code for path in files for code in use.findall(path.read_text(encoding="utf8"))}
    assert raised == {code for code in vars(messages) if not code.startswith("_")}


def test_codes_are_unique():
    text = (PACKAGE / "errors.py").read_text(encoding="utf8")
    codes = re.findall(r"^    ([EW]\d+) =", text, re.MULTILINE)
    assert len(codes) == len(set(codes)) > 100
