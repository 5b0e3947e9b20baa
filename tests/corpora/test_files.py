import json

import pytest
import spacy

from spacy_arbo_el.corpora.read import known_format_of, read, read_documents, read_ids
from spacy_arbo_el.kb import loaders
from spacy_arbo_el.storage.files import replacing
from spacy_arbo_el.storage.lines import check_exists, is_text, read_lines

from ..cases import cases


def test_read_lines_splits_only_at_line_feeds(write):
    path = write("\ufeffa\x0bb\u2028c\x85d\re\r\n\nlast")
    assert list(read_lines(path)) == [(1, "a\x0bb\u2028c\x85d\re"), (2, ""), (3, "last")]


def test_invalid_utf8_is_an_error_with_file_and_line(write):
    path = write(b"fine\n\xff\xfe\n")
    with pytest.raises(ValueError, match=r"input\.txt, line 2: the file isn't UTF-8"):
        list(read_lines(path))


def test_missing_file_is_an_error(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere.txt does not exist. Look again"):
        check_exists(tmp_path / "nowhere.txt", "Look again.")
    with pytest.raises(FileNotFoundError, match="does not exist"):
        list(read_lines(tmp_path / "nowhere.txt"))


def test_read_ids_reads_one_id_per_line(write):
    assert read_ids(write("1\n 2 \r\n\n1")) == {"1", "2"}


@pytest.mark.parametrize("name", ["file", "a/b/file", "link"])
def test_a_file_is_replaced_whole_or_not_at_all(tmp_path, name):
    path, target = tmp_path / name, tmp_path / "target"
    if name == "link":
        target.write_bytes(b"old")
        path.symlink_to(target)
    for content in (b"one", b"two"):
        with replacing(path) as file:
            file.write(content)
        with pytest.raises(KeyboardInterrupt), replacing(path) as file:
            file.write(b"ne")
            raise KeyboardInterrupt
        assert path.read_bytes() == content
    assert set(path.parent.iterdir()) == ({path, target} if name == "link" else {path})
    assert path.is_symlink() == (name == "link")


def test_a_lone_surrogate_is_no_text():
    assert is_text("🙂") and not is_text("\ud83d") and not is_text(1)


@pytest.mark.parametrize(("name", "content", "kind"), cases("files_of_other_kinds"))
def test_files_of_other_kinds_are_named(write, name, content, kind):
    path = write(content, name)
    with pytest.raises(ValueError, match=f"E119.*{kind}"):
        list(read(path, "jsonl"))
    with pytest.raises(ValueError, match=f"E119.*{kind}"):
        loaders.known_format_of(path)
    assert known_format_of(write("# text,x\n", "b.csv")) == "csv"


@pytest.mark.filterwarnings("error::ResourceWarning")
def test_rows_without_text_are_counted_and_tables_in_utf_16_are_closed(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text('id,text\na,Blue fever.\nb,\nc,"  "\n', "utf-16")
    for _ in range(2):
        with pytest.warns(UserWarning, match="2 documents without text were left out, .* 'b'"):
            docs = list(read_documents(path, spacy.blank("en")))
        assert [doc.text for doc in docs] == ["Blue fever."]


@pytest.mark.parametrize(("items", "format"), cases("wikidata_lists"))
def test_lists_of_items_of_wikidata_are_known_by_their_beginning(write, items, format):
    assert loaders.known_format_of(write(json.dumps(items), "items.json")) == format
