"""Accuracy by how often an entity occurs among the exemplars (MOLEMAN, Table 3)."""

from bisect import bisect_right
from collections import Counter
from typing import Dict, Iterable, List, Mapping, Sequence

from rich.table import Table

from ..kb.knowledge_base import ArboKB
from ..mentions.labels import current_ids
from ..mentions.records import MentionRecord
from .scorer import Outcome

# The first frequency of each band; the last band has no end.
BANDS = (0, 1, 10, 100, 1000)


def entity_counts(records: Iterable[MentionRecord], kb: ArboKB) -> Dict[str, int]:
    """How many exemplars each entity has, by its present id.

    A composite mention counts for all its ids.
    """
    groups = current_ids(kb, [record.kb_ids for record in records])
    return Counter(kb_id for ids in groups for kb_id in ids)


def band_names() -> List[str]:
    """The bands as intervals: "[0, 1)", "[1, 10)" and so on."""
    return [
        *(f"[{low}, {high})" for low, high in zip(BANDS, BANDS[1:])),
        f"[{BANDS[-1]}, …)",
    ]


def scores_by_frequency(
    results: Sequence[Outcome], counts: Mapping[str, int]
) -> Dict[str, Dict[str, float]]:
    """Accuracy on gold mentions by the number of exemplars of their entity.

    A composite mention belongs to its most frequent entity. NIL mentions are left out.

    counts: How many exemplars each entity has, see ``entity_counts``.
    RETURNS: For each band that has mentions, their number and the accuracy: "mentions", "accuracy".
    """
    correct: List[List[bool]] = [[] for _ in BANDS]
    for result in results:
        if result.gold:
            most = max(counts.get(kb_id, 0) for kb_id in result.gold)
            correct[bisect_right(BANDS, most) - 1].append(result.is_correct)
    return {
        name: {"mentions": len(part), "accuracy": sum(part) / len(part)}
        for name, part in zip(band_names(), correct)
        if part
    }


def frequency_table(rows: Mapping[str, Mapping[str, Mapping[str, float]]]) -> Table:
    """Scores by frequency as a table for the terminal, with the numbers of mentions below.

    rows: As ``scores_by_frequency`` gives them, by name.
    """
    names = [name for name in band_names() if any(name in row for row in rows.values())]
    table = Table(title="Accuracy by number of exemplars", title_justify="left")
    table.add_column("")
    for name in names:
        table.add_column(name, justify="right")
    numbers: List[str] = []
    for label, row in rows.items():
        mentions = [f"{row[name]['mentions']}" if name in row else "0" for name in names]
        if numbers and mentions != numbers:
            table.add_row("mentions", *numbers, end_section=True)
        numbers = mentions
        cells = (f"{row[name]['accuracy']:.4f}" if name in row else "–" for name in names)
        table.add_row(label, *cells)
    table.add_row("mentions", *numbers)
    return table
