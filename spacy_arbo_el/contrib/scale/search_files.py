"""The search index of a corpus in a folder, without the vectors that it was built over."""

import json
import os
from pathlib import Path

import numpy as np

from ...retrieval.index.approximate import read_index
from ...retrieval.index.exact import faiss
from ...retrieval.mention_search import AllPairs, Cells, CorpusSearch
from ...retrieval.similarity import Cosine, Dot, NegativeSquaredEuclidean, Similarity
from ...storage.files import write_array, write_file

ABOUT = "search.json"
ROWS = "searched.npy"
CELLS = "cells.faiss"
# Whether FAISS can map a file of cells.
MAPS_CELLS = os.name == "posix"


def write_search(folder: Path, search: CorpusSearch) -> None:
    """Write a search index to a folder."""
    index = search.index
    if isinstance(index, Cells):
        faiss.write_index(index.index, str(folder / CELLS))
    else:
        write_array(folder / ROWS, index.rows)
    about = {
        "count": search.count,
        "cells": isinstance(index, Cells),
        "metric": index.similarity.metric,
        "normalize": index.similarity.normalize,
    }
    write_file(folder / ABOUT, json.dumps(about).encode("utf8"))


def read_search(folder: Path, vectors: np.ndarray) -> CorpusSearch:
    """Load the result of ``write_search``. The cells stay in their file, which is mapped.

    vectors: Those that the search was built over.
    """
    about = json.loads((folder / ABOUT).read_text(encoding="utf8"))
    similarity = of_prepared(about["metric"], about["normalize"])
    if not about["cells"]:
        rows = np.load(folder / ROWS, allow_pickle=False)
        return CorpusSearch(vectors, about["count"], AllPairs.over(vectors, rows, similarity))
    index = read_index(folder / CELLS, faiss.IO_FLAG_MMAP if MAPS_CELLS else 0)
    if MAPS_CELLS:
        # FAISS would read ahead with 32 threads for each search.
        faiss.downcast_InvertedLists(index.invlists).prefetch_nthread = 0
    return CorpusSearch(vectors, about["count"], Cells.over(vectors, similarity, index))


def of_prepared(metric: str, normalize: bool) -> Similarity:
    """The similarity of prepared vectors with these properties."""
    if metric == "l2":
        return NegativeSquaredEuclidean()
    return Cosine() if normalize else Dot()
