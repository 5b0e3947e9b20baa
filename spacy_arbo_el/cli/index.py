"""``arbo index``: which search index suits a knowledge base."""

from pathlib import Path
from typing import Optional

from spacy.cli._util import Arg, Opt
from wasabi import msg

from ._util import errors_for_people


def index_command(
    # fmt: off
    path: Path = Arg(..., help="Folder of a knowledge base with vectors"),
    model: Optional[Path] = Opt(None, "--model", "-m", help="Pipeline whose similarity counts"),
    corpus: Optional[Path] = Opt(None, "--corpus", help=".spacy whose mentions are queries"),
    queries: int = Opt(500, "--queries", help="How many"),
    keep: int = Opt(0, "--keep", help="Number of a setting to keep"),
    # fmt: on
) -> None:
    """Build search indexes of several kinds over a knowledge base; print what they cost and find.

    Queries are the entities' own vectors, or with --model and --corpus those of mentions. Times are
    a query's in a batch of all, beside exact search over the same vectors.
    With --keep, the index of one is kept in the folder, and a pipeline whose config asks for that
    kind uses it.
    """
    from rich.console import Console
    from rich.table import Table

    from ..kb.knowledge_base import ArboKB
    from ..retrieval.similarity import cosine
    from ..retrieval.tuning import measure, settings_for
    from .kb_edit import load_linker

    with errors_for_people():
        linker = load_linker(model) if model else None
        similarity = linker.similarity if linker else cosine()
        kb = ArboKB.open(path) if keep else ArboKB.for_reading(path)
        if not len(kb.rows):
            msg.fail(f"{path} has no vectors yet: spacy arbo kb encode {path} MODEL", exits=1)
        if corpus and linker:
            vectors = _mentions(linker, corpus, queries)
        else:
            vectors = kb.rows.take(_some(kb, queries))
        settings = settings_for(len(kb.rows))
        if keep > len(settings):
            msg.fail(f"There are {len(settings)} settings, not {keep}.", exits=1)
        usable = kb.owners() >= 0
        table = Table("", "Setting", "Recall@1", "Recall@64", "ms", "× exact", "Build s", "MB")
        wanted = settings[keep - 1 : keep] if keep else settings
        prepared = similarity.prepare(vectors)
        results = measure(
            kb.rows, similarity, prepared, wanted, usable=None if usable.all() else usable
        )
        for number, found in enumerate(results, 1):
            table.add_row(
                str(keep or number),
                str(found.setting),
                *(f"{found.recall[count]:.4f}" for count in (1, 64)),
                f"{found.milliseconds:.3f}",
                f"{found.speedup:.1f}",
                f"{found.build:.1f}" if found.build else "–",
                f"{found.size / 1e6:.1f}",
            )
            if keep and found.index.attached:
                kb.keep_index(found.index.attached)
        kb.close()
    Console(width=130).print(table)
    if not table.row_count:
        msg.info("So few vectors are best searched exactly: spacy-arbo-el.FlatIndex.v1")
    elif keep:
        msg.good(f"Kept in {path}. For the config:")
        print(wanted[0].config())


def _some(kb, count: int):
    import numpy as np

    alive = np.flatnonzero(kb.owners() >= 0)
    return alive[np.linspace(0, len(alive) - 1, min(count, len(alive))).astype(int)]


def _mentions(linker, corpus: Path, count: int):
    """Vectors of a corpus's mentions, raw."""
    from itertools import islice

    from ..corpora.reader import read_docs

    docs = list(islice(read_docs(corpus, linker.vocab), count))
    windows, _ = linker.reader.read([list(linker.span_getter(doc)) for doc in docs])
    return linker.encoding.encode_windows(windows)[:count]
