"""Show whether DEER reads contexts, and whether entities of one type are near each other.

    python deer_context.py MODEL CORPUS.spacy

Its Table 6: each mention is linked in its own text, in the text around a mention of another
document, and alone. R@1, and how many first candidates another text changes, of all mentions and
of those whose surface form is a name of several entities. A mention that would be cut otherwise
there, as in the middle of a word, is left out.

Its Table 4: of the five entities nearest to each one with a description, the share with the same
head word in theirs, such as "city" in "city in Ontario", beside that of five random ones.
"""

import re
import sys
from collections import Counter
from itertools import groupby
from pathlib import Path

import numpy as np
import spacy
from entity_folds import interval
from spacy.language import Language
from spacy.tokens import Doc

from spacy_arbo_el.base.arrays import unit
from spacy_arbo_el.corpora.docbin import read_docs
from spacy_arbo_el.kb.knowledge_base import ArboKB
from spacy_arbo_el.linker import find_linker

NEAREST = 5
SAMPLES = 2000
# The first candidate of a mention that is left out.
LEFT_OUT = "left out"
# What ends the head of a description.
BEHIND_HEAD = re.compile(
    r"[,;(]| (?:of|in|by|from|for|on|at|and|that|which|who|with|to|near|about) "
)


def in_text(nlp: Language, before: str, mention: str, after: str, label: str) -> Doc:
    """A document with one mention."""
    doc = nlp.make_doc(before + mention + after)
    place = len(before), len(before) + len(mention)
    doc.ents = [
        span for span in [doc.char_span(*place, label=label)] if span is not None
    ]
    return doc


def first_candidates(nlp: Language, docs: list[Doc]) -> list[str]:
    links = [[span._.arbo for span in doc.ents] for doc in nlp.pipe(docs)]
    return [next(iter(own[0].ids), "") if own else LEFT_OUT for own in links]


def print_contexts(nlp: Language, path: Path) -> None:
    """Print R@1 by what is around the mentions."""
    kb = find_linker(nlp).kb
    spans = [
        s for doc in read_docs(path, nlp.vocab) for s in doc.ents if s.kb_id_ in kb
    ]
    texts = [
        (s.doc.text[: s.start_char], s.text, s.doc.text[s.end_char :], s.label_)
        for s in spans
    ]
    gold = np.array([span.kb_id_ for span in spans])
    named = Counter(
        name.lower() for entity in kb for name in {entity.title, *entity.aliases}
    )
    shared = np.array([named[span.text.lower()] > 1 for span in spans])
    documents = [doc for doc, _ in groupby(spans, key=lambda span: span.doc)]
    # Half of the documents away, so that no mention meets its own text.
    other = dict(zip(documents, documents[len(documents) // 2 :] + documents))
    around = {span.doc: number for number, span in enumerate(spans)}
    shuffled = [around[other[span.doc]] for span in spans]
    ways = {
        "its own": [in_text(nlp, *text) for text in texts],
        "another's": [
            in_text(nlp, texts[j][0], texts[i][1], texts[j][2], texts[i][3])
            for i, j in enumerate(shuffled)
        ],
        "none": [in_text(nlp, "", text[1], "", text[3]) for text in texts],
    }
    firsts = {way: np.array(first_candidates(nlp, docs)) for way, docs in ways.items()}
    read = np.all([first != LEFT_OUT for first in firsts.values()], axis=0)
    for which, rows in (("all", read), ("namesakes", read & shared)):
        right = {
            way: (first == gold)[rows].astype(float) for way, first in firsts.items()
        }
        changed = (firsts["its own"] != firsts["another's"])[rows].mean()
        cells = ", ".join(
            f"{way} {100 * hits.mean():.1f}" for way, hits in right.items()
        )
        gains = right["its own"] - right["another's"]
        low, high = interval(gains, np.arange(len(gains)), SAMPLES)
        print(f"R@1 by text, {rows.sum()} of {len(spans)} mentions ({which}): {cells}")
        gained = f"{100 * gains.mean():.1f} ({100 * low:.1f} to {100 * high:.1f})"
        print(f"  its own less another's: {gained}")
        print(
            f"  another's text changes {100 * changed:.1f} % of the first candidates"
        )


def head_word(description: str) -> str:
    words = BEHIND_HEAD.split(description.lower(), maxsplit=1)[0].split()
    return words[-1] if words else ""


def print_neighbours(kb: ArboKB) -> None:
    """Print how often the nearest entities have the same head word in their descriptions."""
    entities = [one for one in kb if one.description]
    heads = np.array([head_word(one.description) for one in entities])
    vectors = unit(np.stack([kb.get_vector(one.id) for one in entities]))
    similarities = vectors @ vectors.T
    np.fill_diagonal(similarities, -np.inf)
    nearest = np.argpartition(-similarities, NEAREST, axis=1)[:, :NEAREST]
    drawn = np.random.default_rng(0).integers(len(entities), size=nearest.shape)
    same, random = (
        (heads[rows] == heads[:, None]).mean() for rows in (nearest, drawn)
    )
    print(
        f"{len(entities)} entities: same head word {same:.3f}, of random ones {random:.3f}"
    )
    for row in range(0, len(entities), max(len(entities) // 5, 1)):
        names = [entities[i].title for i in nearest[row]]
        print(f"- {entities[row].title}: {', '.join(names)}")


def main(model: str, corpus: str) -> None:
    nlp = spacy.load(model)
    linker = find_linker(nlp)
    linker.refresh()
    print_contexts(nlp, Path(corpus))
    print_neighbours(linker.kb)


if __name__ == "__main__":
    main(*sys.argv[1:])
