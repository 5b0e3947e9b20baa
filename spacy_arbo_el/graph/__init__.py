"""Directed minimax clustering over arrays."""

from .bottleneck import minimax
from .contraction import arborescence
from .edges import Edges, build_edges
from .evidence import bottleneck, path
from .linkage import undirected
from .linking import Links, link
from .positives import gold_parents
