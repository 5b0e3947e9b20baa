"""New entities as a page to look at."""

from html import escape
from typing import Iterable

from .found import Discovered, Member

# Mentions of an entity that are shown at once; the rest unfold.
SHOWN = 5

_HEAD = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title><style>
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto }}
section {{ border-top: 1px solid #ccc; padding: .5rem 0 }}
h2 {{ font-size: 1.1rem; margin: .3rem 0 }}
small, .near {{ color: #666 }}
mark {{ background: #fde68a; padding: 0 .2em; border-radius: .2em }}
ol {{ margin: .3rem 0; padding-left: 2rem }}
</style></head><body><h1>{title}</h1><p>{summary}</p>
"""


def to_html(found: Iterable[Discovered], title: str = "Not in the knowledge base") -> str:
    """A page of its own: each new entity with its mentions, and what of the KB comes near."""
    found = list(found)
    mentions = sum(len(one.members) for one in found)
    summary = f"{len(found)} new entities, {mentions} mentions."
    parts = [_HEAD.format(title=escape(title), summary=summary), *map(_section, found)]
    return "".join([*parts, "</body></html>\n"])


def _section(one: Discovered) -> str:
    shown, rest = one.members[:SHOWN], one.members[SHOWN:]
    unfolded = _list(rest, SHOWN)
    more = f"<details><summary>{len(rest)} more</summary>{unfolded}</details>" if rest else ""
    near = "; ".join(
        f"{escape(refused.title)} ({escape(refused.kb_id)}, {refused.chance:.2f}, "
        f"{escape(refused.why)})"
        for refused in one.nearest
    )
    return (
        f"<section id='{escape(one.id)}'><h2>{escape(one.name)} <small>{escape(one.id)} · "
        f"{len(one.members)} mentions in {one.documents} documents · cohesion "
        f"{one.cohesion:.2f}</small></h2>{_list(shown, 0)}{more}"
        f"<p class='near'>Nearest in the knowledge base: {near or 'nothing'}</p></section>\n"
    )


def _list(members: Iterable[Member], start: int) -> str:
    return f"<ol start='{start}'>" + "".join(map(_item, members)) + "</ol>"


def _item(member: Member) -> str:
    label = f" <small>{escape(member.label)}</small>" if member.label else ""
    return (
        f"<li>… {escape(member.before)} <mark>{escape(member.text)}</mark>{label} "
        f"{escape(member.after)} … <small>document {member.document + 1}</small></li>"
    )
