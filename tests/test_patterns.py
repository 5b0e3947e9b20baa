"""Regular expressions of all modules take time in proportion to the length of what they read."""

import importlib
import pkgutil
import re
from itertools import product
from time import thread_time

import pytest

import spacy_arbo_el

# They are matched at a place, or search some letters: no search begins at each of many characters.
MATCHED = {
    *("pubtator.TEXT_LINE", "webanno.TOKEN", "webanno.CELL", "obo._QUOTED", "words._OF_FIRM"),
    *("words._QUALIFIED", "headings._AT_END", "headings._IN_BRACKETS", "files._TEMPORARY"),
    *("folding._LETTERS_BEFORE", "abbreviations._NUMBER"),
    *("json_documents.OWN_KEY", "bioc.START", "prodigy.START"),
    *("label_studio.START", "pubtator.START", "webanno.START"),
}
FEW, MANY = 250, 1000
USUAL = " a0\n中"


def patterns():
    for module in pkgutil.walk_packages(spacy_arbo_el.__path__, "spacy_arbo_el."):
        for name, value in vars(importlib.import_module(module.name)).items():
            for pattern in value.values() if isinstance(value, dict) else [value]:
                if isinstance(pattern, re.Pattern):
                    yield pattern, f"{module.name.rpartition('.')[2]}.{name}" in MATCHED


def texts(characters, count):
    """Texts that repeat one character or two, with another before or behind."""
    for first, second in product(characters, characters):
        yield from (count // 2 * (first + second), first + count * second, count * first + second)


def seconds(pattern, text, is_matched):
    """The least of some tries, as others may be at work."""
    times = []
    for _ in range(3):
        start = thread_time()
        if is_matched:
            pattern.match(text), pattern.fullmatch(text)
        else:
            pattern.findall(text)
        times.append(thread_time() - start)
        if times[-1] < 1e-3:
            break
    return min(times)


PATTERNS = sorted(set(patterns()), key=repr)


@pytest.mark.parametrize("pattern, is_matched", PATTERNS)
def test_a_text_that_is_four_times_as_long_takes_four_times_as_long(pattern, is_matched):
    is_bytes = isinstance(pattern.pattern, bytes)
    written = pattern.pattern.decode() if is_bytes else pattern.pattern
    characters = sorted({*re.sub(r"\\.|\w", "", written), *USUAL})
    for short, text in zip(texts(characters, FEW), texts(characters, MANY)):
        short, text = (short.encode(), text.encode()) if is_bytes else (short, text)
        long_seconds = seconds(pattern, text, is_matched)
        # What takes no millisecond takes no second where the text is a hundred times as long.
        if long_seconds >= 1e-3:
            ratio = long_seconds / seconds(pattern, short, is_matched)
            assert ratio < 10, f"{ratio:.1f} times for {text[:9]!r}…{text[-9:]!r}"
