"""Links that are written into the text behind their mentions (VERBALIZED, §4.1)."""

from dataclasses import replace
from typing import Dict, List, Sequence, Tuple

import numpy as np

from ..arrays import offsets_of
from ..kb.knowledge_base import ArboKB
from ..kb.verbalizations import Parts
from ..mentions.normalization.text import replace as edited
from ..mentions.reader import ReadTexts


def write_links(kb: ArboKB, texts: ReadTexts, written: np.ndarray, limit: int) -> ReadTexts:
    """Texts with the descriptions of some mentions' entities behind these: "mention (description)".

    An entity without a description has its title there.

    written: (m,) int64, the entity of each mention, -1 for none.
    limit: The description ends at the next punctuation after so many characters; 0 for no limit.
    """
    verbalize = Parts(limit=limit)
    positions = np.unique(written[written >= 0]).tolist()
    entities = kb.entities.at_all(positions)
    phrases = {
        position: rest or title
        for position, entity in entities.items()
        for title, rest in verbalize(entity)
    }
    bounds = offsets_of(np.array([len(pairs) for pairs in texts.offsets]))
    changed: List[str] = []
    moved: List[np.ndarray] = []
    for text, pairs, start in zip(texts.texts, texts.offsets, bounds.tolist()):
        own = written[start : start + len(pairs)].tolist()
        edits = insertions(pairs, [phrases.get(position, "") for position in own])
        new_text, new_pairs = edited(text, pairs, edits)
        changed.append(new_text)
        moved.append(new_pairs)
    return replace(texts, texts=changed, offsets=moved)


def insertions(pairs: np.ndarray, phrases: Sequence[str]) -> List[Tuple[int, int, str]]:
    """Insertions behind mentions, in order; one where several mentions end at the same place."""
    by_end: Dict[int, str] = {}
    for end, phrase in zip(pairs[:, 1].tolist(), phrases):
        if phrase:
            by_end.setdefault(end, phrase)
    # Not inside of another mention, whose words would be torn apart.
    ends = np.array(sorted(by_end), dtype=np.int64)
    begun = np.searchsorted(np.sort(pairs[:, 0]), ends, side="left")
    ended = np.searchsorted(np.sort(pairs[:, 1]), ends, side="right")
    return [(end, end, f" ({by_end[end]})") for end in ends[begun <= ended].tolist()]
