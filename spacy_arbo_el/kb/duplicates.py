"""Entities that seem to be in a knowledge base twice."""

import re
from array import array
from collections.abc import Iterable

import numpy as np
from scipy.sparse import csr_matrix

from ..base.arrays import int_array
from .entity import Entity
from .lookup import letters

# A name of more entities than this says nothing of which of them are the same.
MOST_OWNERS = 20
_NUMBER = re.compile(r"\d+")


def duplicate_pairs(entities: Iterable[Entity]) -> list[tuple[int, int]]:
    """Pairs of entities that are probably one: the places of both in the order given.

    They have the same types, and either one title or all names of one. Case, accents, spaces and
    punctuation do not count, but between the digits of a number.
    """
    owners = array("q")
    names = array("q")
    titles = array("q")
    for number, entity in enumerate(entities):
        kinds = tuple(sorted(entity.types))
        hashed = {hash((_normalized(name), kinds)) for name in entity.names}
        owners.extend([number] * len(hashed))
        names.extend(hashed)
        titles.append(hash((_normalized(entity.title), kinds)))
    distinct, columns = np.unique(int_array(names), return_inverse=True)
    has = csr_matrix(
        (np.ones(len(columns)), (int_array(owners), columns)),
        shape=(len(titles), len(distinct)),
    )
    n_names = has.getnnz(axis=1)
    n_owners = has.getnnz(axis=0)
    has = has[:, (n_owners > 1) & (n_owners <= MOST_OWNERS)]
    common = (has @ has.T).tocoo()
    first = common.row
    second = common.col
    title = int_array(titles)
    same = (title[first] == title[second]) | (common.data == n_names[first])
    pairs = np.stack([first, second], axis=1)[same & (first != second)]
    return [(a, b) for a, b in np.unique(np.sort(pairs, axis=1), axis=0).tolist()]


def _normalized(name: str) -> tuple[str, ...]:
    """Its letters, or a name of symbols, and its numbers: "type 1/2" is not "type 12"."""
    return (letters(name) or name, *_NUMBER.findall(name))
