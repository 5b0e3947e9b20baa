import pytest

from spacy_arbo_el.corpora.files import check_exists, is_text, read_ids, read_lines
from spacy_arbo_el.io import replacing


def test_lines_end_only_at_a_line_feed(write):
    path = write("\ufeffa\x0bb\u2028c\x85d\re\r\n\nlast")
    assert list(read_lines(path)) == [(1, "a\x0bb\u2028c\x85d\re"), (2, ""), (3, "last")]


def test_bytes_that_are_no_utf8_name_file_and_line(write):
    path = write(b"fine\n\xff\xfe\n")
    with pytest.raises(ValueError, match=r"input\.txt, line 2: the file isn't UTF-8"):
        list(read_lines(path))


def test_a_missing_file_says_so(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere.txt does not exist. Look again"):
        check_exists(tmp_path / "nowhere.txt", "Look again.")
    with pytest.raises(FileNotFoundError, match="does not exist"):
        list(read_lines(tmp_path / "nowhere.txt"))


def test_ids_one_a_line(write):
    assert read_ids(write("1\n 2 \r\n\n1")) == {"1", "2"}


def test_half_a_character_is_no_text():
    assert is_text("🙂")
    assert not is_text("\ud83d")
    assert not is_text(1)


def test_a_failure_midway_leaves_the_old_file_and_nothing_else(write, tmp_path):
    path = write("old")
    with pytest.raises(KeyboardInterrupt), replacing(path) as file:
        file.write(b"ne")
        raise KeyboardInterrupt
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_replacing_makes_folders_and_replaces(tmp_path):
    path = tmp_path / "a" / "b" / "file"
    for content in (b"one", b"two"):
        with replacing(path) as file:
            file.write(content)
        assert path.read_bytes() == content
    assert list(path.parent.iterdir()) == [path]


def test_a_link_stays_a_link(write, tmp_path):
    target, link = write("old"), tmp_path / "link"
    link.symlink_to(target)
    with replacing(link) as file:
        file.write(b"new")
    assert link.is_symlink()
    assert target.read_text() == "new"
