"""Chemical formulas among names."""

import re
from collections import Counter
from functools import lru_cache

from .spellings import compatible

_ELEMENTS = """
H He Li Be B C N O F Ne Na Mg Al Si P S Cl Ar K Ca Sc Ti V Cr Mn Fe Co Ni Cu Zn Ga Ge As Se Br Kr Rb
Sr Y Zr Nb Mo Tc Ru Rh Pd Ag Cd In Sn Sb Te I Xe Cs Ba La Ce Pr Nd Pm Sm Eu Gd Tb Dy Ho Er Tm Yb Lu
Hf Ta W Re Os Ir Pt Au Hg Tl Pb Bi Po At Rn Fr Ra Ac Th Pa U
"""
_GROUP = re.compile(
    rf"({'|'.join(sorted(_ELEMENTS.split(), key=len, reverse=True))})(\d{{0,3}})"
)
_FORMULA = re.compile(rf"(?:{_GROUP.pattern}){{1,12}}")


@lru_cache(maxsize=4096)
def atoms_of(name: str) -> frozenset[tuple[str, int]] | None:
    """How many atoms of each element a formula such as C2H5OH has; None for another name."""
    plain = compatible(name)
    if not _FORMULA.fullmatch(plain):
        return None
    atoms: Counter[str] = Counter()
    for element, count in _GROUP.findall(plain):
        atoms[element] += int(count or 1)
    return frozenset(atoms.items())
