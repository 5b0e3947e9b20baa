"""Directed minimax clustering over arrays: NumPy and Numba, neither spaCy nor torch.

Start with ``build_edges`` (neighbours -> graph) and ``link`` (graph -> entities and clusters);
``sweep`` does the latter for many thresholds. ``gold_parents`` gives training its positives.
"""

from .bottleneck import minimax
from .contraction import Forest, arborescence
from .edges import Edges, build_edges
from .evidence import Bottleneck, bottleneck, path
from .linkage import undirected
from .linking import Links, link
from .positives import gold_parents, gold_parents_1nn, gold_parents_1rand
from .sweep import Sweep, sweep
