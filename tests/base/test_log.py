"""Bars of progress, also where nobody watches them."""

import pytest

from spacy_arbo_el.base import log as module
from spacy_arbo_el.base.log import progress


@pytest.mark.parametrize(("seconds", "is_shown"), [(0.0, True), (60.0, False)])
def test_a_bar_in_a_file_is_shown_where_the_work_takes_long(capsys, monkeypatch, seconds, is_shown):
    monkeypatch.setattr(module, "SECONDS", seconds)
    with progress(1000, "Encoding", "text") as bar:
        bar.update(1000)
    assert ("Encoding: 100%" in capsys.readouterr().err) == is_shown
