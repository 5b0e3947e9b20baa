"""Legal forms of companies, which texts leave out: "Alder" for "Alder Ltd"."""

import re

# Without full stops and spaces.
_FORMS = """
inc incorporated corp corporation co company ltd limited llc llp lp plc pllc pc lllp gmbh mbh ag
kg kgaa ohg gbr ug ev eg se gmbhcokg sa sas sarl sasu eurl snc sca spa srl sapa sl slu sau cv
sadecv bv nv vof cvba bvba ab hb as asa ans oy oyj aps is amba kk gk pty ptyltd pte pteltd pvt
pvtltd sdnbhd bhd jsc pjsc ojsc cjsc ooo oao zao pao spzoo sro doo dd ad ead eood ood kft zrt
nyrt rt ltda eireli tbk pt
"""
FORMS = frozenset(_FORMS.split())
_LETTERS = re.compile(r"[^a-z]")


def without_legal_form(name: str) -> str:
    """The name without the legal form at its end; "" for a name without one."""
    rest = name.strip()
    while (shorter := _shortened(rest)) is not None:
        rest = shorter
    return rest if rest != name.strip() else ""


def _shortened(name: str) -> str | None:
    """The name without one legal form, the longest; None where it has none or nothing else."""
    words = name.split()
    for count in range(min(4, len(words) - 1), 0, -1):
        form = _LETTERS.sub("", "".join(words[-count:]).lower())
        if form in FORMS:
            return " ".join(words[:-count]).rstrip(" ,&")
    return None
