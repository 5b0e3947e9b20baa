"""British spellings of words, and the American ones of their stems."""

import re

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
_WORDS = {"grey": "gray", "mould": "mold"}
_LATER = re.compile(
    rf"(?<=[a-z]{{3}})(?:{'|'.join(_ENDINGS)})\Z|\A(?:{'|'.join(_WORDS)})\Z"
)


def american_stem(stem: str) -> str:
    """The American spelling of a stem that ``BRITISH`` matches, in the same case."""
    american = STEMS[stem.lower()]
    if stem.isupper():
        return american.upper()
    return american.capitalize() if stem[0].isupper() else american


def american(word: str) -> str:
    """A word in lower case as it is compared: "leukemia" for "leukaemia"."""
    plain = BRITISH.sub(lambda match: STEMS[match[0]], word)
    return _LATER.sub(lambda match: _ENDINGS.get(match[0]) or _WORDS[match[0]], plain)
