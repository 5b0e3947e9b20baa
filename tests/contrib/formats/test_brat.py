"""Mentions of brat are read with their places, also where a line break divides them."""

import gzip

import pytest

from spacy_arbo_el.corpora.read import read


@pytest.mark.parametrize(
    "text, place, words",
    [
        ("He had blue\nfever.", "7 11;12 17", ["blue\nfever"]),
        ("He had blue \n  fever.", "7 11;15 20", ["blue \n  fever"]),
        ("He had grey\nblue\nfever.", "7 11;12 16;17 22", ["grey\nblue\nfever"]),
        ("He had blue and fever.", "7 11;16 21", []),
    ],
)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_pieces_with_white_space_alone_between_are_one_mention(tmp_path, text, place, words):
    (tmp_path / "a.txt").write_text(text)
    written = " ".join("".join(words).split()) or "blue fever"
    (tmp_path / "a.ann").write_text(f"T1\tDIS {place}\t{written}\n")
    (document,) = read(tmp_path / "a.ann", "brat")
    assert [text[mention.start : mention.end] for mention in document.mentions] == words


def test_files_may_have_names_in_capitals_and_be_packed(tmp_path):
    for name, content in (("A.TXT", b"Gout."), ("A.ANN", b"T1\tD 0 4\tGout\n")):
        (tmp_path / name).write_bytes(content)
        (tmp_path / f"b{name[1:].lower()}.gz").write_bytes(gzip.compress(content))
    assert [document.id for document in read(tmp_path, "brat")] == ["A", "b"]
    (document,) = read(tmp_path / "b.txt.gz", "brat")
    assert [mention.label for mention in document.mentions] == ["D"]


@pytest.mark.parametrize("name", ["İ.ann", "İ.ann.GZ", "a.b.ann", "İ"])
def test_the_text_is_found_by_the_name_without_its_suffix(tmp_path, name):
    content = b"T1\tD 0 4\tGout\n"
    path = tmp_path / name
    path.write_bytes(gzip.compress(content) if name.endswith(".GZ") else content)
    base = name.partition(".ann")[0]
    path.with_name(f"{base}.txt").write_text("Gout.")
    if path.name == base:
        path.with_name(f"{base}.ann").write_bytes(content)
    (document,) = read(path, "brat")
    assert document.id == base
