"""What puts a candidate before another, in words."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..names.string_features import SAME_STRING

# The features of the ranker by what they are about. What remains says nothing to a reader.
TOPICS = {
    "name": (
        "name",
        "nearest",
        "name_ngrams",
        "ngrams",
        "name_words",
        "words",
        "exact",
    ),
    "exemplars": ("exemplar", "exemplar_ngrams", "has_exemplar", "attested"),
    "words": ("extra", "missing", "swapped"),
    "numbers": ("name_numbers", "numbers", "opposed"),
    "title": ("title",),
    "context": ("described", "fit", "beyond", "shared_lead"),
    "contains": ("contains",),
    "frequency": ("frequency",),
}
# So many topics are named, if they change the log-odds by as much as this.
MOST = 3
LEAST = 0.2
WORD = re.compile(r"[^\W_]+")


@dataclass(frozen=True)
class Compared:
    """A candidate that is compared with another. features: Those of the ranker, by name."""

    kb_id: str
    names: Sequence[str]
    features: Mapping[str, float]

    def strange_words(self, words: Sequence[str]) -> tuple[list[str], list[str]]:
        """The words of the nearest name that are not among some, and those that it lacks."""
        names = [WORD.findall(name) for name in self.names] or [[]]
        shared = [sum(word.casefold() in words for word in name) for name in names]
        nearest = names[
            max(range(len(names)), key=lambda i: (shared[i], -len(names[i])))
        ]
        further = [word for word in nearest if word.casefold() not in words]
        return further, [
            word for word in words if word not in map(str.casefold, nearest)
        ]


def in_words(
    mention: str, contributions: Mapping[str, float], first: Compared, second: Compared
) -> str:
    """Say why a candidate is before another, and what speaks for the other.

    contributions: How much each feature puts the first before the second, in log-odds.
    """
    totals = {
        topic: sum(contributions.get(name, 0.0) for name in names)
        for topic, names in TOPICS.items()
    }
    if not (first.features["has_exemplar"] or second.features["has_exemplar"]):
        # Then its name stands for the exemplar.
        totals["name"] += totals.pop("exemplars")
    topics = [topic for topic in totals if abs(totals[topic]) >= LEAST]
    topics = sorted(topics, key=lambda topic: -abs(totals[topic]))[:MOST]
    for_first = (
        _clause(topic, mention, first, second) for topic in topics if totals[topic] > 0
    )
    for_second = (
        _clause(topic, mention, second, first) for topic in topics if totals[topic] < 0
    )
    reasons = "; ".join(filter(None, for_first)) or "many small things"
    doubts = "; ".join(filter(None, for_second))
    text = f"{first.kb_id} before {second.kb_id}: {reasons}"
    return f"{text}. For {second.kb_id}: {doubts}" if doubts else text


def _clause(topic: str, mention: str, better: Compared, worse: Compared) -> str:
    if topic == "name":
        return _of_name(better.features, worse.features)
    if topic == "words":
        return _of_words(mention, worse)
    if topic == "context":
        return _of_context(better.features, worse.features)
    if (
        topic == "exemplars"
        and better.features["attested"] > worse.features["attested"]
    ):
        return "labelled mentions of these words are of it"
    return {
        "exemplars": "labelled mentions of it are more similar",
        "numbers": "numbers and opposed words agree better",
        "title": "the mention is its title",
        "contains": "the mention can be a part of its name",
        "frequency": "it is meant more often",
    }[topic]


def _of_name(better: Mapping[str, float], worse: Mapping[str, float]) -> str:
    if better["exact"] > worse["exact"]:
        return "the name is the same, letter for letter"
    if better["ngrams"] >= SAME_STRING > worse["ngrams"]:
        return "the name is the same"
    similarities = f"{better['nearest']:.2f} against {worse['nearest']:.2f}"
    return f"the name is more similar ({similarities})"


def _of_words(mention: str, worse: Compared) -> str:
    words = WORD.findall(mention.casefold())
    further, lacking = worse.strange_words(words)
    if lacking == words:
        return f"{worse.kb_id} has no word of the mention"
    clauses = [f'{worse.kb_id} has "{" ".join(further)}" besides'] if further else []
    clauses += [f'{worse.kb_id} lacks "{" ".join(lacking)}"'] if lacking else []
    return ", ".join(clauses)


def _of_context(better: Mapping[str, float], worse: Mapping[str, float]) -> str:
    if not worse["described"]:
        return f"the context fits its description ({better['fit']:.2f})"
    difference = better["fit"] - worse["fit"]
    return (
        f"the context fits better by {difference:.2f}"
        if difference > 0
        else "the context fits"
    )
