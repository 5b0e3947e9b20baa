"""Directed minimax clustering of arrays, with NumPy, SciPy and Numba only.

``link`` takes a graph and gives each mention an entity. ``cluster`` clusters the mentions that no
entity reaches. ``gold_parents`` gives training its positives.
"""

from .clusters import cluster
from .linking import Links, link
from .positives import gold_parents, gold_parents_1nn, gold_parents_1rand
