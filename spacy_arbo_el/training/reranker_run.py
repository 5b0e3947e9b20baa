"""A run of ``arbo rerank``: from a trained pipeline to the same one with a cross-encoder."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Callable, Dict, Optional, Sequence

from spacy.language import Language
from spacy.tokens import Doc
from spacy.util import registry
from thinc.api import Config

from ..errors import Errors
from ..linker import ArboLinker
from ..mentions.batch import MentionBatch
from ..mentions.labels import annotated_batches
from ..reranking.cross_encoder import CrossEncoder
from ..reranking.pair_scorer import PairScorer
from .candidates import (
    TrainingCandidates,
    make_candidates,
    pipeline_fingerprint,
    read_candidates,
    write_candidates,
)
from .checkpoint import Checkpoint, read_checkpoint, write_finished
from .reranker import LabelledMentions, RerankerTrainer, RerankerTraining
from .resume import RunSettings, check_same_settings, fingerprint_of_docs, has_same_start

_CONFIG = Path(__file__).parent.parent / "configs" / "reranker.cfg"
CANDIDATES, CHECKPOINT = "candidates.bin", "checkpoint.bin"


@dataclass(frozen=True)
class RerankerRun:
    """A training of a cross-encoder for a linker, in a folder.

    linker: The linker, whose encoder stays as it is.
    config: With the sections ``reranker`` and ``training``, and no variables.
    folder: For the candidates and the checkpoint.
    report: Takes the lines of the log.
    """

    linker: ArboLinker
    config: Config
    folder: Path
    report: Callable[[str], None] = print

    def train(
        self, train: Sequence[Doc], dev: Sequence[Doc], *, resume: bool = False, every: int = 0
    ) -> CrossEncoder:
        """The trained cross-encoder. How its scores count is not fitted yet.

        train: Annotated documents to learn from.
        dev: Annotated documents to evaluate on after each epoch.
        resume: Whether to continue from the checkpoint of the folder. Without one a new run starts.
        every: Steps between checkpoints; 0 for one after each epoch only.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        linker = self.linker
        linker.encoder.require_ready(linker.name)
        parts = registry.resolve({name: self.config[name] for name in ("reranker", "training")})
        reranker, training = parts["reranker"], parts["training"]
        if not isinstance(reranker, CrossEncoder):
            raise ValueError(Errors.E879.format(found=type(reranker).__name__))
        with linker.datastore.reading():
            learned = self._labelled(train, training.n_candidates, self.folder / CANDIDATES)
            rows, table = learned.table.for_training()
            if not len(rows):
                raise ValueError(Errors.E878.format(count=len(learned)))
            self.report(_recall_lines(learned.table))
            held_out = self._labelled(dev, training.n_candidates)
            begin = self._begin(train, dev)
            path = self.folder / CHECKPOINT
            checkpoint = self._checkpoint(path, begin) if resume else None
            reranker = replace(reranker, scorer=self._scorer(reranker, training))
            trainer = RerankerTrainer(reranker, linker.stages, training, path, begin, self.report)
            examples = LabelledMentions(learned.batch.take(rows), table)
            trainer.train(examples, held_out, checkpoint=checkpoint, every=every)
        return reranker

    def has_ended(self, train: Sequence[Doc], dev: Sequence[Doc]) -> bool:
        """Whether the folder is that of a run with the same settings and data, which has ended."""
        checkpoint = read_checkpoint(self.folder / CHECKPOINT)
        if checkpoint is None or not checkpoint.history.is_finished:
            return False
        return has_same_start(checkpoint, self._begin(train, dev))

    def finish(self) -> None:
        """Write that the run has ended, in place of its checkpoint: when its result is saved."""
        checkpoint = read_checkpoint(self.folder / CHECKPOINT)
        if checkpoint is not None:
            write_finished(checkpoint.path, checkpoint.history)

    def _scorer(self, reranker: CrossEncoder, training: RerankerTraining) -> PairScorer:
        """The untrained scorer."""
        encoder = self.linker.encoder
        return PairScorer.create(
            encoder.model.get_ref("mention"),
            reranker.size,
            encoder.fingerprint,
            name=training.name,
            seed=training.seed,
        )

    def _labelled(
        self, docs: Sequence[Doc], count: int, path: Optional[Path] = None
    ) -> LabelledMentions:
        """The annotated mentions of documents with their candidates.

        path: The file to keep candidates in; None for no file.
        """
        linker, stages = self.linker, self.linker.stages
        parts = [stages.read(spans) for spans in annotated_batches(stages.reader, docs)]
        batch = MentionBatch.concat(parts)
        pipeline, corpus = pipeline_fingerprint(linker, count), fingerprint_of_docs(docs)
        if path is not None and path.is_file():
            table = read_candidates(path, linker.kb, pipeline, corpus)
            self.report(f"Candidates from {path}")
        else:
            table = make_candidates(linker, parts, count)
            if path is not None:
                write_candidates(path, table, linker.kb, pipeline, corpus)
        return LabelledMentions(batch, table)

    def _begin(self, train: Sequence[Doc], dev: Sequence[Doc]) -> RunSettings:
        """What the run begins with."""
        inputs = {
            "the documents to train on": fingerprint_of_docs(train),
            "the documents to evaluate on": fingerprint_of_docs(dev),
            "the pipeline": self.linker.trainer.fingerprint(),
        }
        return RunSettings(self.config.to_str(), inputs)

    def _checkpoint(self, path: Path, begin: RunSettings) -> Optional[Checkpoint]:
        """The checkpoint to continue from; None where there is none, or its run has ended."""
        checkpoint = read_checkpoint(path)
        if checkpoint is None or checkpoint.history.is_finished:
            return None
        check_same_settings(checkpoint, begin)
        return checkpoint


def read_config(path: Optional[Path], overrides: Dict[str, Any]) -> Config:
    """The config of a training. path: A file; None for the config of the package."""
    return Config().from_disk(path or _CONFIG, overrides=overrides)


def set_reranker(nlp: Language, linker: ArboLinker, reranker: CrossEncoder, config: Config) -> None:
    """Give a pipeline's linker a trained cross-encoder.

    config: The section that describes it; it becomes part of the pipeline's config.
    """
    linker.reranker = reranker
    nlp.get_pipe_config(linker.name)["reranker"] = config


def _recall_lines(table: TrainingCandidates) -> str:
    """What the training candidates have, in words."""
    (first, among), (first_with, among_with) = table.recall.tolist()
    count = table.candidates.shape[1]
    return (
        f"Training candidates: recall@1 {first:.4f}, recall@{count} {among:.4f} without the "
        f"exemplars of the mention's document; with them {first_with:.4f} and {among_with:.4f}"
    )
