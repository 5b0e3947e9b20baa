"""How many of our files and functions a document goes through. The numbers may only fall."""

import sys
from pathlib import Path

import spacy_arbo_el

from ..default import MENTIONS, TEXT, marked

ROOT = Path(spacy_arbo_el.__file__).parent
# Where 8-bit layers are fast, ``encoders/quantized.py`` is one file more.
FILES, CALLS = 52, 1_510


def test_a_document_with_four_mentions_enters_no_more_files_than_before(default_nlp):
    linker = default_nlp.get_pipe("arbo_linker")
    doc, files, calls = marked(default_nlp, TEXT, MENTIONS[1:5]), set(), 0
    linker(marked(default_nlp, TEXT, MENTIONS[1:5]))

    def watch(frame, event, _):
        nonlocal calls
        path = frame.f_code.co_filename
        if event == "call" and path.startswith(str(ROOT)):
            files.add(Path(path).relative_to(ROOT).as_posix())
            calls += 1

    sys.setprofile(watch)
    try:
        linker(doc)
    finally:
        sys.setprofile(None)
    assert len(files) <= FILES, sorted(files)
    assert calls <= CALLS, calls
    # Both are lowered whenever a change allows it.
    assert FILES - len(files) < 3, len(files)
    # From Python 3.12 on, comprehensions are no calls.
    if sys.version_info < (3, 12):
        assert CALLS - calls < 60, calls
