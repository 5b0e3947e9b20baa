"""Progress in logs."""

import logging

import numpy as np

from spacy_arbo_el.base import log as module
from spacy_arbo_el.base.log import LoggedProgress, progress
from spacy_arbo_el.retrieval.entity_texts import encode_texts


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


def test_unexpected_work_is_told_of_after_five_seconds_in_any_script(caplog, monkeypatch):
    """As a warning, since the level of spaCy's log is that where nobody has set another."""
    caplog.set_level(logging.WARNING, "spacy.arbo")
    now = iter([0.0, 4.0, 5.5, 12.0, 66.0])
    monkeypatch.setattr(module.time, "monotonic", lambda: next(now))
    with progress(1000, "Encoding", "text", "Only once") as bar:
        for _ in range(4):
            bar.update(100)
    (line,) = [record.getMessage() for record in caplog.records]
    assert line == "Encoding: 200 of 1000 texts, about 22 s left. Only once"


def test_encoding_of_a_knowledge_base_gives_notice(caplog, monkeypatch):
    class Slow:
        def read_texts(self, texts):
            return texts

        def encode_texts(self, texts):
            clock[0] += 3.0
            return np.zeros((len(texts), 4), dtype=np.float32)

    clock = [0.0]
    caplog.set_level(logging.WARNING, "spacy.arbo")
    monkeypatch.setattr(module.time, "monotonic", lambda: clock[0])
    encode_texts(Slow(), [(str(number), "") for number in range(5000)])
    (line,) = [record.getMessage() for record in caplog.records]
    assert line.startswith("Encoding the knowledge base: 1024 of 5000 texts, about 23 s left")
