"""Directed minimax clustering of arrays, with NumPy and Numba only.

``link`` takes a graph and gives each mention an entity. ``sweep`` does so at many thresholds, and
clusters the mentions that no entity reaches. ``gold_parents`` gives training its positives.
"""

from .bottleneck import minimax
from .edges import Forest
from .linkage import undirected
from .linking import Links, arborescence, link
from .positives import gold_parents, gold_parents_1nn, gold_parents_1rand
from .sweep import Sweep, sweep
