"""Documents written in parts come back in order, or nothing is written."""

import pytest
import spacy

from spacy_arbo_el.corpora.parts import write_parts
from spacy_arbo_el.corpora.reader import read_docs


@pytest.mark.parametrize("name", ["docs.spacy", "folder"])
def test_written_and_read(tmp_path, name):
    nlp = spacy.blank("en")
    texts = [f"document {n}" for n in range(7)]
    assert write_parts(map(nlp.make_doc, texts), tmp_path / name, part=3) == 7
    assert [doc.text for doc in read_docs(tmp_path / name, nlp.vocab)] == texts
    assert len(list(tmp_path.rglob("*.spacy"))) == (1 if name == "docs.spacy" else 3)

    def broken():
        yield nlp.make_doc("one")
        raise ValueError("no more")

    with pytest.raises(ValueError, match="no more"):
        write_parts(broken(), tmp_path / name, part=1)
    assert [doc.text for doc in read_docs(tmp_path / name, nlp.vocab)] == texts


def test_other_things_in_a_folder_stay(tmp_path):
    nlp = spacy.blank("en")
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "thesis.txt").write_text("all of it")
    with pytest.raises(ValueError, match="other things"):
        write_parts([nlp.make_doc("one")], tmp_path / "home")
    assert (tmp_path / "home" / "thesis.txt").read_text() == "all of it"
    assert write_parts([], tmp_path / "none") == 0
    assert list(read_docs(tmp_path / "none", nlp.vocab)) == []
