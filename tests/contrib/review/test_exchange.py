"""Files for other tools: offsets as these count them, through the file and back."""

import json

import pytest
import spacy
from hypothesis import given
from hypothesis import strategies as st

from spacy_arbo_el.contrib.review.exchange import as_label_studio
from spacy_arbo_el.corpora.annotated import AnnotatedMention, AnnotatedText
from spacy_arbo_el.corpora.docs import to_doc
from spacy_arbo_el.corpora.read import read
from spacy_arbo_el.mentions.getters import EntSpans

NLP = spacy.blank("xx")
WORDS = st.text("abÄ💩👩\u200d🔬é\u0301中", min_size=1, max_size=4)
SPACES = st.sampled_from([" ", "\n", "\r\n", " 🙂 "])


def document(pieces):
    """A document of words and spaces in turns. The words at odd places are mentions."""
    text, mentions = "", []
    for number, (word, space) in enumerate(pieces):
        if number % 2:
            ids = ("D1",) if number % 4 == 1 else ()
            mentions.append(AnnotatedMention(len(text), len(text) + len(word), "X", ids))
        text += word + space
    return AnnotatedText("d", text, tuple(mentions))


def test_label_studio_has_the_words_and_utf_16_units():
    text = document([("💩", "\r\n"), ("fever", " ")])
    (task,) = json.loads(as_label_studio([to_doc(NLP, text)], EntSpans()))
    label, kb_id = (one["value"] for one in task["annotations"][0]["result"])
    assert label == {"start": 3, "end": 8, "text": "fever", "labels": ["X"]}
    assert kb_id == {"start": 3, "end": 8, "text": ["D1"]}


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return tmp_path_factory.mktemp("exchange") / "tasks.json"


@pytest.mark.filterwarnings("ignore:.*W104")
@given(pieces=st.lists(st.tuples(WORDS, SPACES), min_size=1, max_size=6))
def test_any_text_comes_back_from_label_studio_with_its_mentions(path, pieces):
    text = document(pieces)
    path.write_text(as_label_studio([to_doc(NLP, text)], EntSpans()), encoding="utf8")
    assert list(read(path, "label-studio")) == [text]
