"""Normalization of British spellings to American ones. These are often all that a dictionary
has.
"""

import re
from dataclasses import dataclass
from typing import ClassVar, Tuple

import numpy as np
from spacy.util import registry

from .text import inside_of, replace

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
_STEM = re.compile(
    "|".join(_EXCEPTIONS.get(stem, stem) for stem in STEMS), re.IGNORECASE | re.ASCII
)


@registry.misc("spacy-arbo-el.AmericanSpelling.v1")
@dataclass(frozen=True)
class AmericanSpelling:
    """Normalizes British spellings in mentions: "anaemia" to "anemia".

    Use it where texts have both and the knowledge base has one, in biomedicine above all::

        [components.arbo_linker.mentions.normalizer]
        @misc = "spacy-arbo-el.AmericanSpelling.v1"
    """

    is_local: ClassVar[bool] = True

    def __call__(self, text: str, offsets: np.ndarray) -> Tuple[str, np.ndarray]:
        matches = list(_STEM.finditer(text))
        if not matches or not len(offsets):
            return text, offsets
        inside = inside_of(text, offsets)
        edits = [
            (*m.span(), _in_case_of(STEMS[m.group().lower()], m.group()))
            for m in matches
            if inside[m.start() : m.end()].all()
        ]
        return replace(text, offsets, edits)


def _in_case_of(new: str, old: str) -> str:
    """Write ``new`` in the case of ``old``. That is upper case, capitalized or lower case."""
    if old.isupper():
        return new.upper()
    return new.capitalize() if old[0].isupper() else new
