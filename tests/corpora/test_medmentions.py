"""The MedMentions reader: offsets, ids, and errors."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_arbo_el.corpora.medmentions import read_medmentions


def write(path, *records):
    path.write_text("\n".join(json.dumps(record) for record in records), "utf8")
    return path


def test_mentions_are_at_the_offsets_of_their_tokens(tmp_path):
    sentences = [
        {"tokens": ["Cystic", "fibrosis", "."], "mentions": [[0, 2, "C1", "Cystic fibrosis"]]},
        {"tokens": ["Pa", "infects", "."], "mentions": [[0, 1, "C2", "Pa"], [1, 2, "C3", "x"]]},
    ]
    (text,) = read_medmentions(write(tmp_path / "a", {"pmid": "7", "sents": sentences}))
    assert text.id == "7" and text.text == "Cystic fibrosis . Pa infects ."
    mentions = [(text.text[m.start : m.end], m.kb_ids) for m in text.mentions]
    assert mentions == [("Cystic fibrosis", ("C1",)), ("Pa", ("C2",)), ("infects", ("C3",))]


@pytest.mark.parametrize(
    "record, problem",
    [
        ({"pmid": "1"}, "'sents' is missing"),
        ({"pmid": 1, "sents": []}, "'pmid' must be a string"),
        ({"pmid": "0", "sents": []}, "used before, in line 1"),
        ({"pmid": "1", "sents": [{"tokens": ["a"]}]}, "'mentions' is missing"),
        ({"pmid": "1", "sents": [{"tokens": ["a"], "mentions": [[0, 2, "C", "a"]]}]}, "0 to 2"),
        ({"pmid": "1", "sents": [{"tokens": ["a"], "mentions": [[1, 1, "C", "a"]]}]}, "1 to 1"),
        ({"pmid": "1", "sents": [{"tokens": [""], "mentions": []}]}, "none empty"),
        ({"pmid": "1", "sents": [{"tokens": "abc", "mentions": []}]}, "must be a list"),
        ({"pmid": "1", "sents": [{"tokens": ["a"], "mentions": [[0, 1, 7, "a"]]}]}, "concept"),
        ({"pmid": "1", "sents": [3]}, "line 2"),
    ],
)
def test_invalid_line_is_an_error_with_line_and_problem(tmp_path, record, problem):
    path = write(tmp_path / "a", {"pmid": "0", "sents": []}, record)
    with pytest.raises(ValueError, match="line 2") as error:
        list(read_medmentions(path))
    assert problem in str(error.value)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 3) | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["pmid", "sents", "tokens", "mentions"]), inner, max_size=4
        )
    ),
    max_leaves=12,
)


@given(json_values)
def test_any_json_is_a_valid_document_or_an_error_with_its_line(tmp_path_factory, value):
    path = write(tmp_path_factory.mktemp("fuzz") / "a", value)
    try:
        for text in read_medmentions(path):
            assert all(text.text[m.start : m.end].strip() for m in text.mentions)
    except ValueError as error:
        assert "line 1" in str(error)
