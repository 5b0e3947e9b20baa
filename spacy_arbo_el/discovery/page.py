"""New entities as an HTML page."""

from typing import Iterable

from ..markup import escaped
from ..mentions.records import MentionRecord
from .entities import NewEntity, one_line

# How many mentions of an entity are shown at once; the others can be unfolded.
N_SHOWN = 5

_HEAD = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title><style>
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto }}
section {{ border-top: 1px solid #ccc; padding: .5rem 0 }}
h2 {{ font-size: 1.1rem; margin: .3rem 0 }}
small, .nearest {{ color: #666 }}
mark {{ background: #fde68a; padding: 0 .2em; border-radius: .2em }}
ol {{ margin: .3rem 0; padding-left: 2rem }}
</style></head><body><h1>{title}</h1><p>{summary}</p>
"""


def to_html(entities: Iterable[NewEntity], title: str = "Not in the knowledge base") -> str:
    """A complete page: each new entity with its mentions and its nearest entities of the KB."""
    entities = list(entities)
    mentions = sum(len(entity.members) for entity in entities)
    summary = f"{len(entities)} new entities, {mentions} mentions."
    parts = [_HEAD.format(title=escaped(title), summary=summary), *map(_section, entities)]
    return "".join([*parts, "</body></html>\n"])


def _section(entity: NewEntity) -> str:
    shown, rest = entity.members[:N_SHOWN], entity.members[N_SHOWN:]
    unfolded = _list(rest, N_SHOWN)
    more = f"<details><summary>{len(rest)} more</summary>{unfolded}</details>" if rest else ""
    nearest = "; ".join(
        f"{escaped(refused.title)} ({escaped(refused.kb_id)}, {refused.probability:.2f}, "
        f"{escaped(refused.reason)})"
        for refused in entity.nearest
    )
    return (
        f"<section id='{escaped(entity.id)}'><h2>{escaped(entity.name)} "
        f"<small>{escaped(entity.id)} · {len(entity.members)} mentions in {entity.documents} "
        f"documents · cohesion {entity.cohesion:.2f}</small></h2>{_list(shown, 0)}{more}"
        f"<p class='nearest'>Nearest in the knowledge base: {nearest or 'nothing'}</p></section>\n"
    )


def _list(members: Iterable[MentionRecord], start: int) -> str:
    return f"<ol start='{start}'>" + "".join(map(_item, members)) + "</ol>"


def _item(record: MentionRecord) -> str:
    label = f" <small>{escaped(record.label)}</small>" if record.label else ""
    return (
        f"<li>… {escaped(one_line(record.before))} <mark>{escaped(record.text)}</mark>{label} "
        f"{escaped(one_line(record.after))} … "
        f"<small>document {escaped(record.document)}</small></li>"
    )
