"""How many of our files and functions a call goes through.

The limits are lowered when a change allows it. A call may stay below them: what was compiled or
cached before, by other tests of the process, is not entered.
"""

import sys
from pathlib import Path

import spacy_arbo_el

from ..default import MENTIONS, TEXT, marked

ROOT = Path(spacy_arbo_el.__file__).parent
# Files and calls. Where 8-bit layers are not fast, ``encoders/quantized.py`` is one file less.
DOCUMENT, CALLS = 51, 1_700
TO_DISK = 31
FROM_DISK = 40


def entered(call):
    """The files that a call enters, and how many functions it calls."""
    files, calls = set(), 0

    def watch(frame, event, _):
        nonlocal calls
        path = frame.f_code.co_filename
        if event == "call" and path.startswith(str(ROOT)):
            files.add(Path(path).relative_to(ROOT).as_posix())
            calls += 1

    sys.setprofile(watch)
    try:
        call()
    finally:
        sys.setprofile(None)
    return sorted(files), calls


def test_a_document_with_four_mentions_enters_no_more_files_than_before(default_nlp):
    linker = default_nlp.get_pipe("arbo_linker")
    linker(marked(default_nlp, TEXT, MENTIONS[1:5]))
    doc = marked(default_nlp, TEXT, MENTIONS[1:5])
    files, calls = entered(lambda: linker(doc))
    assert len(files) <= DOCUMENT, files
    assert calls <= CALLS, calls


def test_saving_and_loading_enter_no_more_files_than_before(own_default, tmp_path):
    linker = own_default.get_pipe("arbo_linker")
    linker.to_disk(tmp_path / "linker")
    saved, _ = entered(lambda: linker.to_disk(tmp_path / "linker"))
    loaded, _ = entered(lambda: linker.from_disk(tmp_path / "linker"))
    assert len(saved) <= TO_DISK, saved
    assert len(loaded) <= FROM_DISK, loaded
