"""ArboLinker: the pipeline component. It has a life cycle; the packages do the work."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import Any

import catalogue
import numpy as np
from spacy import util
from spacy.language import Language
from spacy.pipeline import TrainablePipe
from spacy.tokens import Doc, Span
from spacy.training import Example, validate_examples, validate_get_examples
from spacy.util import SimpleFrozenList
from spacy.vocab import Vocab
from thinc.api import Model, Optimizer, set_dropout_rate

from .base.calibration import Calibration, CurveSettings
from .base.display import counted
from .base.errors import Errors, Warnings
from .base.log import warn_once
from .base.settings import check_choice
from .discovery.acceptance import Acceptance
from .discovery.grouping import Discovery
from .discovery.new_entities import NewEntities
from .encoders.dual import DualEncoder
from .encoders.inputs import EncodingCache
from .kb.knowledge_base import ArboKB
from .linking.by_label import ByLabel, ThresholdSetting, check_threshold
from .linking.corpus import CorpusLinker
from .linking.corrections import Corrections
from .linking.coverage import (
    CoverageEstimate,
    CoverageSetting,
    CoverageSource,
    check_coverage,
    documents_with_mentions,
)
from .linking.documents import DocumentLinker
from .linking.feedback import Feedback
from .linking.only import Only
from .linking.saving import Serializer, rebuild
from .linking.settings import LiveSettings, name_in_pipeline
from .linking.stages import LinkingStages, StagePart
from .mentions.annotations import ONLY_NIL, DocLinks, Overwrite, register_extension
from .mentions.explanation import Explanation
from .mentions.getters import gold_mentions_example
from .mentions.reader import MentionReader, MentionSettings
from .ranking.decisions import Inference
from .ranking.ranking import Reranker
from .retrieval.datastore import Datastore
from .retrieval.exemplars import ExemplarStore
from .retrieval.settings import RetrieverSettings
from .retrieval.similarity import Similarity
from .retrieval.snapshot import Snapshot
from .show.explain import Explainer
from .training.batchers import chosen_mentions
from .training.objective import TrainingObjective
from .training.trainer import Trainer, warn_of_high_rate

# What fits a linker stands above it, and is found by its entry point ``spacy_arbo_el_fits``.
fits = catalogue.create("spacy_arbo_el", "fits", entry_points=True)


class ArboLinker(TrainablePipe):
    """Link spans to entities of a knowledge base, and group the rest into new entities.

    model: The dual encoder.
    mentions: Which spans are linked, and how they are read.
    retriever: How candidates are searched.
    reranker: Scores the candidates.
    inference: Decides on links.
    discovery: Groups the mentions that no entity fits into new entities; None leaves each by
        itself.
    objective: What training pulls closer and pushes apart.
    scorer: For ``nlp.evaluate``.
    threshold: The probability that a link must have, 0 to 1; a mention without one is NIL. 0.0
        links whatever has a candidate. A table by label, with "*" for the other labels, has one for
        each.
    coverage: The share of mentions whose entity the knowledge base has: between 0 and 1, a table by
        label, None for that of the reranker's fit, or "estimate": a corpus that is linked as a
        whole has it estimated first.
    overwrite: Whether existing kb ids are replaced; "nil" replaces "NIL" alone, so that a second
        linker links what the first one left NIL.
    use_gold_ents: Whether ``score`` links the reference's mentions (accuracy on given mentions) or
        takes those that the pipeline finds (end to end).
    extension: Name of the attribute that carries the ``Link``: ``span._.arbo``.
    calibration: Curves from similarity to probability, see ``Calibration``.
    """

    cfg: LiveSettings

    def __init__(
        self,
        vocab: Vocab,
        model: Model,
        name: str = "arbo_linker",
        *,
        mentions: MentionSettings,
        retriever: RetrieverSettings,
        reranker: Reranker,
        inference: Inference,
        objective: TrainingObjective,
        discovery: Discovery | None = None,
        scorer: Callable | None = None,
        threshold: ThresholdSetting = 0.0,
        coverage: CoverageSetting = None,
        overwrite: Overwrite = True,
        use_gold_ents: bool = True,
        extension: str = "arbo",
        calibration: CurveSettings | None = None,
    ) -> None:
        self.vocab = vocab
        self.model = model
        self.name = name
        self.scorer = scorer
        check_choice("overwrite", overwrite, (True, False, ONLY_NIL))
        curves = Calibration.from_config(calibration)
        self.cfg = LiveSettings(
            {
                "threshold": check_threshold(threshold),
                "coverage": check_coverage(coverage),
                "overwrite": overwrite,
                "use_gold_ents": use_gold_ents,
                "extension": extension,
                "calibration": None if calibration is None else curves.to_config(),
            }
        )
        self.encoder = DualEncoder(model)
        datastore = Datastore(vocab, self.encoder, retriever, mentions.normalizer)
        self.stages = LinkingStages(
            MentionReader(
                self.encoder,
                mentions,
                datastore.has_type,
                datastore.named,
                datastore.respelled,
            ),
            self.encoder,
            datastore,
            Corrections(),
            reranker,
            inference,
            discovery,
            curves,
            self.cfg["coverage"],
        )
        self._new_entities = NewEntities()
        self.trainer = Trainer(name, model, datastore, objective)
        register_extension(extension)

    def __repr__(self) -> str:
        exemplars = counted(len(self.exemplars), "exemplar")
        details = [
            repr(self.name),
            repr(self.kb),
            exemplars,
            f"threshold {self.threshold}",
        ]
        if not self.encoder.is_ready:
            details.append("encoder not loaded yet")
        return f"ArboLinker({', '.join(details)})"

    # Parts. Those of the stages can be set too.

    datastore = StagePart[Datastore]()
    reader = StagePart[MentionReader]()
    reranker = StagePart[Reranker]()
    inference = StagePart[Inference]()
    discovery = StagePart[Discovery | None]()

    @property
    def kb(self) -> ArboKB:
        """The knowledge base. Entities that are added, updated or removed here count at once."""
        return self.datastore.kb

    @property
    def exemplars(self) -> ExemplarStore:
        """The labelled mentions that are searched beside the entities."""
        return self.datastore.exemplars

    @property
    def mentions(self) -> MentionSettings:
        """Selection of the spans that are linked."""
        return self.reader.settings

    @property
    def similarity(self) -> Similarity:
        """Similarity that vectors are compared by."""
        return self.datastore.settings.similarity

    @property
    def threshold(self) -> ByLabel:
        """The probability that a link must have. Those of labels are in its ``by_label``."""
        return ByLabel(self.cfg["threshold"])

    @threshold.setter
    def threshold(self, value: ThresholdSetting) -> None:
        self.cfg["threshold"] = check_threshold(value)

    @property
    def coverage(self) -> CoverageSetting:
        """The share of mentions whose entity the knowledge base has; None for that of the fit."""
        return self.cfg["coverage"]

    @coverage.setter
    def coverage(self, value: CoverageSetting) -> None:
        self.cfg["coverage"] = check_coverage(value)
        self.stages = replace(self.stages, coverage=self.cfg["coverage"])

    def estimate_coverage(self, source: CoverageSource) -> CoverageEstimate:
        """Estimate the share of mentions whose entity the knowledge base has, and set it.

        No mention needs a label. The estimate is kept in ``coverage`` and saved with the pipeline;
        ``linker.coverage = None`` undoes it.

        source: Docs with their mentions; or texts or the path of documents, whose mentions the
            pipeline's components before the linker find. At least 30 mentions.
        RETURNS: The estimate with its standard error, and what it changes; ``print`` it.
        """
        self.encoder.require_ready(self.name)
        getter = self.mentions.getter
        docs = documents_with_mentions(
            source, self, self.cfg.nlp, lambda doc: any(True for _ in getter(doc))
        )
        estimate = self.corpus.estimate_coverage(docs)
        self.coverage = estimate.setting
        return estimate

    def fit(
        self,
        docs: Iterable[Doc],
        *,
        strategy: str | None = None,
        by: str = "accuracy",
        folds: int = 5,
    ) -> Any:
        """Use labelled mentions in the best way that needs no training.

        The linker can stay as it is, be calibrated, store the mentions as exemplars, or do both.
        Each strategy is scored on documents that it has not used; the simplest within one standard
        error of the best is taken, and applied to all documents.

        docs: Documents whose mentions have a ``kb_id_``, "NIL" where the list has no entity; those
            without such mentions are left out.
        strategy: "calibrated", "exemplars" or "both", to use them so without comparing.
        by: What strategies and thresholds are chosen by: "accuracy", with NIL, or "f1" of links.
        folds: Parts of the documents; each is linked after the others were used.
        RETURNS: The strategy that was taken, and all of them on documents held out; ``print`` it.
        """
        return fits.get("linker")(self, docs, strategy=strategy, by=by, folds=folds)

    @property
    def calibration(self) -> Calibration:
        """The curves from similarity to probability."""
        return self.stages.calibration

    @calibration.setter
    def calibration(self, value: Calibration) -> None:
        self.cfg["calibration"] = value.to_config()
        self.stages = replace(self.stages, calibration=value)

    def caching_stages(self) -> LinkingStages:
        """Return the linker's stages with kept results, for linking the same mentions many times.

        The weights must stay unchanged meanwhile.
        """
        self.encoder.require_ready(self.name)
        return replace(self.stages, cache=EncodingCache())

    # Knowledge base and feedback

    def set_kb(self, source: Any) -> None:
        """Replace the knowledge base.

        It is encoded when it is first used. A folder keeps the vectors of each encoder.

        source: The path of a folder or of a file of entities; an ``ArboKB`` or spaCy's
            ``InMemoryLookupKB``; entities, dicts or a data frame; or a function from a vocabulary
            to a knowledge base.
        """
        self.datastore.set_kb(source)

    def refresh(self) -> Snapshot:
        """Encode entities and exemplars that lack current vectors.

        Linking, training and saving do so by themselves.
        """
        self.encoder.require_ready(self.name)
        return self.datastore.refresh()

    @property
    def feedback(self) -> Feedback:
        """Facet for corrections: ``learn``, ``reject_link``, ``forget``, and exemplars."""
        self.encoder.require_ready(self.name)
        return Feedback(self.reader, self.datastore, self.stages.corrections)

    # Linking

    def predict(
        self, docs: Iterable[Doc], stages: LinkingStages | None = None
    ) -> list[DocLinks]:
        """Link the mentions of each doc, without changing docs.

        stages: The stages to link with; by default the linker's own.
        RETURNS: For each doc its links by the mentions' character offsets.
        """
        docs = list(docs)
        if self.kb.is_empty() and any(
            True for doc in docs for _ in self.mentions.getter(doc)
        ):
            warn_once(Warnings.W545.format(name=self.name))
        return self._documents(stages).link(docs)

    def link(
        self,
        docs: Iterable[Doc],
        *,
        entities: Iterable[str] | None = None,
        types: Iterable[str] | None = None,
    ) -> list[Doc]:
        """Link docs to some entities of the knowledge base only, and write the links onto them.

        No other mention, text or correction leads to another entity.

        entities: Their ids. None for all.
        types: The types of which an entity must have one. None for all.
        RETURNS: The docs.
        """
        docs = list(docs)
        stages = self.stages
        if entities is not None or types is not None:
            stages = replace(
                stages, only=Only.of(stages.datastore.kb, entities, types)
            )
        self.set_annotations(docs, self.predict(docs, stages))
        return docs

    def set_annotations(self, docs: Iterable[Doc], links: list[DocLinks]) -> None:
        """Write the links of ``predict`` onto the docs; see ``annotations.py``."""
        documents = self._documents()
        for doc, of_doc in zip_longest(docs, links or ()):
            documents.annotate(doc, of_doc)

    def explain(self, span: Span, kb_id: str | None = None) -> Explanation:
        """Explain a mention's link, or why it is NIL.

        ``print`` it for a few lines of text.

        span: One of the document's mentions, or any other span.
        kb_id: An entity that was expected; the explanation says why it was not linked.
        """
        return Explainer(self.caching_stages(), self.threshold).explain(span, kb_id)

    def _documents(self, stages: LinkingStages | None = None) -> DocumentLinker:
        self.encoder.require_ready(self.name)
        extension = self.cfg["extension"]
        overwrite = self.cfg["overwrite"]
        return DocumentLinker(
            stages or self.stages, self.threshold, extension, overwrite
        )

    @property
    def corpus(self) -> CorpusLinker:
        """Facet for a corpus in one graph. ``link``, ``discover``, and both as streams."""
        return CorpusLinker(self.stages, self._documents(), self.new_entities)

    # New entities

    @property
    def new_entities(self) -> NewEntities:
        """New entities, kept and saved with the pipeline.

        What was decided on them holds in each ``corpus.discover``, and ``update`` adds what that
        gives.
        """
        self._new_entities.acceptance = self._acceptance
        return self._new_entities

    @new_entities.setter
    def new_entities(self, value: NewEntities) -> None:
        self._new_entities = value

    def _acceptance(self) -> Acceptance:
        require_ready = partial(self.encoder.require_ready, self.name)
        corrections = self.stages.corrections
        return Acceptance(
            self.datastore, corrections, self._new_entities, require_ready
        )

    # Training

    def initialize(
        self,
        get_examples: Callable[[], Iterable[Example]],
        *,
        nlp: Language | None = None,
        kb_loader: Callable[[Vocab], ArboKB] | None = None,
    ) -> None:
        """Load encoder and knowledge base; store mentions as exemplars. The mentions are those of
        the corpus.

        get_examples: Function that gives the training corpus.
        nlp: The pipeline.
        kb_loader: Function from a vocabulary to an ``ArboKB``. Without one the present KB stays,
            even if it is empty: then every mention is a new entity.

        Raises ValueError where no mention of the corpus has a gold id.
        """
        validate_get_examples(get_examples, "ArboLinker.initialize")
        self.model.initialize()
        self.encoder.weights_changed()
        if kb_loader is not None:
            self.set_kb(kb_loader)
        self.datastore.exemplars = ExemplarStore()
        self.stages = replace(self.stages, corrections=Corrections())
        self.new_entities = NewEntities()
        for batch in util.minibatch(get_examples(), size=256):
            self._store(batch)
        records = self.exemplars.records
        if records and not any(record.kb_ids for record in records):
            raise Errors.E508(name=self.name)
        self.datastore.warn_of_unknown_ids()

    def _store(self, examples: Iterable[Example]) -> np.ndarray:
        """Store the references' labelled mentions as exemplars. RETURNS: Their rows."""
        references = [example.reference for example in examples]
        spans = [
            chosen_mentions(doc, self.reader.all_mentions(doc)) for doc in references
        ]
        batch = self.reader.read(spans)
        with self.datastore.editing():
            return self.exemplars.extend(batch.records, batch.inputs)

    def update(
        self,
        examples: Iterable[Example],
        *,
        drop: float = 0.0,
        sgd: Optimizer | None = None,
        losses: dict[str, float] | None = None,
    ) -> dict[str, float]:
        """Learn from a batch's reference mentions (arborescence paper, §2.3).

        Mentions that ``initialize`` has not seen are stored as exemplars first.
        """
        losses = {} if losses is None else losses
        losses.setdefault(self.name, 0.0)
        examples = list(examples)
        validate_examples(examples, "ArboLinker.update")
        self.encoder.require_ready(self.name)
        rows = self._store(examples)
        if not len(rows) and self.trainer.needs_mentions:
            return losses
        set_dropout_rate(self.model, drop)
        loss, count = self.trainer.step(rows)
        if sgd is not None and count:
            self.finish_update(sgd)
        losses[self.name] += loss
        return losses

    def finish_update(self, sgd: Optimizer) -> None:
        warn_of_high_rate(self.name, self.model, sgd)
        self.model.finish_update(sgd)
        self.encoder.weights_changed(trained=True)

    def use_params(self, params: dict) -> Iterator[None]:
        """Use other weights for a while. Vectors are encoded again on demand."""
        was_trained = self.encoder.is_trained
        for _ in super().use_params(params):
            self.encoder.weights_changed(trained=was_trained or bool(params))
            yield
        self.encoder.weights_changed(trained=was_trained)

    def score(self, examples: Iterable[Example], **kwargs: Any) -> dict[str, Any]:
        """Score linked examples; see ``evaluation/scorer.py`` for the keys.

        With ``use_gold_ents``, the reference's mentions are linked and scored where the pipeline
        has not been given just these.
        """
        examples = list(examples)
        validate_examples(examples, "ArboLinker.score")
        if self.scorer is None:
            return {}
        if self.cfg["use_gold_ents"]:
            examples = self._with_gold_mentions(examples)
        kwargs.setdefault("get_spans", self.mentions.getter)
        kwargs.setdefault("extension", self.cfg["extension"])
        kwargs.setdefault("kb", self.kb)
        kwargs.setdefault("exemplars", self.exemplars.records)
        return self.scorer(examples, **kwargs)

    def _with_gold_mentions(self, examples: list[Example]) -> list[Example]:
        examples_with_gold = [
            gold_mentions_example(example, self.mentions.getter)
            for example in examples
        ]
        unlinked = [
            example.predicted for example, is_new in examples_with_gold if is_new
        ]
        documents = self._documents()
        for docs in util.minibatch(unlinked, size=64):
            for doc, links in zip(docs, documents.link(docs)):
                documents.annotate(doc, links)
        return [example for example, _ in examples_with_gold]

    # Serialization

    def __reduce__(self) -> tuple[Any, ...]:
        # For nlp.pipe(n_process=…) where processes are spawned; this never touches a file.
        settings = {
            "mentions": self.mentions,
            "retriever": self.datastore.settings,
            # What it has learned is among the parts.
            "reranker": self.reranker.from_bytes(b""),
            "inference": self.inference,
            "discovery": self.discovery,
            "objective": self.trainer.objective,
            "scorer": self.scorer,
            **self.cfg,
        }
        state = self.to_bytes(exclude=["vocab", "model"])
        return rebuild, (
            type(self),
            self.vocab,
            self.model,
            self.name,
            settings,
            state,
        )

    def to_bytes(self, *, exclude: Iterable[str] = SimpleFrozenList()) -> bytes:
        """Serialize.

        exclude: Any of vocab, model, kb, exemplars, reranker, corrections, new_entities. Settings
            are those of the config.
        """
        with self._one_state():
            return Serializer(self).to_bytes(exclude)

    def from_bytes(
        self, bytes_data: bytes, *, exclude: Iterable[str] = SimpleFrozenList()
    ) -> "ArboLinker":
        """Load the output of ``to_bytes``."""
        Serializer(self).from_bytes(bytes_data, exclude)
        return self

    def to_disk(
        self, path: str | Path, *, exclude: Iterable[str] = SimpleFrozenList()
    ) -> None:
        """Write the folder ``path``, which is there as a whole or not at all.

        exclude: As in ``to_bytes``.
        """
        with self._one_state():
            Serializer(self).to_disk(Path(path), exclude)

    def from_disk(
        self, path: str | Path, *, exclude: Iterable[str] = SimpleFrozenList()
    ) -> "ArboLinker":
        """Read a folder that ``to_disk`` wrote."""
        Serializer(self).from_disk(Path(path), exclude)
        return self

    def _one_state(self) -> AbstractContextManager[Any]:
        """A context in which no other thread changes the state."""
        self._validate_serialization_attrs()
        datastore = self.datastore
        return (
            datastore.snapshot()
            if self.encoder.is_ready
            else datastore.kb.guard.reading()
        )


def linkers_of(nlp: Language) -> dict[str, ArboLinker]:
    """The enabled linkers of a pipeline, by name."""
    return {name: pipe for name, pipe in nlp.pipeline if isinstance(pipe, ArboLinker)}


def find_linker(nlp: Language, name: str | None = None) -> ArboLinker:
    """Return the linker called ``name``, or the pipeline's first linker."""
    for pipe_name, pipe in linkers_of(nlp).items():
        if name in (None, pipe_name):
            return pipe
    called = f" called {name!r}" if name else ""
    raise Errors.E792(path=nlp.pipe_names, name=called)


def name_of_linker(nlp: Language, linker: ArboLinker) -> str:
    """Name of a linker in the pipeline. ``nlp.rename_pipe`` may have changed it."""
    return name_in_pipeline(linker, nlp) or linker.name
