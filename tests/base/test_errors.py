"""Errors: each has the code of its message."""

import pickle

import pytest
from spacy.vocab import Vocab

from spacy_arbo_el import ArboKB
from spacy_arbo_el.base.errors import ArboError, Errors, code_of


def test_an_error_has_the_code_of_its_message():
    error = pickle.loads(pickle.dumps(ArboError(Errors.E003.format(id="x"))))
    assert error.code == code_of(error) == "E003" and "'x'" in str(error)
    assert isinstance(error, ValueError)
    assert code_of(KeyError(Errors.E003.format(id="x"))) == "E003", "of whatever class"
    assert code_of(ValueError("[arbo-E003] so it seems")) == code_of(ValueError()) == ""
    with pytest.raises(ArboError) as raised:
        ArboKB(Vocab(), [{"id": "a"}, {"id": "a"}])
    assert raised.value.code == "E002"
