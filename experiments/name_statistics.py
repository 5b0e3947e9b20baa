"""Write the statistics of names that strings are compared with: weights of n-grams, and words that
names of one entity have for each other.

    python name_statistics.py KB …

Each list counts alike in the weights. A pair of words is written where two entities have names that
differ in these words alone, unless they are opposites, such as left and right, or both letters.
"""

import argparse
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from spacy.vocab import Vocab

from spacy_arbo_el.kb.knowledge_base import ArboKB
from spacy_arbo_el.kb.loaders import load_kb
from spacy_arbo_el.names.derivation import interchanged_in
from spacy_arbo_el.names.opposites import are_opposed
from spacy_arbo_el.names.spellings import compared_forms, compatible
from spacy_arbo_el.names.string_features import (
    INTERCHANGED,
    N_NGRAMS,
    NGRAMS,
    WEIGHTS,
    count_ngrams,
)

# An n-gram of no name is as rare as one of a name in so many.
MOST_NAMES = 40_000
MIN_ENTITIES = 2


def names_of(kb: ArboKB) -> Iterator[list[str]]:
    """The names of each entity as they are compared, each once."""
    for entity in kb:
        names = (
            form.lower()
            for name in entity.names_in_text
            for form in compared_forms(compatible(name))
        )
        yield list(dict.fromkeys(names))


def tells_apart(word: str, other: str) -> bool:
    """Return whether two words name different things: left and right, hepatitis A and B."""
    are_letters = len(word) == len(other) == 1
    return are_letters or are_opposed([word], [other])


def main(folders: list[Path]) -> None:
    vocab = Vocab()
    shares = np.zeros(N_NGRAMS)
    pairs: Counter[tuple[str, str]] = Counter()
    for folder in folders:
        groups = list(names_of(load_kb(folder, vocab)))
        counts = count_ngrams([name for names in groups for name in names], *NGRAMS)
        frequency = np.bincount(counts.ngrams, minlength=N_NGRAMS)
        shares += frequency / (len(counts.bounds) - 1) / len(folders)
        for names in groups:
            pairs.update(set(interchanged_in(names)))
    weights = (1 - np.log(shares + 1 / MOST_NAMES)).astype(np.float16)
    np.savez_compressed(WEIGHTS, weights=weights)
    frequent = sorted(
        (word, other)
        for (word, other), count in pairs.items()
        if count >= MIN_ENTITIES and not tells_apart(word, other)
    )
    rows = [f"{word}\t{other}\t{pairs[word, other]}\n" for word, other in frequent]
    INTERCHANGED.write_text("".join(rows), "utf8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("kb", nargs="+", type=Path, help="folders of knowledge bases")
    main(parser.parse_args().kb)
