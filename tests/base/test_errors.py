"""Errors, each with the code of its message, and bars of progress."""

import pickle

import pytest
from spacy.vocab import Vocab

from spacy_arbo_el import ArboError, ArboKB
from spacy_arbo_el.base import log as module
from spacy_arbo_el.base.errors import Errors, code_of
from spacy_arbo_el.base.log import progress


def test_an_error_has_the_code_of_its_message():
    error = pickle.loads(pickle.dumps(Errors.E003(id="x")))
    assert error.code == "E003"
    assert code_of(error) == "E003"
    assert "'x'" in str(error)
    assert isinstance(error, ValueError)
    assert code_of(KeyError(Errors.E003.format(id="x"))) == "E003", "of whatever class"
    assert code_of(ValueError("[arbo-E003] so it seems")) == ""
    assert code_of(ValueError()) == ""
    with pytest.raises(ArboError) as raised:
        ArboKB(Vocab(), [{"id": "a"}, {"id": "a"}])
    assert raised.value.code == "E002"


@pytest.mark.parametrize("seconds, is_shown", [(0.0, True), (60.0, False)])
def test_a_bar_in_a_file_is_shown_where_the_work_takes_long(capsys, monkeypatch, seconds, is_shown):
    monkeypatch.setattr(module, "SECONDS", seconds)
    with progress(1000, "Encoding", "text") as bar:
        bar.update(1000)
    assert ("Encoding: 100%" in capsys.readouterr().err) == is_shown
