"""New entities as an HTML page."""

from typing import Dict, Iterable, List

from ..display import counted, html_rows, shown_probability
from ..markup import escaped
from ..mentions.records import MentionRecord
from ..pages import SortKey, folded, item, page
from .entities import NewEntity, one_line

# How many mentions of an entity are shown at once; the others can be unfolded.
N_SHOWN = 5
SORTS = ("mentions", "documents", "cohesion", "nearest", "name")


def to_html(entities: Iterable[NewEntity], title: str = "Not in the knowledge base") -> str:
    """A complete page: each new entity with its mentions and its nearest entities of the KB.

    Those with a single mention can be unfolded at the end.
    """
    entities = list(entities)
    mentions = sum(len(entity.members) for entity in entities)
    counts = counted(len(entities), "new entity", "new entities"), counted(mentions, "mention")
    larger = [entity for entity in entities if len(entity.members) > 1]
    single = [entity for entity in entities if len(entity.members) == 1]
    summary = f"{counted(len(single), 'new entity', 'new entities')} with a single mention"
    end = folded(summary, map(_section, single), is_open=not larger)
    return page(title, f"<p>{', '.join(counts)}.</p>", map(_section, larger), SORTS, end)


def _section(entity: NewEntity) -> str:
    shown, rest = entity.members[:N_SHOWN], entity.members[N_SHOWN:]
    unfolded = _list(rest, N_SHOWN)
    more = f"<details><summary>{len(rest)} more</summary>{unfolded}</details>" if rest else ""
    size = counted(len(entity.members), "mention")
    content = (
        f"<h2><bdi>{escaped(entity.name)}</bdi> <small><bdi>{escaped(entity.id)}</bdi> · "
        f"{size} in {counted(entity.documents, 'document')} · cohesion {entity.cohesion:.2f}"
        f"</small></h2>{_list(shown, 0)}{more}{_nearest(entity)}"
    )
    keys: Dict[str, SortKey] = {
        "mentions": len(entity.members),
        "documents": entity.documents,
        "cohesion": entity.cohesion,
        "nearest": max((refused.probability for refused in entity.nearest), default=0.0),
        "name": entity.name,
    }
    return item(content, keys, entity.id)


def _nearest(entity: NewEntity) -> str:
    """The candidates of the knowledge base, and why each was refused."""
    if not entity.nearest:
        return "<p class='about'>Nearest in the knowledge base: nothing</p>"
    rows: List[List[str]] = [
        [refused.title, refused.kb_id, shown_probability(refused.probability), refused.reason]
        for refused in entity.nearest
    ]
    return f"<p class='about'>Nearest in the knowledge base:</p>{html_rows(rows)}"


def _list(members: Iterable[MentionRecord], start: int) -> str:
    return f"<ol start='{start}'>" + "".join(map(_item, members)) + "</ol>"


def _item(record: MentionRecord) -> str:
    label = f" <small>{escaped(record.label)}</small>" if record.label else ""
    return (
        f"<li dir='auto'>… {escaped(one_line(record.before))} "
        f"<mark>{escaped(record.text)}</mark>{label} {escaped(one_line(record.after))} … "
        f"<small>document <bdi>{escaped(record.document)}</bdi></small></li>"
    )
