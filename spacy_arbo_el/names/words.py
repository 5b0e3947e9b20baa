"""Words and numbers in names, to compare names by, and the American spelling of British words."""

import re
from collections.abc import Collection

# Without "x", which is a chromosome more often than a ten.
ROMAN = {"i": "1", "ii": "2", "iii": "3", "iv": "4", "v": "5", "vi": "6", "vii": "7"}
ROMAN.update({"viii": "8", "ix": "9"})
# Endings of plurals, and what they are in the singular. The first that fits counts.
PLURALS = (
    ("sses", "ss"),
    ("oses", "osis"),
    ("itides", "itis"),
    ("ies", "y"),
    ("s", ""),
)
# Not plurals, though they end in "s".
SINGULARS = ("ss", "is", "us")
# Words that change a name into another one's.
NEGATING = frozenset(
    ["no", "non", "not", "anti", "pseudo", "para", "pre", "post", "un", "without"]
)
# Shorter words stay unchanged.
MIN_PLURAL = 4

# A name with an ending in brackets, as titles of articles have it.
_QUALIFIED = re.compile(r"(.*\S)\s+\([^()]+\)")
_WORD = re.compile(r"[^\W\d_]+|\d+")
# Stems of medicine and everyday words: "ae" and "oe" in general would spoil "aerobic" or "Joel".
STEMS = {
    "aemi": "emi",
    "aetiolog": "etiolog",
    "amoeb": "ameb",
    "anaesth": "anesth",
    "behaviour": "behavior",
    "caec": "cec",
    "coeliac": "celiac",
    "colour": "color",
    "faec": "fec",
    "fibre": "fiber",
    "foet": "fet",
    "gynaec": "gynec",
    "haem": "hem",
    "humour": "humor",
    "leuco": "leuko",
    "odour": "odor",
    "oedem": "edem",
    "oesoph": "esoph",
    "oestr": "estr",
    "orthopaed": "orthoped",
    "paediatr": "pediatr",
    "pnoea": "pnea",
    "rrhoea": "rrhea",
    "sulph": "sulf",
    "tumour": "tumor",
}
# Stems that are replaced in some words only. The "o" may end the stem before it ("angi-o-edema",
# "gastr-o-esophageal"), and names of species and drugs are spelled the same everywhere.
_EXCEPTIONS = {
    "amoeb": "(?<![a-z])amoeb",
    "haem": "haem(?!ophilus|atox|onch)",
    "leuco": "leuco(?!vor)",
    "oedem": "(?<![cik])oedem",
    "oesoph": "(?<![a-z])oesoph",
}
BRITISH = re.compile(
    "|".join(_EXCEPTIONS.get(stem, stem) for stem in STEMS), re.IGNORECASE | re.ASCII
)

# Endings of longer words, and a few words. They tell whether two words are the same; they are not
# written, as "exercise" and "contour" have them everywhere.
_ENDINGS = {
    "our": "or",
    "tre": "ter",
    "ise": "ize",
    "isation": "ization",
    "yse": "yze",
}
_AMERICAN = {"grey": "gray", "mould": "mold"}
_LATER = re.compile(
    rf"(?<=[a-z]{{3}})(?:{'|'.join(_ENDINGS)})\Z|\A(?:{'|'.join(_AMERICAN)})\Z"
)


def words_of(string: str) -> list[str]:
    """Words of a string in lower case and singular, and numbers, also Roman ones up to IX."""
    return [
        ROMAN.get(word) or singular(word) for word in _WORD.findall(string.lower())
    ]


def singular(word: str) -> str:
    """Singular of a lowercase English word, where regular."""
    if word[-1:] != "s" or len(word) < MIN_PLURAL or word.endswith(SINGULARS):
        return word
    for ending, replacement in PLURALS:
        if word.endswith(ending):
            return word[: -len(ending)] + replacement
    return word


def plural(word: str) -> str:
    """The regular plural of an English noun in lower case."""
    if word.endswith("itis"):
        return f"{word[:-1]}des"
    if word.endswith("sis"):
        return f"{word[:-2]}es"
    if word.endswith("y") and word[-2:-1] not in "aeiou":
        return f"{word[:-1]}ies"
    return word + ("es" if word.endswith(("s", "x", "z", "ch", "sh")) else "s")


def numbers_among(words: Collection[str]) -> frozenset[str]:
    return frozenset(word for word in words if word.isdigit())


def without_qualifier(name: str) -> str:
    """ "Mercury" for "Mercury (planet)"; "" for a name without such an ending."""
    match = _QUALIFIED.fullmatch(name)
    return match.group(1) if match else ""


_UNITS = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
_UNITS += "sixteen seventeen eighteen nineteen"
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
_ORDINALS = "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth "
_ORDINALS += (
    "thirteenth fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth"
)
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
_LETTER_WORD = re.compile(r"[^\W\d_]+")
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
        for word in _LETTER_WORD.findall(name)
    )


def _in_digits(match: "re.Match[str]") -> str:
    groups = match.groupdict()
    if groups["roman"]:
        is_word = match[0] in _NO_ROMAN
        return (
            match[0] if is_word else f"{roman_value(groups['roman'])}{groups['part']}"
        )
    if groups["cardinal"]:
        return str(CARDINALS[groups["cardinal"]])
    if groups["tens"]:
        unit = groups["unit"] or ""
        number = TENS[groups["tens"]] + CARDINALS.get(unit, ORDINALS.get(unit, 0))
        return f"{_MARK if unit in ORDINALS else ''}{number}"
    if groups["digits"]:
        return f"{_MARK}{groups['digits']}"
    ordinal = groups["ordinal"]
    return f"{_MARK}{ORDINALS[ordinal] if ordinal else _TENTHS[groups['tenth']]}"


def roman_value(numeral: str) -> int:
    """The value of a Roman numeral below 40 in lower case."""
    values = [_VALUES[letter] for letter in numeral]
    pairs = zip(values, [*values[1:], 0])
    return sum(-value if value < following else value for value, following in pairs)


def american_stem(stem: str) -> str:
    """The American spelling of a stem that ``BRITISH`` matches, in the same case."""
    american = STEMS[stem.lower()]
    if stem.isupper():
        return american.upper()
    return american.capitalize() if stem[0].isupper() else american


def american(word: str) -> str:
    """A word in lower case as it is compared: "leukemia" for "leukaemia"."""
    plain = BRITISH.sub(lambda match: STEMS[match[0]], word)
    return _LATER.sub(
        lambda match: _ENDINGS.get(match[0]) or _AMERICAN[match[0]], plain
    )
