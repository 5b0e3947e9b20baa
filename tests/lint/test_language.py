"""The docs, messages and comments say things as the field says them (DESIGN.md, rule 5)."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("*/README.md")]
SOURCES = [
    path
    for folder in ("spacy_arbo_el", "experiments", "benchmarks", "examples")
    for path in ROOT.glob(f"{folder}/**/*.*")
    if path.suffix in (".py", ".cfg", ".html", ".jinja")
]
BANNED = (
    "what is",
    "where there is none",
    "where there are none",
    "as they are",
    "take over",
    "takes over",
    "goes on",
    "by vectors",
    "of its own",
    "of their own",
    "none of ours",
    "by hand",
)
PATTERN = re.compile(rf"\b({'|'.join(BANNED)})\b", re.I)


def plain(text):
    """A text without line breaks: those of comments and of joined strings too."""
    return re.sub(r'[ \t]*"?\n[ \t]*(?:[#"]+ ?)?', " ", text)


@pytest.mark.parametrize("paths", [PAGES, SOURCES], ids=["pages", "sources"])
def test_no_banned_phrase(paths):
    assert len(paths) > 10
    found = [
        (str(path.relative_to(ROOT)), match[0], text[max(0, match.start() - 30) : match.end() + 30])
        for path in paths
        for text in [plain(path.read_text(encoding="utf8"))]
        for match in PATTERN.finditer(text)
    ]
    assert not found
