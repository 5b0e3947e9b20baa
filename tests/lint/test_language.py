"""The docs, messages and comments say things as the field says them (DESIGN.md, rule 5)."""

import ast
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
MOST_WORDS = 16
# A docstring begins with a verb or a noun.
NOT_FIRST = ("what", "how", "which", "where", "why", "whether", "as", "from", "those", "when")


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


def test_docstrings_begin_with_a_short_sentence_and_a_verb_or_a_noun():
    found = [
        (str(path.relative_to(ROOT)), sentence)
        for path in ROOT.glob("spacy_arbo_el/**/*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf8")))
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef))
        for sentence in [re.split(r"(?<=\.)\s|\n\n", ast.get_docstring(node) or "")[0]]
        for words in [sentence.split()]
        if len(words) > MOST_WORDS or (words and words[0].lower() in NOT_FIRST)
    ]
    assert not found


# Openings of sentences without a verb.
FRAGMENT = re.compile(
    r"(Those|That of|The one of|The same|Each once|All or nothing|None for|None with|-1 for"
    r"|At least|Beside|In one step|Once in|Of |From |Such as|As in|As often|One per|One of"
    r"|Also of)\b"
)
VERB = re.compile(r"\b(is|are|was|were|has|have|had|can|may|must|[a-z]{3,}s|[a-z]{3,}ed)\b")


def test_no_docstring_has_a_sentence_without_a_verb():
    found = [
        (str(path.relative_to(ROOT)), sentence)
        for path in ROOT.glob("spacy_arbo_el/**/*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf8")))
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef))
        for paragraph in [(ast.get_docstring(node) or "").split("\n\n")[0]]
        for sentence in re.split(r"(?<=[.!?])\s+", " ".join(paragraph.split()))[1:]
        if FRAGMENT.match(sentence) and not VERB.search(sentence)
    ]
    assert not found
