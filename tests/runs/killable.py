"""Trains in forked processes that are killed at given points; run as a program by test_resume.

The program imports everything once and forks a process for each run, so that a run is as fresh as
a new program and costs no imports. It reads jobs from its standard input, one JSON array a line,
and answers each with a JSON object:

    [output folder, settings, resume, kill at this point or 0, kill after seconds or 0]

The points of a run are the calls that change files, and the steps of training, numbered from 1.
"""

import io
import json
import os
import signal
import sys
import time
import traceback
import warnings
from pathlib import Path

from spacy.training.initialize import init_nlp
from spacy.util import registry

from spacy_arbo_el.runs.loop import train

from ..systems import load_system

CHANGES = ("os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.link", "os.truncate")


@registry.callbacks("arbo_tests.step.v1")
def count_steps():
    return lambda nlp, info: sys.audit("arbo_tests.step")


def run(output, settings, resume, log):
    config = load_system("in_batch", settings.pop("overrides"))
    for section, values in settings.items():
        target = config
        *parents, last = section.split(".")
        for name in parents:
            target = target[name]
        target[last] = values
    config["training"]["before_update"] = {"@callbacks": "arbo_tests.step.v1"}
    train(init_nlp(config), Path(output), resume=resume, stdout=log)


def count_points(kill_at):
    """Kill this process at a point, or count its points."""
    points = [0]

    def hook(event, args):
        is_point = event in CHANGES or event == "arbo_tests.step"
        if event == "open" and isinstance(args[2], int):
            is_point = bool(args[2] & (os.O_WRONLY | os.O_RDWR))
        if is_point:
            points[0] += 1
            if points[0] == kill_at:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)
    return points


def child(answer, output, settings, resume, kill_at, seconds):
    points, log = count_points(kill_at), io.StringIO()
    start = time.monotonic()
    if seconds:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        run(output, settings, resume, log)
        error = ""
    except BaseException as problem:
        error = repr(problem)
        traceback.print_exc()
    os.write(
        answer,
        json.dumps(
            {
                "log": log.getvalue(),
                "points": points[0],
                "error": error,
                "seconds": time.monotonic() - start,
            }
        ).encode(),
    )


def answer_of(job):
    """What a forked process answers; an empty object if it was killed."""
    reading, writing = os.pipe()
    process = os.fork()
    if process == 0:
        os.close(reading)
        try:
            child(writing, *job)
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as file:
        answer = file.read()
    os.waitpid(process, 0)
    return json.loads(answer or b"{}")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    # Only answers go to the standard output.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        print(json.dumps(answer_of(json.loads(line))), file=answers, flush=True)
