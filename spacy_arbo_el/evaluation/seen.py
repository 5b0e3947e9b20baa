"""Scores by what training has shown: entities with exemplars, and their surface forms."""

from collections.abc import Sequence
from typing import NamedTuple

from ..kb.knowledge_base import ArboKB
from ..mentions.labels import current_ids
from ..mentions.record import MentionRecord
from ..names.spellings import folded
from .outcomes import Outcome, mean


class Seen(NamedTuple):
    """Entities and surface forms with exemplars.

    strings: Surface forms, case-folded.
    """

    ids: frozenset[str] = frozenset()
    strings: frozenset[str] = frozenset()

    @classmethod
    def of(cls, kb: ArboKB, records: Sequence[MentionRecord]) -> "Seen":
        groups = current_ids(kb, [record.kb_ids for record in records])
        strings = frozenset(folded(record.text) for record in records)
        return cls(frozenset(kb_id for ids in groups for kb_id in ids), strings)


def score_by_seen(results: Sequence[Outcome], seen: Seen) -> dict[str, float | None]:
    """Accuracy on gold mentions, by what training has shown.

    RETURNS: These scores, None where there is nothing to score:
        arbo_acc_seen, arbo_acc_unseen: Entities with and without a training mention.
        arbo_balanced_acc: The mean of both: dev sets have few mentions of unseen entities, and most
            entities of a knowledge base are unseen. The one of the two that there is, if any.
        arbo_acc_new_strings: Mentions with a surface form that no training mention has.
    """
    correct_by_kind: dict[str, list[bool]] = {"seen": [], "unseen": [], "new": []}
    for result in results:
        if result.gold:
            correct_by_kind[
                "seen" if seen.ids & set(result.gold) else "unseen"
            ].append(result.is_correct)
            if (
                result.span is not None
                and folded(result.span.text) not in seen.strings
            ):
                correct_by_kind["new"].append(result.is_correct)
    seen_accuracy, unknown, new = (
        mean(correct) for correct in correct_by_kind.values()
    )
    accuracies = [value for value in (seen_accuracy, unknown) if value is not None]
    return {
        "arbo_acc_seen": seen_accuracy,
        "arbo_acc_unseen": unknown,
        "arbo_balanced_acc": mean(accuracies),
        "arbo_acc_new_strings": new,
    }


def score_namesakes(
    results: Sequence[Outcome], kb: ArboKB | None
) -> dict[str, float | None]:
    """Accuracy on mentions that are a name of several entities.

    Case does not count. NIL is right where the gold is NIL.

    RETURNS: arbo_acc_namesakes, None without such mentions.
    """
    gold = [
        (folded(r.span.text), r.is_correct)
        for r in results
        if r.gold is not None and r.span is not None
    ]
    named = (
        {}
        if kb is None
        else kb.entities.with_names(sorted({name for name, _ in gold}))
    )
    shared = [is_correct for name, is_correct in gold if len(named.get(name, ())) > 1]
    return {"arbo_acc_namesakes": mean(shared)}
