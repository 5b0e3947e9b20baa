import pytest

from spacy_arbo_el.corpora.read import read_ids
from spacy_arbo_el.storage.files import replacing
from spacy_arbo_el.storage.lines import check_exists, is_text, read_lines


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


def test_lone_surrogate_is_no_text():
    assert is_text("🙂")
    assert not is_text("\ud83d")
    assert not is_text(1)


def test_failed_write_keeps_the_previous_file_and_leaves_no_other(write, tmp_path):
    path = write("old")
    with pytest.raises(KeyboardInterrupt), replacing(path) as file:
        file.write(b"ne")
        raise KeyboardInterrupt
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_replacing_creates_folders_and_replaces_files(tmp_path):
    path = tmp_path / "a" / "b" / "file"
    for content in (b"one", b"two"):
        with replacing(path) as file:
            file.write(content)
        assert path.read_bytes() == content
    assert list(path.parent.iterdir()) == [path]


def test_replacing_keeps_symbolic_links(write, tmp_path):
    target, link = write("old"), tmp_path / "link"
    link.symlink_to(target)
    with replacing(link) as file:
        file.write(b"new")
    assert link.is_symlink()
    assert target.read_text() == "new"
