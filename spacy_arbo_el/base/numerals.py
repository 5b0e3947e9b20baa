"""Numbers in names, in digits: type II, type two and type 2 are one."""

import re

_UNITS = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
_UNITS += "sixteen seventeen eighteen nineteen"
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
_ORDINALS = "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth "
_ORDINALS += "thirteenth fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth"
CARDINALS = {word: number for number, word in enumerate(_UNITS.split(), 1)}
TENS = {word: 10 * number for number, word in enumerate(_TENS.split(), 2)}
ORDINALS = {word: number for number, word in enumerate(_ORDINALS.split(), 1)}
_TENTHS = {f"{word[:-1]}ieth": number for word, number in TENS.items()}
_BELOW_TEN = "|".join(w for w, n in (*CARDINALS.items(), *ORDINALS.items()) if n < 10)

_VALUES = {"i": 1, "v": 5, "x": 10}
# Without "x" alone, which is a chromosome more often than a ten.
_ROMAN = r"(?!x\b)(?:x{1,3}(?:ix|iv|v?i{0,3})|ix|iv|vi{0,3}|i{1,3})"
# Words of these letters.
_NO_ROMAN = frozenset(("via", "vic"))
_NUMBER = re.compile(
    rf"\b(?:(?P<tens>{'|'.join(TENS)})(?:[- ](?P<unit>{_BELOW_TEN}))?"
    rf"|(?P<tenth>{'|'.join(_TENTHS)})|(?P<ordinal>{'|'.join(ORDINALS)})|(?P<cardinal>{'|'.join(CARDINALS)})"
    rf"|(?P<digits>\d+)(?:st|nd|rd|th)|(?P<roman>{_ROMAN})(?P<part>[a-c]?))\b"
)
_DIGIT = re.compile(r"\d")
_GROUPED = re.compile(r"(?<![\d.,'])\d{1,3}(?:[,']\d{3})+(?![\d,'])")
_DECIMAL_COMMA = re.compile(r"(?<=\d),(?=\d)")
_HYPHEN = re.compile(r"(?<=[^\W\d_])-(?=\d)|(?<=\d)-(?=[^\W\d_])")
# Marks a number that is an ordinal, until it is moved.
_MARK = "\x00"
_LEADING = re.compile(rf"(?:the )?{_MARK}(\d+) (.+)", re.DOTALL)
_ARTICLE = re.compile(rf"\bthe (?={_MARK})")
_ORDINAL_DIGITS = re.compile(r"\d(?:st|nd|rd|th)\b")
_WORD = re.compile(r"[^\W\d_]+")
_WORDS = frozenset((*CARDINALS, *ORDINALS, *TENS, *_TENTHS))
_ROMAN_WORD = re.compile(rf"{_ROMAN}[a-c]?")


def with_plain_numbers(name: str) -> str:
    """A folded name with its numbers in digits. An ordinal that it begins with is at the end.

    So "second world war" and "world war ii" are the same, and "henry the fourth" and "henry iv".
    """
    text = name
    has_digits = _DIGIT.search(text) is not None
    if has_digits:
        text = _GROUPED.sub(lambda match: re.sub("[,']", "", match[0]), text)
        text = _DECIMAL_COMMA.sub(".", text)
    if has_number_words(text) or (has_digits and _ORDINAL_DIGITS.search(text)):
        text = _NUMBER.sub(_in_digits, text)
    elif not has_digits:
        return name
    text = _HYPHEN.sub(" ", text)
    leading = _LEADING.fullmatch(text)
    if leading:
        text = f"{leading[2]} {leading[1]}"
    return _ARTICLE.sub("", text).replace(_MARK, "")


def has_number_words(name: str) -> bool:
    """Return whether a folded name has numbers in words or Roman numerals."""
    return any(
        word in _WORDS or (word[0] in _VALUES and _ROMAN_WORD.fullmatch(word))
        for word in _WORD.findall(name)
    )


def _in_digits(match: "re.Match[str]") -> str:
    found = match.groupdict()
    if found["roman"]:
        is_word = match[0] in _NO_ROMAN
        return match[0] if is_word else f"{roman_value(found['roman'])}{found['part']}"
    if found["cardinal"]:
        return str(CARDINALS[found["cardinal"]])
    if found["tens"]:
        unit = found["unit"] or ""
        number = TENS[found["tens"]] + CARDINALS.get(unit, ORDINALS.get(unit, 0))
        return f"{_MARK if unit in ORDINALS else ''}{number}"
    if found["digits"]:
        return f"{_MARK}{found['digits']}"
    ordinal = found["ordinal"]
    return f"{_MARK}{ORDINALS[ordinal] if ordinal else _TENTHS[found['tenth']]}"


def roman_value(numeral: str) -> int:
    """The value of a Roman numeral below 40 in lower case."""
    values = [_VALUES[letter] for letter in numeral]
    smaller = [value < following for value, following in zip(values, values[1:])] + [False]
    return sum(-value if less else value for value, less in zip(values, smaller))
