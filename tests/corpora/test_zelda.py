"""The ZELDA reader: mentions outside their text, overlaps, texts without mentions, titles."""

import json
from collections import Counter

import pytest

from spacy_arbo_el.corpora.convert import convert_corpus
from spacy_arbo_el.corpora.reader import read_docs
from spacy_arbo_el.corpora.zelda import read_zelda


def record(text, *mentions, **other):
    """mentions: (start, end, title) of each."""
    return {
        "id": 7,
        "text": text,
        "index": [[start, end] for start, end, _ in mentions],
        "wikipedia_titles": [title for _, _, title in mentions],
        "wikipedia_ids": [number for number, _ in enumerate(mentions)],
        **other,
    }


@pytest.fixture
def zelda(write):
    return lambda *records: write("\n".join(map(json.dumps, records)), "zelda.jsonl")


def test_mentions_link_to_titles(zelda):
    (text,) = read_zelda(zelda(record("Good movie.", (5, 10, "Film"))))
    (mention,) = text.mentions
    assert (text.id, mention.start, mention.end, mention.kb_ids) == ("7", 5, 10, ("Film",))


def test_mention_that_ends_after_its_text_is_left_out_counted_and_reported(zelda, nlp, tmp_path):
    path = zelda(record("In Canada.\n", (0, 2, "In"), (3, 14, "Canada"), (20, 25, "X")))
    counts = Counter()
    (text,) = read_zelda(path, counts)
    assert [m.kb_ids for m in text.mentions] == [("In",)] and counts["outside"] == 2
    with pytest.warns(UserWarning, match=r"W830.*zelda.jsonl: 2 mentions end after their text"):
        counts = convert_corpus(path, tmp_path / "o.spacy", format="zelda", nlp=nlp)
    assert (counts["mentions"], counts["outside"]) == (1, 2)


@pytest.mark.parametrize("start, end", [(-1, 2), (2, 2), (5, 3)])
def test_other_impossible_offsets_are_errors(zelda, start, end):
    with pytest.raises(ValueError, match=rf"line 1: mention 1: a mention from {start} to {end}"):
        list(read_zelda(zelda(record("In Canada.", (start, end, "Canada")))))


def test_overlapping_mentions_are_kept_in_the_span_group(zelda, nlp, tmp_path):
    path = zelda(record("(gut flora)", (1, 10, "Gut flora"), (5, 10, "Flora")))
    with pytest.warns(UserWarning, match="W101.*1 mentions overlap"):
        counts = convert_corpus(path, tmp_path / "o.spacy", format="zelda", nlp=nlp)
    assert (counts["mentions"], counts["overlapping"]) == (2, 1)
    (doc,) = read_docs(tmp_path / "o.spacy", nlp.vocab)
    assert [span.kb_id_ for span in doc.ents] == ["Gut flora"]
    assert {span.kb_id_ for span in doc.spans["mentions"]} == {"Gut flora", "Flora"}


def test_texts_without_mentions_are_documents(zelda, nlp, tmp_path):
    path = zelda(record("Nothing.", id="a"), record("Film.", (0, 4, "Film"), id="b"))
    counts = convert_corpus(path, tmp_path / "o.spacy", format="zelda", nlp=nlp)
    assert (counts["docs"], counts["mentions"]) == (2, 1)


@pytest.mark.parametrize(
    "title, expected",
    [
        ("The_Wild,_the_Innocent", "The Wild, the Innocent"),
        ("100% Wolf", "100% Wolf"),
        ("100%25_Wolf", "100%25 Wolf"),
        ("AT&T", "AT&T"),
    ],
)
def test_underscores_are_spaces_and_percent_signs_stay(zelda, title, expected):
    (text,) = read_zelda(zelda(record("Film.", (0, 4, title))))
    assert text.mentions[0].kb_id == expected


@pytest.mark.parametrize(
    "changes, problem",
    [
        ({"index": None}, "'index' must be a list"),
        ({"index": [[0, 4], [0, 4]]}, "'index' has 2 mentions, 'wikipedia_titles' 1"),
        ({"index": [[0]]}, "mention 1: 'index' must have pairs"),
        ({"index": [[0, True]]}, "mention 1: an offset must be a whole number"),
        ({"wikipedia_titles": None}, "'wikipedia_titles' must be a list"),
        ({"wikipedia_titles": ["NIL"]}, "mention 1: 'NIL' can't be the title"),
        ({"wikipedia_titles": ["a|b"]}, r"mention 1: 'a\|b' can't be the title"),
        ({"wikipedia_ids": [1, 2]}, "'wikipedia_ids' must be a list as long as"),
        ({"wikipedia_ids": ["1"]}, "mention 1: the number of the article"),
    ],
)
def test_invalid_lines_are_errors_with_line_and_problem(zelda, changes, problem):
    path = zelda(record("Nothing.", id="a"), {**record("Film.", (0, 4, "Film")), **changes})
    with pytest.raises(ValueError, match=f"zelda.jsonl, line 2: {problem}"):
        list(read_zelda(path))


@pytest.mark.parametrize(
    "split, docs, mentions, overlapping, outside, empty",
    [
        ("tweeki", 500, 860, 0, 0, 14),
        ("reddit-posts", 377, 704, 1, 0, 0),
        ("wned-wiki", 319, 6764, 0, 1, 0),
    ],
)
@pytest.mark.filterwarnings("ignore:.*(overlap|end after)")
def test_numbers_of_the_real_files(
    data_dir, nlp, tmp_path, split, docs, mentions, overlapping, outside, empty
):
    path, out = data_dir / "zelda" / f"test_{split}.jsonl", tmp_path / "o.spacy"
    counts = convert_corpus(path, out, format="zelda", nlp=nlp)
    assert (counts["docs"], counts["mentions"]) == (docs, mentions)
    assert (counts["overlapping"], counts["outside"]) == (overlapping, outside)
    read = list(read_docs(out, nlp.vocab))
    assert sum(not doc.spans["mentions"] for doc in read) == empty
