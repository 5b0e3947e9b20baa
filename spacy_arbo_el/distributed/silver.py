"""Silver mentions by workers: they find names in documents, one process chooses among them.

job.json                what is sought in what
shards.jsonl            the shards of the texts
hidden.npy              the numbers of names that are no mentions
docs/part-000012.spacy  the documents of a shard that have mentions
hits/part-000012.npz    these mentions
done/part-000012.json   what was left out, written last
"""

import json
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Container, Dict, Iterator, List, Optional, Sequence

import numpy as np
import spacy
from spacy.tokens import Doc, DocBin

from ..corpora.files import read_ids
from ..corpora.hidden import HiddenSettings
from ..corpora.names import Dictionary
from ..corpora.raw import files_of, plain_documents_of
from ..corpora.silver import Found, Scan, with_names
from ..errors import Errors
from ..kb.loaders import KBFromPath
from ..storage.files import pack_arrays, unpack_arrays, write_array, write_file
from ..storage.lines import Lines
from .executors import cluster, do_all
from .identity import check_same, fingerprint, versions
from .job import DONE, SHARDS, Report
from .on_ray import RaySettings
from .run_folder import begin_beside
from .shards import Shard, borders, path_in, read_shards, relative_name, write_shards
from .worker import worker_name

DOCS, HITS, HIDDEN = "docs", "hits", "hidden.npy"
# Documents of a shard.
SIZE = 1000
# The two sets that documents can be divided into.


@dataclass(frozen=True)
class SilverJob:
    """Which names are sought in which documents.

    texts: Files and folders of raw text.
    kb: The knowledge base, or a JSONL file of entities.
    output: The folder of the run.
    kb_fingerprint: That of its contents.
    lang: Language of the tokenizer.
    format: Of all texts; "" goes by their suffixes.
    exclude: A file with ids of documents to leave out; "" for none.
    exclude_fingerprint: That of its contents.
    part: Which documents, see ``HiddenSettings.is_in``.
    dev_share: The share of documents that are in the dev set.
    seed: Determines which.
    size: Documents of a shard.
    versions: Of the packages that tokens depend on.
    """

    texts: List[str]
    kb: str
    output: str
    kb_fingerprint: str
    lang: str = "en"
    format: str = ""
    exclude: str = ""
    exclude_fingerprint: str = ""
    part: str = ""
    dev_share: float = 0.0
    seed: int = 0
    size: int = SIZE
    versions: Dict[str, str] = field(default_factory=versions)

    def __post_init__(self) -> None:
        if self.size < 1:
            raise ValueError(Errors.E900.format(name="--shard", least=1, value=self.size))

    @classmethod
    def of(
        cls,
        texts: Sequence[Path],
        kb: Path,
        output: Path,
        exclude: Optional[Path] = None,
        **settings: Any,
    ) -> "SilverJob":
        """A job for the knowledge base as it is now.

        settings: lang, format, one, part, dev_share, seed and size.
        """
        left_out = (str(exclude.resolve()), fingerprint(exclude)) if exclude else ("", "")
        settings["exclude"], settings["exclude_fingerprint"] = left_out
        resolved = [str(path.resolve()) for path in texts]
        return cls(resolved, str(kb.resolve()), str(output.resolve()), fingerprint(kb), **settings)

    @property
    def folder(self) -> Path:
        return Path(self.output)

    def keep(self, id_: str) -> bool:
        """Whether a document is in this part of the documents, by its id."""
        return HiddenSettings(self.dev_share).is_in(self.part, id_, self.seed)

    def begin(self, hidden: np.ndarray) -> List[Shard]:
        """Begin a run, or go on with it. hidden: (n,) int64, numbers of names; see ``HIDDEN``."""
        places = ("texts", "kb", "output", "exclude")
        settings = {k: v for k, v in vars(self).items() if k not in places}
        settings["hidden"] = hidden.tolist()
        begin_beside(self.folder, settings)
        shards = list(self._cut())
        if not (self.folder / SHARDS).is_file():
            write_array(self.folder / HIDDEN, hidden)
            write_shards(self.folder / SHARDS, shards)
        if read_shards(self.folder / SHARDS) != shards:
            differences = "the texts have other files or documents"
            raise ValueError(Errors.E903.format(path=self.folder, differences=differences))
        return shards

    def _cut(self) -> Iterator[Shard]:
        """The shards of all texts; their files are the number of a text, and a name in it."""
        number = 0
        for place, text in enumerate(map(Path, self.texts)):
            for file in files_of(text, any_suffix=bool(self.format)):
                lines = () if self.format else (".jsonl", ".txt")
                whole = [(0, None, 0)] if self.format else borders(file, self.size, lines)
                for start, stop, offset in whole:
                    name = relative_name(text, file)
                    yield Shard(number, (str(place), name), start, stop, offset)
                    number += 1

    def docs_of(self, shard: Shard) -> Path:
        """The file of the documents of a shard that have mentions."""
        return self.folder / DOCS / f"{shard.name}.spacy"

    def hits_of(self, shard: Shard) -> Path:
        """The file of the mentions of a shard."""
        return self.folder / HITS / f"{shard.name}.npz"

    def done_file(self, shard: Shard) -> Path:
        """The file of what was left out of a shard, which is written last."""
        return self.folder / DONE / f"{shard.name}.json"

    def write(self, shard: Shard, docs: List[Doc], found: Found) -> None:
        """Write what was found in a shard."""
        arrays = {name: np.array(getattr(found, name)) for name in Found.ARRAYS}
        write_file(self.docs_of(shard), DocBin(docs=docs, store_user_data=True).to_bytes())
        write_file(self.hits_of(shard), pack_arrays(arrays))
        counts = {"left_out": found.left_out, "n_read": found.n_read, "n_docs": found.n_docs}
        write_file(self.done_file(shard), json.dumps(counts).encode("utf8"))

    def read(self, shard: Shard) -> Found:
        """What was found in a shard."""
        found = Found()
        counts = json.loads(self.done_file(shard).read_text(encoding="utf8"))
        for name, values in unpack_arrays(self.hits_of(shard).read_bytes()).items():
            getattr(found, name).extend(values.tolist())
        found.left_out = Counter(counts["left_out"])
        found.n_read, found.n_docs = counts["n_read"], counts["n_docs"]
        return found


class SilverWorker:
    """Finds names in the documents of shards.

    job: Which names, and in which documents.
    """

    def __init__(self, job: SilverJob) -> None:
        ours = {"kb": fingerprint(Path(job.kb)), **versions()}
        check_same({"kb": job.kb_fingerprint, **job.versions}, ours)
        self.job, self.name = job, worker_name()
        self.nlp = spacy.blank(job.lang)
        self.dictionary = Dictionary.build(
            self.nlp, KBFromPath(Path(job.kb))(self.nlp.vocab).entities
        )
        self.exclude: Container[str] = read_ids(Path(job.exclude)) if job.exclude else ()
        hidden = np.load(job.folder / HIDDEN, allow_pickle=False)
        self.hidden = frozenset(hidden.tolist())

    def __call__(self, shard: Shard) -> Report:
        """Find the names in the documents of a shard; in the report, none is linked."""
        start, found = time.perf_counter(), Found()
        names = self.dictionary, self.exclude, self.hidden
        with self.nlp.memory_zone():
            docs = list(with_names(self._documents(shard), *names, found))
            self.job.write(shard, docs, found)
        seconds = round(time.perf_counter() - start, 3)
        return Report(shard.number, self.name, found.n_read, len(found.names), 0, 0, 0, seconds)

    def _documents(self, shard: Shard) -> Iterator[Doc]:
        place, name = shard.files
        file = path_in(Path(self.job.texts[int(place)]), name)
        part = Lines(shard.start, shard.stop, shard.offset)
        job = self.job
        return plain_documents_of(file, name, self.nlp, job.format, job.keep, part)


def scanned_in_shards(
    job: SilverJob,
    dictionary: Dictionary,
    hidden: Sequence[int] = (),
    ray: Optional[RaySettings] = None,
) -> Scan:
    """What names documents have, found by workers; see ``corpora.silver.scanned``.

    It needs the folder of the run as long as it is used. A run that was killed goes on.

    dictionary: The names of the job's knowledge base.
    hidden: The numbers of names that are found, but are no mentions.
    ray: The cluster to do it on; None for this process.
    """
    shards = job.begin(np.array(sorted(hidden), dtype=np.int64))
    todo = [shard for shard in shards if not job.done_file(shard).is_file()]
    with cluster(ray):
        do_all(SilverWorker, job, todo, ray)
    found = Found()
    for shard in shards:
        found.extend(job.read(shard))
    return Scan.of(dictionary, found, job.folder / DOCS)
