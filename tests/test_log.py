"""Progress in logs."""

import logging

from spacy_arbo_el import log as module
from spacy_arbo_el.log import LoggedProgress, progress


def test_progress_in_a_log_is_a_line_each_minute_with_the_time_left(caplog, monkeypatch):
    caplog.set_level(logging.INFO, "spacy.arbo")
    now = iter([0.0, 30.0, 61.0, 90.0, 130.0])
    monkeypatch.setattr(module.time, "monotonic", lambda: next(now))
    with progress(1000, "Encoding", "text") as bar:
        assert isinstance(bar, LoggedProgress), "standard error is no terminal"
        for _ in range(3):
            bar.update(100)
        bar.update(700)
    (line,) = [record.getMessage() for record in caplog.records]
    assert line == "Encoding: 200 of 1000 texts, about 244 s left"
