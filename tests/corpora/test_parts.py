"""Corpora of several files: order, and failures while writing."""

import pytest
import spacy

from spacy_arbo_el.corpora.docbin import read_docs, write_parts


@pytest.mark.parametrize("name", ["docs.spacy", "folder"])
def test_documents_are_read_in_the_order_written_and_failures_keep_them(tmp_path, name):
    nlp = spacy.blank("en")
    texts = [f"document {n}" for n in range(7)]
    assert write_parts(map(nlp.make_doc, texts), tmp_path / name, part=3) == 7
    assert [doc.text for doc in read_docs(tmp_path / name, nlp.vocab)] == texts
    assert len(list(tmp_path.rglob("*.spacy"))) == (1 if name == "docs.spacy" else 3)

    def failing():
        yield nlp.make_doc("one")
        raise ValueError("no more")

    with pytest.raises(ValueError, match="no more"):
        write_parts(failing(), tmp_path / name, part=1)
    assert [doc.text for doc in read_docs(tmp_path / name, nlp.vocab)] == texts


def test_folder_with_other_files_is_an_error_and_is_kept(tmp_path):
    nlp = spacy.blank("en")
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "thesis.txt").write_text("all of it")
    with pytest.raises(ValueError, match="holds other files.*thesis.txt"):
        write_parts([nlp.make_doc("one")], tmp_path / "home")
    assert (tmp_path / "home" / "thesis.txt").read_text() == "all of it"
    assert write_parts([], tmp_path / "none") == 0
    assert list(read_docs(tmp_path / "none", nlp.vocab)) == []
