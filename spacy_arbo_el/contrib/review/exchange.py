"""Exchange of decisions with spaCy, Prodigy and Label Studio."""

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from spacy.tokens import DocBin

from ...base.display import counted
from ...base.errors import ArboError
from ...corpora.read import read
from ...kb.entity import NIL
from ...mentions.record import text_fingerprint
from .errors import ReviewMessages
from .links import LinkReview, LinkRow, gold_docs
from .review import Review

# The formats of files that annotators make, by the end of their names.
FORMATS = {".jsonl": "prodigy", ".json": "label-studio"}


def take_over(
    review: Review,
    links: LinkReview,
    path: Path,
    by: str,
    say: Callable[[str], None] = lambda sentence: None,
) -> Counter:
    """Decide on links as annotators did. Each is a decision that can be undone.

    A mention without an id is in no entity of the knowledge base. Raises ValueError for a file in
    another format, and for one in which no mention has an id.

    say: Gets a sentence on how many mentions the decisions hold for, before they are made.
    RETURNS: How many decisions were "made", are "known" already, are on mentions that are "not in
        the texts", or name an entity that is "not in the knowledge base".
    """
    rows = {row.key: row for row in links.rows}
    rows_by_label = {row.place: row for row in links.rows}
    learnt = [entry for entry in review.standing if entry["action"] == "learn"]
    decided = {(*entry["key"], entry["label"]): entry["kb_id"] for entry in learnt}
    counts = Counter[str]()
    chosen: list[tuple[LinkRow, str]] = []
    texts = list(read(path, FORMATS.get(path.suffix.lower(), "jsonl")))
    pairs = [(text_fingerprint(text.text), one) for text in texts for one in text.mentions]
    if not any(mention.kb_ids for _, mention in pairs):
        raise ArboError(ReviewMessages.E931.format(path=path))
    for fingerprint, mention in pairs:
        place = (fingerprint, mention.start, mention.end)
        row = rows_by_label.get((*place, mention.label)) or rows.get(place)
        if row is None:
            counts["not in the texts"] += 1
        elif decided.get(row.place) == mention.kb_id:
            counts["known"] += 1
        elif mention.kb_id != NIL and mention.kb_id not in review.linker.kb:
            counts["not in the knowledge base"] += 1
        else:
            chosen.append((row, mention.kb_id))
    covered = set().union(*(links.covered(row, kb_id) for row, kb_id in chosen))
    if chosen:
        hold = f"{counted(len(chosen), 'decision')} on {counted(len(covered), 'mention')}"
        say(f"{hold}: those in the file, and those of the texts that say the same")
    for row, kb_id in chosen:
        review.decide("learn", by, **links.entry_of(row, kb_id))
        counts["made"] += 1
    return counts


GOLD = "gold.spacy"
# The files of what was decided, and what each is for. The second one needs the texts.
EXPORTS = {"decisions.jsonl": "all decisions", GOLD: "documents for arbo fit"}


def exported(name: str, review: Review, links: LinkReview | None) -> bytes:
    """The content of a file of ``EXPORTS``."""
    if name != GOLD or links is None:
        return "".join(f"{json.dumps(entry)}\n" for entry in review.standing).encode("ascii")
    docs = gold_docs(review.linker, links.docs, review.standing)
    return DocBin(docs=docs, store_user_data=True).to_bytes()
