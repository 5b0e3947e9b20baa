"""``arbo index``: compare search indexes for a knowledge base, and store one."""

from pathlib import Path
from typing import TYPE_CHECKING, Optional

from spacy.cli._util import Arg, Opt
from wasabi import msg

from ._util import errors_for_people

if TYPE_CHECKING:
    import numpy as np
    from rich.table import Table

    from ..kb.knowledge_base import ArboKB
    from ..linker import ArboLinker
    from ..retrieval.index.benchmark import Measurement


def index_command(
    # fmt: off
    path: Path = Arg(..., help="Folder of a knowledge base with vectors"),
    model: Optional[Path] = Opt(None, "--model", "-m", help="Pipeline whose similarity is used"),
    corpus: Optional[Path] = Opt(None, "--corpus", help=".spacy file whose mentions are queries"),
    queries: int = Opt(500, "--queries", help="Number of queries"),
    keep: int = Opt(0, "--keep", help="Number of the index to store"),
    # fmt: on
) -> None:
    """Compare search indexes for a knowledge base.

    Several kinds are built, and their speed and recall printed. Queries are vectors of entities,
    or with --model and --corpus those of mentions. Times are per query, in a batch of all, compared
    with exact search over the same vectors.
    With --keep, one index is stored in the folder. A pipeline whose config asks for the same index
    then loads it.

    \b
    Example:
      python -m spacy arbo index kb --model out/model-best --corpus dev.spacy
    """
    from rich.console import Console

    from ..kb.knowledge_base import ArboKB
    from ..retrieval.index.benchmark import builders_for, config_of, measure
    from ..retrieval.similarity import Cosine
    from .kb_edit import load_linker

    table = _new_table()
    with errors_for_people():
        linker = load_linker(model) if model else None
        similarity = linker.similarity if linker else Cosine()
        with ArboKB.open(path) if keep else ArboKB.for_reading(path) as kb:
            if not len(kb.rows):
                msg.fail(f"{path} has no vectors yet: spacy arbo kb encode {path} MODEL", exits=1)
            if corpus and linker:
                vectors = _mention_vectors(linker, corpus, queries)
            else:
                vectors = similarity.prepare(_entity_vectors(kb, queries))
            builders = builders_for(len(kb.rows))
            if keep > len(builders):
                msg.fail(f"There are {len(builders)} indexes, not {keep}.", exits=1)
            chosen = builders[keep - 1 : keep] if keep else builders
            usable = kb.owners() >= 0
            for number, result in enumerate(
                measure(
                    kb.rows, similarity, vectors, chosen, usable=None if usable.all() else usable
                ),
                keep or 1,
            ):
                _add_row(table, number, result)
                if keep and result.index.attached:
                    kb.keep_index(result.index.attached)
    Console(width=130).print(table)
    if not table.row_count:
        msg.info("Exact search is best for so few vectors: spacy-arbo-el.FlatIndex.v1")
    elif keep:
        msg.good(f"Stored in {path}. For the config:")
        print(config_of(chosen[0]))


def _new_table() -> "Table":
    from rich.table import Table

    return Table("", "Index", "Recall@1", "Recall@64", "ms", "× exact", "Build s", "MB")


def _add_row(table: "Table", number: int, result: "Measurement") -> None:
    from ..retrieval.index.benchmark import label_of

    table.add_row(
        str(number),
        label_of(result.builder),
        *(f"{result.recall[count]:.4f}" for count in (1, 64)),
        f"{result.milliseconds:.3f}",
        f"{result.speedup:.1f}",
        f"{result.build_seconds:.1f}" if result.build_seconds else "–",
        f"{result.size / 1e6:.1f}",
    )


def _entity_vectors(kb: "ArboKB", count: int) -> "np.ndarray":
    """Vectors of texts from all over the knowledge base, not prepared."""
    import numpy as np

    rows = np.flatnonzero(kb.owners() >= 0)
    chosen = np.linspace(0, len(rows) - 1, min(count, len(rows))).astype(int)
    return kb.rows.take(rows[chosen])


def _mention_vectors(linker: "ArboLinker", corpus: Path, count: int) -> "np.ndarray":
    """Vectors of the first mentions of a corpus, prepared."""
    from itertools import islice

    import numpy as np

    from ..corpora.reader import read_docs

    batch = linker.reader.read_docs(islice(read_docs(corpus, linker.vocab), count))
    first = batch.take(np.arange(min(count, len(batch))))
    return linker.stages.encode(first).encoded
