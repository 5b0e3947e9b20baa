"""A run of ``arbo rerank``: what is trained for a trained pipeline, in a folder."""

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Callable, Dict, Optional, Sequence

import numpy as np
from spacy.language import Language
from spacy.tokens import Doc
from spacy.util import registry
from thinc.api import Config

from ..errors import Errors
from ..linker import ArboLinker, find_linker, name_of_linker
from ..mentions.batch import MentionBatch
from ..mentions.labels import annotated_batches, identities_of
from ..reranking.cross_encoder import CrossEncoder
from ..reranking.mention_pairs import MentionPairs
from ..reranking.pair_scorer import PairScorer
from .candidate_files import CandidatesFile, pipeline_fingerprint
from .candidates import TrainingCandidates, annotated_mentions, make_candidates
from .checkpoint import Checkpoint, read_checkpoint, write_finished
from .chosen_mentions import mentions_to_train_on
from .cross_fitting import CrossFitting
from .mention_pairs import LabelledPairs, NearestPairs
from .reranker import (
    CandidatePairs,
    LabelledMentions,
    RerankerTrainer,
    RerankerTraining,
    fit_weight,
)
from .resume import RunSettings, check_same_settings, fingerprint_of_docs, has_same_start

_CONFIGS = Path(__file__).parent.parent / "configs"
CANDIDATES, CHECKPOINT = "candidates.bin", "checkpoint.bin"


@dataclass(frozen=True)
class RerankerRun:
    """A training of a scorer of pairs for a pipeline's linker, in a folder.

    nlp: The trained pipeline. The encoder of its linker stays as it is.
    config: With the sections of what is trained, and no variables.
    folder: For the candidates and the checkpoint.
    report: Takes the lines of the log.
    """

    nlp: Language
    config: Config
    folder: Path
    report: Callable[[str], None] = print

    @property
    def linker(self) -> ArboLinker:
        """The linker of the pipeline."""
        return find_linker(self.nlp)

    def train(
        self, train: Sequence[Doc], dev: Sequence[Doc], *, resume: bool = False, every: int = 0
    ) -> CrossEncoder:
        """The trained cross-encoder. How its scores count is not fitted yet.

        train: Annotated documents to learn from.
        dev: Annotated documents to evaluate on after each epoch.
        resume: Whether to continue from the checkpoint of the folder. Without one a new run starts.
        every: Steps between checkpoints; 0 for one after each epoch only.
        """
        linker, parts = self.linker, self._parts("reranker", "training")
        reranker, training = parts["reranker"], parts["training"]
        if not isinstance(reranker, CrossEncoder):
            raise ValueError(Errors.E879.format(found=type(reranker).__name__))
        scorer = self._scorer(reranker.size, training, reranker.of_sets)
        with linker.datastore.reading():
            crossed = self._cross_fitting(train, training)
            held_out = self._labelled(dev, training.n_candidates)
            weight = fit_weight(held_out.table)
            if crossed is None:
                learned = self._labelled(train, training.n_candidates, self.folder / CANDIDATES)
            else:
                learned = LabelledMentions(crossed.batch, crossed.candidates(weight))
            self.report(_recall_lines(learned.table, training.folds))
            weight = weight if training.residual else 0.0
            chosen = mentions_to_train_on(learned, weight, training)
            self.report(f"Training on {len(chosen)} of {len(learned)} mentions")
            curves = linker.calibration.times(weight) if training.residual else None
            reranker = replace(reranker, scorer=scorer, vector_curves=curves)
            examples = (
                CandidatePairs(mentions, reranker, linker.stages.context, weight)
                for mentions in (chosen, held_out)
            )
            trainer = self._trainer(scorer, training, train, dev)
            trainer.train(*examples, checkpoint=self._checkpoint(trainer, resume), every=every)
        return reranker

    def train_mentions(
        self, train: Sequence[Doc], dev: Sequence[Doc], *, resume: bool = False, every: int = 0
    ) -> MentionPairs:
        """The trained mention scorer. The parameters are those of ``train``."""
        parts = self._parts("mention_scorer", "pairs", "training")
        mention_scorer, training = parts["mention_scorer"], parts["training"]
        for section, kind in (("mention_scorer", MentionPairs), ("pairs", NearestPairs)):
            if not isinstance(parts[section], kind):
                expected, found = f"spacy-arbo-el.{kind.__name__}.v1", type(parts[section]).__name__
                message = Errors.E912.format(section=section, found=found, expected=expected)
                raise ValueError(message)
        with self.linker.datastore.reading():
            scorer = self._scorer(mention_scorer.size, training)
            mention_scorer = replace(mention_scorer, scorer=scorer)
            learned = self._labelled_pairs(train, mention_scorer, parts["pairs"])
            edges = NearestPairs.every(mention_scorer.n_scored)
            held_out = self._labelled_pairs(dev, mention_scorer, edges)
            if learned.correct.all() or not learned.correct.any():
                raise ValueError(Errors.E911.format(count=len(learned.inputs)))
            share = learned.correct.mean()
            self.report(f"Training on {len(learned)} pairs, {share:.3f} of the same entity")
            if training.residual:
                curve = held_out.curve() or learned.curve()
                mention_scorer = replace(mention_scorer, curve=curve)
                learned = replace(learned, scorer=mention_scorer)
                held_out = replace(held_out, scorer=mention_scorer)
                if len(held_out):
                    nothing = np.zeros(len(held_out), dtype=np.float32)
                    accuracy = held_out.accuracy(nothing)
                    self.report(f"Dev accuracy by similarity {accuracy:.4f}, {len(held_out)} edges")
            trainer = self._trainer(scorer, training, train, dev)
            trainer.train(
                learned.one_way(training.seed),
                held_out.one_way(training.seed) if len(held_out) else None,
                checkpoint=self._checkpoint(trainer, resume),
                every=every,
            )
        return mention_scorer

    def _parts(self, *names: str) -> Dict[str, Any]:
        """What sections of the config describe."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self.linker.encoder.require_ready(self.linker.name)
        return registry.resolve({name: self.config[name] for name in names})

    def _trainer(
        self,
        scorer: PairScorer,
        training: RerankerTraining,
        train: Sequence[Doc],
        dev: Sequence[Doc],
    ) -> RerankerTrainer:
        path, begin = self.folder / CHECKPOINT, self._begin(train, dev)
        return RerankerTrainer(scorer, training, path, begin, self.report)

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

    def _scorer(self, size: int, training: RerankerTraining, of_sets: bool = False) -> PairScorer:
        """The untrained scorer.

        size: The most word pieces of a passage.
        of_sets: Whether passages have several pairs.
        """
        encoder = self.linker.encoder
        return PairScorer.create(
            encoder.model.get_ref("mention"),
            size,
            encoder.fingerprint,
            name=training.name,
            seed=training.seed,
            of_sets=of_sets,
        )

    def _cross_fitting(
        self, docs: Sequence[Doc], training: RerankerTraining
    ) -> Optional[CrossFitting]:
        """That of the documents to train on; None without folds."""
        if not training.folds:
            return None
        return CrossFitting.of(self.nlp, training, docs, self.folder, self.report)

    def _labelled(
        self, docs: Sequence[Doc], count: int, path: Optional[Path] = None
    ) -> LabelledMentions:
        """The annotated mentions of documents with their candidates.

        path: The file to keep candidates in; None for no file.
        """
        linker = self.linker
        parts = annotated_mentions(linker.stages, docs)
        make = partial(make_candidates, linker.stages, parts, count)
        if path is None:
            table = make()
        else:
            pipeline, corpus = pipeline_fingerprint(linker, count), fingerprint_of_docs(docs)
            file = CandidatesFile(path, linker.kb, pipeline, corpus)
            table = file.find_or_make(make, self.report)
        return LabelledMentions(MentionBatch.concat(parts), table)

    def _labelled_pairs(
        self, docs: Sequence[Doc], scorer: MentionPairs, nearest: NearestPairs
    ) -> LabelledPairs:
        """Pairs of the annotated mentions of documents."""
        stages = self.linker.stages
        spans = list(annotated_batches(stages.reader, docs))
        batch = MentionBatch.concat([stages.encode(stages.read(part)) for part in spans])
        flat = [span for part in spans for group in part for span in group]
        identities = identities_of(stages.datastore.kb, flat)
        if len(batch) < 2:
            none, nothing = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.float32)
            return LabelledPairs(scorer, batch.inputs, none, none, nothing, none.astype(bool))
        pairs = nearest(batch, identities, stages.datastore.settings)
        return LabelledPairs(scorer, batch.inputs, *pairs)

    def _begin(self, train: Sequence[Doc], dev: Sequence[Doc]) -> RunSettings:
        """What the run begins with."""
        inputs = {
            "the documents to train on": fingerprint_of_docs(train),
            "the documents to evaluate on": fingerprint_of_docs(dev),
            "the pipeline": self.linker.trainer.fingerprint(),
        }
        return RunSettings(self.config.to_str(), inputs)

    def _checkpoint(self, trainer: RerankerTrainer, resume: bool) -> Optional[Checkpoint]:
        """The checkpoint to continue from; None where there is none, or its run has ended."""
        checkpoint = read_checkpoint(trainer.path) if resume else None
        if checkpoint is None or checkpoint.history.is_finished:
            return None
        check_same_settings(checkpoint, trainer.begin)
        return checkpoint


def read_config(
    path: Optional[Path], overrides: Dict[str, Any], default: str = "reranker"
) -> Config:
    """The config of a training.

    path: A file; None for a config of the package.
    default: The name of that config.
    """
    return Config().from_disk(path or _CONFIGS / f"{default}.cfg", overrides=overrides)


def set_reranker(nlp: Language, linker: ArboLinker, reranker: CrossEncoder, config: Config) -> None:
    """Give a pipeline's linker a trained cross-encoder.

    config: The section that describes it; it becomes part of the pipeline's config.
    """
    linker.reranker = reranker
    nlp.get_pipe_config(name_of_linker(nlp, linker))["reranker"] = config


def set_mention_scorer(
    nlp: Language, linker: ArboLinker, scorer: MentionPairs, config: Config
) -> None:
    """Give a pipeline's linker a trained mention scorer.

    config: The section that describes it; it becomes part of the pipeline's config.
    """
    linker.mention_scorer = scorer
    linker.calibration = linker.calibration.for_mention_scorer()
    settings = nlp.get_pipe_config(name_of_linker(nlp, linker))
    settings["mention_scorer"], settings["calibration"] = config, linker.calibration.to_config()


def _recall_lines(table: TrainingCandidates, folds: int) -> str:
    """What the training candidates have, in words."""
    (first, among), (first_with, among_with) = table.recall.tolist()
    count = table.candidates.shape[1]
    line = f"Training candidates: recall@1 {first:.4f}, recall@{count} {among:.4f}"
    if folds:
        return f"{line} by the encoders of {folds} folds, which were trained on other documents"
    return (
        f"{line} without the exemplars of the mention's document; with them {first_with:.4f} and "
        f"{among_with:.4f}"
    )
