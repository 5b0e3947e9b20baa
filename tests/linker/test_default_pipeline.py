"""What users do with the default pipeline: link, save, edit, correct; and what a call enters."""

import sys
import tracemalloc
from pathlib import Path

import pytest
import spacy
from spacy.tokens import Doc, Span

import spacy_arbo_el
from spacy_arbo_el import Entity, find_linker

from ..cases import cases
from ..default import MENTIONS, TEXT, links_in, marked


@pytest.fixture(scope="module")
def linked(default_nlp):
    return links_in(default_nlp(marked(default_nlp)))


def test_names_synonyms_and_abbreviations_are_linked_and_strangers_are_not(linked):
    assert [kb_id for _, kb_id, _ in linked] == [
        "kidney:failure",
        "kidney:infection",
        "liver:cancer",
        "stomach:bleeding",
        "NIL",
        "heart:ischemia",
    ]


@pytest.mark.parametrize("text, ids", cases("parts"))
def test_the_parts_of_a_mention_are_linked_all_or_none(default_nlp, text, ids):
    doc = default_nlp(marked(default_nlp, text, [text]))
    assert [part.kb_id_ for part in doc.spans.get("parts", [])] == ids


def test_pipe_gives_what_single_calls_give(default_nlp):
    texts = [TEXT, "No mention.", "A lung cyst or renal stone. " * 60, TEXT.upper()]
    mentions = [MENTIONS, [], ["lung cyst", "renal stone"], []]

    def docs():
        return [marked(default_nlp, *pair) for pair in zip(texts, mentions)]

    one_by_one = [links_in(default_nlp(doc)) for doc in docs()]
    assert len(one_by_one[2]) == 2
    for size in (1, 3, 64):
        piped = default_nlp.pipe(docs(), batch_size=size)
        assert [links_in(doc) for doc in piped] == one_by_one


def test_a_saved_pipeline_links_alike_and_encodes_no_entity_again(own_default, linked, monkeypatch):
    encoder = type(find_linker(own_default).encoder)
    monkeypatch.setattr(encoder, "encode_texts", lambda *_: pytest.fail("an entity was encoded"))
    assert links_in(own_default(marked(own_default))) == linked
    again = spacy.blank("en")
    again.add_pipe("arbo_linker").from_bytes(find_linker(own_default).to_bytes())
    assert links_in(again(marked(again))) == linked


def test_an_explanation_says_why_and_why_not(default_nlp):
    linker, doc = find_linker(default_nlp), default_nlp(marked(default_nlp))
    why = str(linker.explain(doc.ents[1]))
    assert "kidney:infection" in why
    assert "lung:infection" in str(linker.explain(doc.ents[1], "lung:infection"))
    assert "NIL" in str(linker.explain(doc.ents[4]))


def test_edits_and_corrections_count_at_once_and_are_saved(own_default, tmp_path):
    linker = find_linker(own_default)

    def now(nlp=own_default):
        return [ent.kb_id_ for ent in nlp(marked(nlp)).ents]

    linker.kb.add([Entity("zorblax", "Zorblax", "A drug.")])
    linker.kb.remove(["liver:cancer"])
    assert now()[4] == "zorblax"
    assert now()[2] != "liver:cancer"
    doc = own_default(marked(own_default))
    linker.feedback.learn(doc.ents[5], "heart:failure")
    linker.feedback.reject_link(doc.ents[1], "kidney:infection")
    after = now()
    assert after[5] == "heart:failure"
    assert after[1] != "kidney:infection"
    own_default.to_disk(tmp_path / "edited")
    assert now(spacy.load(tmp_path / "edited")) == after


ROOT = Path(spacy_arbo_el.__file__).parent
# Files and calls. Where 8-bit layers are not fast, ``encoders/quantized.py`` is one file less.
DOCUMENT, CALLS = 52, 1_700
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
    linker = find_linker(default_nlp)
    linker(marked(default_nlp, TEXT, MENTIONS[1:5]))
    doc = marked(default_nlp, TEXT, MENTIONS[1:5])
    files, calls = entered(lambda: linker(doc))
    assert len(files) <= DOCUMENT, files
    assert calls <= CALLS, calls


def test_saving_and_loading_enter_no_more_files_than_before(own_default, tmp_path):
    linker = find_linker(own_default)
    linker.to_disk(tmp_path / "linker")
    saved, _ = entered(lambda: linker.to_disk(tmp_path / "linker"))
    loaded, _ = entered(lambda: linker.from_disk(tmp_path / "linker"))
    assert len(saved) <= TO_DISK, saved
    assert len(loaded) <= FROM_DISK, loaded


def work_of(call):
    """The lines of the package that a call runs, each as often as it does, and its memory."""
    lines = 0

    def trace(frame, event, _):
        nonlocal lines
        lines += event == "line"
        return trace if frame.f_code.co_filename.startswith(str(ROOT)) else None

    tracemalloc.start()
    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(None)
        memory = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    return lines, memory


@pytest.mark.parametrize("name", ["Liver cancer", "Zorblax"])
def test_many_mentions_of_one_name_take_work_in_proportion(default_nlp, name):
    linker = find_linker(default_nlp)
    words, work = [*name.split(), "again", "."], []
    for count in (100, 300, 1200):
        doc = Doc(default_nlp.vocab, words * count)
        starts = range(0, len(doc), len(words))
        doc.ents = [Span(doc, start, start + len(words) - 2, "X") for start in starts]
        work.append(work_of(lambda doc=doc: linker(doc)))
    assert work[2][0] < 4**1.3 * work[1][0], work
    assert work[2][1] < 4**1.3 * work[1][1], work
