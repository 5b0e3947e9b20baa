"""Silver mentions by workers and one choosing process. They find the names in documents.

job.json                the names and the texts
shards.jsonl            the shards of the texts
docs/part-000012.spacy  the documents of a shard that have mentions
hits/part-000012.npz    these mentions and what was left out, written last
"""

import json
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Container, Dict, Iterator, List, Optional, Sequence, Tuple

import numpy as np
import spacy
from spacy.tokens import Doc, DocBin

from ..corpora.hidden import HiddenSettings
from ..corpora.json_documents import Source
from ..corpora.names import Dictionary
from ..corpora.read import files_of, plain_docs_in, read_ids, relative_name
from ..corpora.silver import Found, Scan, with_names
from ..errors import ArboError, Errors
from ..kb.loaders import KBFromPath
from ..storage.files import pack_arrays, unpack_arrays, write_file
from .identity import check_same, fingerprint, versions
from .map_files import begin, cluster, do_files
from .on_ray import RaySettings
from .shards import Shard, borders, path_in

# Documents of a shard.
SIZE = 1000
# Settings that say where things are.
PLACES = ("texts", "kb", "output", "exclude")


@dataclass(frozen=True)
class SilverJob:
    """A search for names in documents.

    texts: Files and folders of raw text.
    kb: The knowledge base, or a JSONL file of entities.
    output: The folder of the run.
    contents: Fingerprints of the knowledge base and of ``exclude``.
    lang: Language of the tokenizer.
    format: Of all texts; "" goes by their suffixes.
    exclude: A file with ids of documents to leave out; "" for none.
    part: Which documents, see ``HiddenSettings.is_in``.
    dev_share: The share of documents that are in the dev set.
    seed: Determines which.
    size: Documents of a shard.
    hidden: The numbers of names that are found, but are no mentions.
    versions: Of the packages that tokens depend on.
    """

    texts: List[str]
    kb: str
    output: str
    contents: Tuple[str, ...]
    lang: str = "en"
    format: str = ""
    exclude: str = ""
    part: str = ""
    dev_share: float = 0.0
    seed: int = 0
    size: int = SIZE
    hidden: Tuple[int, ...] = ()
    versions: Dict[str, str] = field(default_factory=versions)

    def __post_init__(self) -> None:
        if self.size < 1:
            raise ArboError(Errors.E900.format(name="--shard", least=1, value=self.size))

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

        settings: lang, format, part, dev_share, seed, size and hidden.
        """
        contents = tuple(fingerprint(path) for path in (kb, exclude) if path)
        settings["exclude"] = str(exclude.resolve()) if exclude else ""
        *resolved, dictionary, folder = (str(path.resolve()) for path in (*texts, kb, output))
        return cls(resolved, dictionary, folder, contents, **settings)

    def hits_of(self, shard: Shard) -> Path:
        """The file of the mentions of a shard."""
        return Path(self.output, "hits", f"{shard.name}.npz")

    def docs_of(self, shard: Shard) -> Path:
        """File of the shard's documents that have mentions."""
        return Path(self.output, "docs", f"{shard.name}.spacy")

    def shards(self) -> Iterator[Shard]:
        """The shards of all texts. Their files are the number of a text, and a name in it."""
        number = 0
        for place, text in enumerate(map(Path, self.texts)):
            for file in files_of(text, any_suffix=bool(self.format)):
                lines = (".jsonl", ".txt")
                whole = [(0, None, 0)] if self.format else borders(file, self.size, lines)
                for part in whole:
                    yield Shard(number, (str(place), relative_name(text, file)), *part)
                    number += 1

    def read(self, shard: Shard) -> Found:
        """Read the findings of a shard."""
        found, arrays = Found(), unpack_arrays(self.hits_of(shard).read_bytes())
        for name in Found.ARRAYS:
            getattr(found, name).extend(arrays[name].tolist())
        left_out, found.n_read, found.n_docs = json.loads(str(arrays["counts"]))
        found.left_out = Counter(left_out)
        return found


class SilverWorker:
    """Finds names in the documents of shards.

    job: Which names, and in which documents.
    """

    def __init__(self, job: SilverJob) -> None:
        ours = {"kb": fingerprint(Path(job.kb)), **versions()}
        check_same({"kb": job.contents[0], **job.versions}, ours)
        self.job, self.nlp = job, spacy.blank(job.lang)
        entities = KBFromPath(Path(job.kb))(self.nlp.vocab).entities
        exclude: Container[str] = read_ids(Path(job.exclude)) if job.exclude else ()
        self.names = Dictionary.build(self.nlp, entities), exclude, frozenset(job.hidden)

    def __call__(self, shard: Shard) -> None:
        found = Found()
        with self.nlp.memory_zone():
            docs = list(with_names(self._documents(shard), *self.names, found))
            data = DocBin(docs=docs, store_user_data=True).to_bytes()
        write_file(self.job.docs_of(shard), data)
        arrays = {name: np.array(getattr(found, name)) for name in Found.ARRAYS}
        counts = json.dumps([found.left_out, found.n_read, found.n_docs])
        data = pack_arrays({**arrays, "counts": np.array(counts)})
        write_file(self.job.hits_of(shard), data)

    def _documents(self, shard: Shard) -> Iterator[Doc]:
        (place, name), job = shard.files, self.job
        source = Source(path_in(Path(job.texts[int(place)]), name), name=name, lines=shard.lines)
        keeps = HiddenSettings(job.dev_share)
        return plain_docs_in(
            source, self.nlp, job.format, lambda id_: keeps.is_in(job.part, id_, job.seed)
        )


def scanned_in_shards(
    job: SilverJob, dictionary: Dictionary, ray: Optional[RaySettings] = None
) -> Scan:
    """Scan documents for names by workers. See ``corpora.silver.scanned``.

    It needs the folder of the run as long as it is used. A killed run resumes.

    dictionary: The names of the job's knowledge base.
    ray: The cluster to do it on; None for this process.
    """
    shards, found = list(job.shards()), Found()
    settings = {name: value for name, value in asdict(job).items() if name not in PLACES}
    begin(Path(job.output), json.loads(json.dumps(settings)), shards)
    with cluster(ray):
        do_files(SilverWorker, job, shards, job.hits_of, ray)
    for shard in shards:
        found.extend(job.read(shard))
    return Scan(dictionary, found, Path(job.output, "docs"))
