"""British spellings, read as American ones: a dictionary's names often have only these."""

import re
from typing import Tuple

import numpy as np
from spacy.util import registry

from .text import Rewrite, inside_of, replace

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
# Not where the "o" ends another stem ("angi-o-edema", "gastr-o-esophageal"), nor in the names of
# species and drugs, which are the same everywhere.
_BUT = {
    "amoeb": "(?<![a-z])amoeb",
    "haem": "haem(?!ophilus|atox|onch)",
    "leuco": "leuco(?!vor)",
    "oedem": "(?<![cik])oedem",
    "oesoph": "(?<![a-z])oesoph",
}
_STEM = re.compile("|".join(_BUT.get(stem, stem) for stem in STEMS), re.IGNORECASE | re.ASCII)


@registry.misc("spacy-arbo-el.AmericanSpelling.v1")
def american_spelling() -> Rewrite:
    """Read the British spellings in mentions as American ones: "anaemia" as "anemia".

    RETURNS: Function (text, offsets) -> (text, offsets): mentions (n, 2) by start and end
        character, end exclusive. What stands outside of mentions stays as it is.
    """

    def respell(text: str, offsets: np.ndarray) -> Tuple[str, np.ndarray]:
        found = list(_STEM.finditer(text))
        if not found or not len(offsets):
            return text, offsets
        inside = inside_of(text, offsets)
        edits = [
            (*m.span(), _in_case_of(STEMS[m.group().lower()], m.group()))
            for m in found
            if inside[m.start() : m.end()].all()
        ]
        return replace(text, offsets, edits)

    return respell


def _in_case_of(new: str, old: str) -> str:
    if old.isupper():
        return new.upper()
    return new.capitalize() if old[0].isupper() else new
