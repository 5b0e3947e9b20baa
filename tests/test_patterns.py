"""Regular expressions of all modules take time in proportion to the length of what they read."""

import importlib
import pkgutil
import re
import sys
from contextlib import suppress
from itertools import product
from time import thread_time

import pytest

import spacy_arbo_el

# They are matched at a place, or search some letters: no search begins at each of many characters.
MATCHED = {
    *("pubtator.TEXT_LINE", "webanno.TOKEN", "webanno.CELL", "obo._QUOTED", "firms._OF_FIRM"),
    *("words._QUALIFIED", "headings._AT_END", "headings._IN_BRACKETS", "files._TEMPORARY"),
    *("folding._LETTERS_BEFORE", "abbreviations._NUMBER", "tables.COMMENT"),
}
FEW, MANY = 250, 1000
USUAL = " a0\n中"


def patterns():
    """Those of texts: those of bytes read the beginning of a file alone."""
    for info in pkgutil.walk_packages(spacy_arbo_el.__path__, "spacy_arbo_el."):
        with suppress(ModuleNotFoundError):  # an extra that is not installed
            importlib.import_module(info.name)
        for name, value in getattr(sys.modules.get(info.name), "__dict__", {}).items():
            for pattern in value.values() if isinstance(value, dict) else [value]:
                if isinstance(pattern, re.Pattern) and isinstance(pattern.pattern, str):
                    yield pattern, f"{info.name.rpartition('.')[2]}.{name}" in MATCHED


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
    characters = sorted({*re.sub(r"\\.|\w", "", pattern.pattern), *USUAL})
    for short, text in zip(texts(characters, FEW), texts(characters, MANY)):
        long_seconds = seconds(pattern, text, is_matched)
        # What takes no millisecond takes no second where the text is a hundred times as long.
        if long_seconds >= 1e-3:
            # The least of some ratios, as a measurement may be disturbed.
            tries = (
                seconds(pattern, text, is_matched) / seconds(pattern, short, is_matched)
                for _ in range(5)
            )
            ratio = next((ratio for ratio in tries if ratio < 10), 10)
            assert ratio < 10, f"{ratio:.1f} times for {text[:9]!r}…{text[-9:]!r}"
