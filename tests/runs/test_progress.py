"""The table that a training prints."""

import io
import re
import time

import spacy

from spacy_arbo_el.runs.progress import HEADER, Progress


def test_a_line_per_evaluation_with_the_mean_loss_and_a_star_for_the_best():
    nlp, printed = spacy.blank("xx"), io.StringIO()
    log_step, finalize = Progress()(nlp, printed, io.StringIO())
    for step, score in enumerate((0.5, None, 0.4, 0.6)):
        if score is None:
            log_step(None)
            continue
        checkpoints = [(one, i) for i, one in enumerate((0.5, 0.4, 0.6)[: step or 1])]
        scores = {"arbo_acc": score, "arbo_recall_at_1": None}
        log_step(
            {
                "epoch": 0,
                "step": step,
                "losses": {"arbo_linker": 3.0},
                "score": score,
                "other_scores": scores,
                "checkpoints": checkpoints,
            }
        )
    finalize()
    lines = printed.getvalue().splitlines()
    assert lines[0].split() == list(HEADER) and len(lines) == 5
    rows = [line.split() for line in lines[2:]]
    assert [row[2] for row in rows] == ["3.0000", "1.5000", "3.0000"], "two steps before the second"
    assert [row[3] for row in rows] == ["50.00", "40.00", "60.00"] and rows[0][5] == "-"
    assert [row[7] for row in rows] == ["0.500*", "0.400", "0.600*"]
    assert re.fullmatch(r"0:00:0\d", rows[-1][-1])
    # The step that an evaluation follows is not timed: there is one other before the second.
    assert [row[8] == "-" for row in rows] == [True, False, True]


def test_the_time_left_is_that_of_steps_without_evaluations(caplog, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    nlp = spacy.blank("xx", config={"training": {"eval_frequency": 147}})
    log_step, finalize = Progress()(nlp, io.StringIO(), io.StringIO())
    now[0] += 357
    report = {"epoch": 0, "step": 0, "losses": {"arbo_linker": 3.0}, "score": 0.5}
    log_step({**report, "other_scores": {}, "checkpoints": [(0.5, 0)]})
    for _ in range(20):
        now[0] += 3
        log_step(None)
    finalize()
    told = [one.message for one in caplog.records if one.message.startswith("Training")]
    assert told == ["Training: 20 of 147 steps, about 381 s left"]


class Flushed(io.StringIO):
    """Standard output as a pipe has it: what is written is there when it is flushed."""

    shown = ""

    def flush(self):
        self.shown = self.getvalue()


def test_the_head_is_shown_before_the_first_step_with_what_is_done_until_the_first_line(caplog):
    printed = Flushed()
    _, finalize = Progress()(spacy.blank("xx"), printed, io.StringIO())
    finalize()
    assert printed.shown.split()[: len(HEADER)] == list(HEADER)
    assert [record.message for record in caplog.records if "first evaluation" in record.message]
