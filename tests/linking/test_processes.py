"""Processes that link with a knowledge base in a folder, which another program edits."""

import json
import os
import time
import traceback
from functools import partial

import pytest
import torch

from spacy_arbo_el.kb.entity import Entity
from spacy_arbo_el.kb.knowledge_base import ArboKB

from ..devices import needs_fork
from ..linker.conftest import build_tiny
from ..linker.world import DEV, ENTITIES, annotated
from ..threads import wait_until

N_PROCESSES = 3
TEXTS = [*DEV[:3], "Nobody knew the [zorblat|x] yet."]


def links(nlp):
    linker = nlp.get_pipe("arbo_linker")
    found = linker.predict([annotated(nlp, text) for text in TEXTS])
    return [[link.kb_id, *link.ids, *link.scores] for of_doc in found for link in of_doc.values()]


def read(nlp, folder, calls, pipe):
    """Link so many times, and on until both states were read. Report the different answers."""
    nlp.get_pipe("arbo_linker").set_kb(folder)
    answers = []

    def has_read():
        nonlocal calls
        calls -= 1
        answer = links(nlp)
        if answer not in answers:
            answers.append(answer)
        return calls <= 0 and len(answers) > 1

    wait_until(has_read, "an answer from each of the two states")
    os.write(pipe, json.dumps(answers).encode())


@pytest.mark.attack
@needs_fork
def test_processes_read_one_state_while_another_edits(tiny_bert, tmp_path, attacks):
    threads, calls, edits = torch.get_num_threads(), attacks(15, 2500), 0
    # A forked process has no threads of torch.
    torch.set_num_threads(1)
    nlp = build_tiny(tiny_bert)
    folder, new = tmp_path / "kb", Entity("new", "zorblat")
    ArboKB(nlp.vocab, ENTITIES).to_disk(folder)
    nlp.get_pipe("arbo_linker").set_kb(folder)
    states = [links(nlp)]
    with ArboKB.open(folder) as kb:
        kb.add(new)
        states.append(links(nlp))
        assert "new" in states[1][-1] and "new" not in states[0][-1]
        pipes, processes = [os.pipe() for _ in range(N_PROCESSES)], []
        for _, pipe in pipes:
            process = os.fork()
            if not process:  # pragma: no cover - another process
                try:
                    read(nlp, folder, calls, pipe)
                except BaseException:
                    os.write(pipe, json.dumps(traceback.format_exc()).encode())
                os._exit(0)
            processes.append(process)
        running = set(processes)
        while running:
            for edit in (partial(kb.remove, "new"), partial(kb.add, new)):
                edit()
                time.sleep(0.005)
            edits += 2
            running = {process for process in running if os.waitpid(process, os.WNOHANG)[0] == 0}
    reports = []
    for reading, writing in pipes:
        os.close(writing)
        reports.append(json.loads(os.read(reading, 1 << 20)))
        os.close(reading)
    torch.set_num_threads(threads)
    documents = N_PROCESSES * calls * len(TEXTS)
    print(f"{documents} documents by {N_PROCESSES} processes, {edits} edits between")
    assert all(isinstance(r, list) for r in reports), "".join(
        r for r in reports if isinstance(r, str)
    )
    assert all(answer in states for report in reports for answer in report)
