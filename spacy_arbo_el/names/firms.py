"""Names of firms: their legal forms, and what else texts leave out of them."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from ..base.bundled import are_english_words
from .words import without_qualifier

# Legal forms of companies, which texts leave out: "Alder" for "Alder Ltd". Without full stops and
# spaces.
_FORMS = """
inc incorporated corp corporation co company ltd limited llc llp lp plc pllc pc lllp gmbh mbh ag
kg kgaa ohg gbr ug ev eg se gmbhcokg sa sas sarl sasu eurl snc sca spa srl sapa sl slu sau cv
sadecv bv nv vof cvba bvba ab hb as asa ans oy oyj aps is amba kk gk pty ptyltd pte pteltd pvt
pvtltd sdnbhd bhd jsc pjsc ojsc cjsc ooo oao zao pao spzoo sro doo dd ad ead eood ood kft zrt
nyrt rt ltda eireli tbk pt uab sprl scrl lda sgps ehf dooel shpk sagl saog saoc eirl spolsro
akcspol unlimited ultd gesbr commv vzw sicav
"""
FORMS = frozenset(_FORMS.split())
_LETTERS = re.compile(r"[^a-z]")
# What else texts leave out of a firm's name.
_FIRM_WORD = "(?:holdings?|group)"
_OF_FIRM = re.compile(rf"(?:the )?(.*\S)\s+{_FIRM_WORD}|the (.+)", re.IGNORECASE)
_BEGINS_WITH = re.compile(rf"{_FIRM_WORD}\b", re.IGNORECASE)


def without_legal_form(name: str) -> str:
    """The name without the legal form at its end; "" for a name without one."""
    shorter_name = name.strip()
    while (shorter := _without_one_form(shorter_name)) is not None:
        shorter_name = shorter
    return shorter_name if shorter_name != name.strip() else ""


class FirmForms(NamedTuple):
    """What texts write of a firm's name.

    bare: The name without its legal form, then without whatever else texts leave out, in turn:
        "Quin Bell (Holdings)" and "Quin Bell" of "Quin Bell (Holdings) Ltd".
    short: The words that it begins with: "Halix" of "Halix Oil & Gas Inc.". The last of them is all
        but the legal form. None is made of words of the language alone, such as "General". A name
        without a legal form has none.
    """

    bare: list[str]
    short: list[str]


def firm_forms(name: str) -> FirmForms:
    """The forms of a firm's name. Of another name there may be bare ones, without a qualifier."""
    forms: list[str] = []
    is_firm = False
    shorter = name
    while shorter:
        firm = without_legal_form(shorter)
        is_firm = is_firm or bool(firm)
        words = _OF_FIRM.fullmatch(shorter) if is_firm else None
        shorter = (
            firm
            or without_qualifier(shorter)
            or (words and (words[1] or words[2]))
            or ""
        )
        forms.append(shorter)
    bare = forms[:-1]
    return FirmForms(bare, _beginnings(bare[-1].split()) if is_firm else [])


def _beginnings(words: Sequence[str]) -> list[str]:
    beginnings = [
        " ".join(words[:count])
        for count, word in enumerate(words, 1)
        if count == len(words) or word != word.lower()
    ]
    return [name for name in beginnings if not are_english_words(name)]


def begins_with_firm_word(text: str) -> bool:
    """Return whether a text begins with a word that a firm's name ends with, such as "group"."""
    return _BEGINS_WITH.match(text) is not None


def is_legal_form(text: str) -> bool:
    """Return whether a text is a legal form and nothing else: "ASA", "S.A.", "Ltd."."""
    return _LETTERS.sub("", text.lower()) in FORMS and not any(map(str.isdigit, text))


def _without_one_form(name: str) -> str | None:
    """The name without one legal form, the longest; None where it has none or nothing else."""
    words = name.split()
    for count in range(min(4, len(words) - 1), 0, -1):
        if is_legal_form("".join(words[-count:])) and not _is_other_word(words):
            return " ".join(words[:-count]).rstrip(" ,&")
    return None


def _is_other_word(words: Sequence[str]) -> bool:
    """Return whether the last word is no legal form in its place.

    So are "Scleroderma, Limited", "Hardball (production company)" and "Women's +75 kg".
    """
    *_, last_but_one, last = words
    is_kind = last.lower() == "limited" and last_but_one.endswith(",")
    is_unit = last.islower() and last_but_one[-1].isdigit()
    in_brackets = last.endswith(")") and "(" not in last
    return is_unit or in_brackets or (is_kind and not is_legal_form(last_but_one))
