"""The command ``arbo index``: compare search indexes and store one."""

from pathlib import Path
from typing import TYPE_CHECKING, List, Optional, Sequence

from spacy.cli._util import Arg, Opt
from wasabi import msg

from ._util import errors_for_people, print_table
from .arguments import CODE, load_linker

if TYPE_CHECKING:
    import numpy as np

    from ..kb.vectors import VectorRows
    from ..linker import ArboLinker
    from ..retrieval.index.benchmark import Measurement
    from ..retrieval.index.faiss_index import FaissIndex
    from ..retrieval.similarity import Similarity


def index_command(
    # fmt: off
    path: Optional[Path] = Arg(None, help="Folder of a knowledge base with vectors"),
    index: List[str] = Opt(
        ..., "--index", "-i", help='Factory and search strings of FAISS, "HNSW32 efSearch=128"'
    ),
    rescore: float = Opt(4.0, "--rescore", help="Candidates that are rescored, for each result"),
    model: Optional[Path] = Opt(None, "--model", "-m", help="Pipeline whose similarity is used"),
    corpus: Optional[Path] = Opt(None, "--corpus", help=".spacy file whose mentions are queries"),
    exemplars: bool = Opt(
        False, "--exemplars", help="Compare indexes for the exemplars of --model instead"
    ),
    queries: int = Opt(500, "--queries", help="Number of queries"),
    keep: bool = Opt(False, "--keep", help="Store the index; give exactly one"),
    code: Optional[Path] = CODE,
    # fmt: on
) -> None:
    """Compare search indexes.

    They search a knowledge base, or the exemplars of a pipeline. They are built, and their speed
    and recall printed. Queries are vectors of entities or exemplars, or with --model and --corpus
    those of mentions. Times are per query, in a batch of all, compared with exact search over the
    same vectors. Give indexes with the same factory string one after the other: it is built once.
    With --keep, the index is stored in the folder. A pipeline whose config asks for the same index
    then loads it. An index for exemplars is built when the pipeline is loaded.

    \b
    Example:
      python -m spacy arbo index kb -i "IVF1024,SQ8 nprobe=16" -i "IVF1024,SQ8 nprobe=64"
      python -m spacy arbo index --exemplars -m out/model-best -i "HNSW32 efSearch=128"
    """
    from ..retrieval.index.faiss_index import FaissIndex
    from ..retrieval.similarity import Cosine

    if exemplars and (model is None or path or keep):
        msg.fail("--exemplars takes a pipeline by --model, no folder and no --keep.", exits=1)
    if not exemplars and path is None:
        msg.fail("Give the folder of a knowledge base, or --exemplars and --model.", exits=1)
    if keep and len(index) > 1:
        msg.fail("--keep takes one --index.", exits=1)
    with errors_for_people():
        builders = []
        for strings in index:
            factory, _, search = strings.partition(" ")
            builders.append(FaissIndex(factory, search.strip(), rescore))
        linker = load_linker(model) if model else None
        similarity = linker.similarity if linker else Cosine()
        mentions = _mention_vectors(linker, corpus, queries) if corpus and linker else None
        if path is not None:
            _compare_for_kb(path, similarity, mentions, queries, builders, keep)
        elif linker is not None:
            _compare_for_exemplars(linker, mentions, queries, builders)


def _compare_for_kb(
    path: Path,
    similarity: "Similarity",
    mentions: Optional["np.ndarray"],
    queries: int,
    builders: Sequence["FaissIndex"],
    keep: bool,
) -> None:
    """Print the comparison for a knowledge base. Store the index if it is to be kept.

    mentions: (m, width) float32, prepared; None to search for some of the entities.
    """
    from ..kb.knowledge_base import ArboKB

    with ArboKB.open(path) if keep else ArboKB.for_reading(path) as kb:
        if not len(kb.rows):
            msg.fail(f"{path} has no vectors yet: spacy arbo kb encode {path} MODEL", exits=1)
        usable = kb.vectors.owners() >= 0
        results = _print_comparison(kb.rows, similarity, mentions, queries, builders, usable)
        if keep and results and results[0].index.attached:
            kb.vectors.keep_index(results[0].index.attached)
            msg.good(f"Stored in {path}.")


def _compare_for_exemplars(
    linker: "ArboLinker",
    mentions: Optional["np.ndarray"],
    queries: int,
    builders: Sequence["FaissIndex"],
) -> None:
    """Print the table for the exemplars that a pipeline searches."""
    import numpy as np

    from ..kb.vectors import VectorRows

    with linker.datastore.reading() as retriever:
        rows = retriever.exemplar_rows
        if not len(rows):
            msg.fail("The pipeline has no exemplars.", exits=1)
        vectors = VectorRows(linker.datastore.exemplars.vectors[rows], rows)
        usable = np.ones(len(rows), dtype=bool)
        _print_comparison(vectors, linker.similarity, mentions, queries, builders, usable)


def _print_comparison(
    rows: "VectorRows",
    similarity: "Similarity",
    mentions: Optional["np.ndarray"],
    n_queries: int,
    builders: Sequence["FaissIndex"],
    usable: "np.ndarray",
) -> List["Measurement"]:
    """Build and measure indexes, and print one row for each.

    mentions: (m, width) float32, the queries, prepared; None to search for some of the rows.
    usable: (rows,) bool, those that are searched.
    RETURNS: Without those that would be exact.
    """
    import numpy as np

    from ..retrieval.index.benchmark import measure

    if mentions is None:
        searched = np.flatnonzero(usable)
        some = np.linspace(0, len(searched) - 1, min(n_queries, len(searched))).astype(int)
        mentions = similarity.prepare(rows.take(searched[some]))
    allowed = None if usable.all() else usable
    results = list(measure(rows, similarity, mentions, builders, usable=allowed))
    columns = ("Index", "Recall@1", "Recall@64", "ms", "× exact", "Build s", "MB")
    print_table(columns, map(_cells, results))
    if not results:
        msg.info("Exact search is best for so few vectors: spacy-arbo-el.FlatIndex.v1")
    return results


def _cells(result: "Measurement") -> List[str]:
    return [
        f"{result.builder.factory} {result.builder.search}",
        *(f"{result.recall[count]:.4f}" for count in (1, 64)),
        f"{result.milliseconds:.3f}",
        f"{result.speedup:.1f}",
        f"{result.build_seconds:.1f}" if result.build_seconds else "–",
        f"{result.index.size() / 1e6:.1f}",
    ]


def _mention_vectors(linker: "ArboLinker", corpus: Path, count: int) -> "np.ndarray":
    """Vectors of the first mentions of a corpus, prepared."""
    from itertools import islice

    import numpy as np

    from ..corpora.docbin import read_docs

    batch = linker.reader.read_docs(islice(read_docs(corpus, linker.vocab), count))
    first = batch.take(np.arange(min(count, len(batch))))
    return linker.stages.encode(first).encoded
