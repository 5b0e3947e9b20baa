"""Messages: each code is raised somewhere, and each that is raised exists."""

import pickle
import re
from pathlib import Path

import pytest
from spacy.vocab import Vocab

import spacy_arbo_el
from spacy_arbo_el import ArboKB
from spacy_arbo_el.base.errors import ArboError, Errors, Warnings, code_of

PACKAGE = Path(spacy_arbo_el.__file__).parent


@pytest.mark.parametrize("messages", [Errors, Warnings])
def test_the_codes_that_are_raised_are_those_that_exist(messages):
    use = re.compile(rf"\b{messages.__name__}\.([EW]\d+)\b")
    files = [path for path in PACKAGE.rglob("*.py") if path.name != "errors.py"]
    raised = {code for path in files for code in use.findall(path.read_text(encoding="utf8"))}
    assert raised == {code for code in vars(messages) if not code.startswith("_")}


def test_an_error_has_the_code_of_its_message():
    error = pickle.loads(pickle.dumps(ArboError(Errors.E003.format(id="x"))))
    assert error.code == code_of(error) == "E003" and "'x'" in str(error)
    assert isinstance(error, ValueError)
    assert code_of(KeyError(Errors.E003.format(id="x"))) == "E003", "of whatever class"
    assert code_of(ValueError("[arbo-E003] so it seems")) == code_of(ValueError()) == ""
    with pytest.raises(ArboError) as raised:
        ArboKB(Vocab(), [{"id": "a"}, {"id": "a"}])
    assert raised.value.code == "E002"


def test_codes_are_unique():
    text = (PACKAGE / "base" / "errors.py").read_text(encoding="utf8")
    codes = re.findall(r"^    ([EW]\d+) =", text, re.MULTILINE)
    assert len(codes) == len(set(codes)) > 100
