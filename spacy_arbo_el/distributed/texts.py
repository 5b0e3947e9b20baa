"""The texts of a knowledge base's entities, encoded by workers.

The texts that ``ArboKB.sync`` would encode are written to files, in the batches in which
``encode_texts`` encodes them. Workers encode these. Then ``sync`` is given the vectors, so that a
knowledge base is written by one process, and is the same as without workers.

    job.json                 which pipeline encodes
    texts/part-000012.jsonl  a batch of texts
    vectors/part-000012.npy  their vectors
"""

import shutil
from dataclasses import dataclass, field
from itertools import count, takewhile
from pathlib import Path
from typing import Dict, Iterable, List, Optional, Sequence, Set

import numpy as np

from ..encoders.protocol import Text
from ..kb.knowledge_base import ArboKB
from ..kb.texts import keys_of
from ..linker import ArboLinker
from ..retrieval.entity_texts import encode_batch, encode_texts, text_batches
from ..storage.files import write_array, write_file
from ..storage.lines import PathLike, read_records
from .identity import fingerprint, model_folder, versions
from .map_files import begin, cluster, do_files
from .on_ray import RaySettings
from .output import json_lines
from .shards import Shard
from .worker import PipelineWorker


@dataclass(frozen=True)
class TextJob:
    """An encoding of texts by a pipeline.

    model: The folder of the pipeline.
    output: The folder of the run.
    pipeline: The fingerprint of the pipeline's folder.
    kb: What identifies the knowledge base.
    versions: Of the packages that vectors depend on.
    """

    model: str
    output: str
    pipeline: str
    kb: str
    versions: Dict[str, str] = field(default_factory=versions)

    @classmethod
    def of(cls, model: PathLike, output: PathLike, kb: ArboKB) -> "TextJob":
        """A job for the pipeline as it is now.

        model: The folder of the pipeline, or the name of an installed package.
        output: The folder of the run.
        """
        folder = model_folder(Path(model)).resolve()
        places = str(folder), str(Path(output).resolve())
        return cls(*places, fingerprint(folder), kb.database.get("uuid"))

    def texts_of(self, shard: Shard) -> Path:
        """The file of a batch of texts."""
        return Path(self.output, "texts", f"{shard.name}.jsonl")

    def vectors_of(self, shard: Shard) -> Path:
        """The file of the vectors of a batch."""
        return Path(self.output, "vectors", f"{shard.name}.npy")

    def begin(self, lists: Iterable[List[Text]]) -> List[Shard]:
        """Write missing batches of texts and list all batches.

        lists: Texts that are encoded at a time in one process.
        """
        settings = {"pipeline": self.pipeline, "kb": self.kb, "versions": self.versions}
        begin(Path(self.output), settings)
        batches = (Shard(number, ()) for number in count())
        shards = list(takewhile(lambda shard: self.texts_of(shard).is_file(), batches))
        known: Set[int] = {key for shard in shards for key in keys_of(self.read_texts(shard))}
        for texts in lists:
            new = [text for text, key in zip(texts, keys_of(texts)) if key not in known]
            for rows in text_batches(new) if new else ():
                shard = Shard(len(shards), ())
                batch = [{"title": new[row][0], "text": new[row][1]} for row in rows.tolist()]
                write_file(self.texts_of(shard), json_lines(batch))
                shards.append(shard)
        return shards

    def read_texts(self, shard: Shard) -> List[Text]:
        """The texts of a batch."""
        records = read_records(self.texts_of(shard))
        return [(record["title"], record["text"]) for _, record in records]


class TextWorker:
    """Encodes batches of texts.

    job: Which texts, and by which pipeline.
    """

    def __init__(self, job: TextJob) -> None:
        self.job = job
        pipeline = PipelineWorker(Path(job.model), job.pipeline, job.versions)
        self.encoder = pipeline.linker.encoder

    def __call__(self, shard: Shard) -> None:
        vectors = encode_batch(self.encoder, self.job.read_texts(shard))
        write_array(self.job.vectors_of(shard), vectors)


class StoredTexts:
    """The vectors that workers have made, by text.

    job: The job.
    shards: All its batches, which are done.
    """

    def __init__(self, job: TextJob, shards: Sequence[Shard]) -> None:
        self._files = [job.vectors_of(shard) for shard in shards]
        keys = [keys_of(job.read_texts(shard)) for shard in shards]
        flat = np.array([key for part in keys for key in part], dtype=np.int64)
        self._order = np.argsort(flat, kind="stable")
        self._keys = flat[self._order]
        self._starts = np.cumsum([0, *map(len, keys)])

    def encode(self, linker: ArboLinker, texts: List[Text]) -> np.ndarray:
        """The vectors of texts, (n, width) float32. Those that no worker had are encoded here."""
        if not len(self._keys):
            return encode_texts(linker.encoder, texts)
        keys = np.array(keys_of(texts), dtype=np.int64)
        place = np.minimum(np.searchsorted(self._keys, keys), len(self._keys) - 1)
        stored = self._keys[place] == keys
        width = np.load(self._files[0], mmap_mode="r", allow_pickle=False).shape[1]
        vectors = np.empty((len(texts), width), dtype=np.float32)
        rows, numbers = np.flatnonzero(stored), self._order[place[stored]]
        files = np.searchsorted(self._starts, numbers, side="right") - 1
        for file in np.unique(files).tolist():
            own = files == file
            block = np.load(self._files[file], mmap_mode="r", allow_pickle=False)
            vectors[rows[own]] = block[numbers[own] - self._starts[file]]
        missing = np.flatnonzero(~stored)
        if len(missing):
            vectors[missing] = encode_texts(linker.encoder, [texts[i] for i in missing.tolist()])
        return vectors


def encode_in_shards(
    kb: ArboKB,
    linker: ArboLinker,
    model: PathLike,
    folder: PathLike,
    ray: Optional[RaySettings] = None,
) -> int:
    """Encode a changed knowledge base by workers. See ``ArboKB.sync``.

    kb: Open for writing.
    linker: That of the pipeline, as the workers load it.
    model: The pipeline's folder.
    folder: The folder of the run, which is removed at the end. A killed run resumes.
    ray: The cluster to do it on; None for this process.
    RETURNS: The number of texts encoded.
    """
    verbalization = linker.datastore.settings.verbalization
    fingerprint = linker.encoder.text_fingerprint
    job = TextJob.of(model, folder, kb)
    shards = job.begin(kb.vectors.to_encode(verbalization, fingerprint))
    with cluster(ray):
        do_files(TextWorker, job, shards, job.vectors_of, ray)
    stored = StoredTexts(job, shards)
    count = kb.sync(verbalization, lambda texts: stored.encode(linker, texts), fingerprint)
    shutil.rmtree(folder)
    return count
