"""ArboLinker: the pipeline component. It walks the road; the rooms do the work."""

from dataclasses import replace
from typing import (
    Any,
    Callable,
    Dict,
    Iterable,
    Iterator,
    List,
    Mapping,
    Optional,
    Sequence,
    Tuple,
)

import numpy as np
from spacy import util
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example, validate_examples, validate_get_examples
from spacy.vocab import Vocab
from thinc.api import Model, Optimizer, set_dropout_rate

from .annotations import register_extension
from .component.explaining import ExplainingLinker
from .component.linking import LinkingLinker
from .component.saving import check_threshold
from .discovery.grouping import Discovery
from .discovery.new_entities import NewEntities
from .encoders.encoding import DualEncoding
from .inference.calibration import Calibration
from .inference.decisions import Inference
from .inference.ranker import Ranker
from .kb.knowledge_base import ArboKB
from .kb.lookup import Lookup
from .kb.verbalizations import Verbalization
from .mentions import (
    MentionReader,
    SpanGetter,
    gold_mentions_example,
)
from .retrieval.corrections import Corrections
from .retrieval.exemplars import ExemplarStore
from .retrieval.index import BuildIndex
from .retrieval.lexical import BuildLexicon
from .retrieval.memory import Memory
from .retrieval.similarity import Similarity
from .rewriting.text import Rewrite
from .training.learner import Learner, Objective
from .training.losses import Loss
from .training.negatives import Negatives
from .training.positives import Positives
from .training.refresh import Refresh


class ArboLinker(ExplainingLinker):
    """Links spans to entities of a knowledge base and groups those that nothing fits.

    model: The dual encoder.
    span_getter: Which spans are mentions: ``doc.ents``, or a group of ``doc.spans``.
    verbalization: The texts an entity is encoded from.
    similarity: How near vectors are.
    index: Builds the search index.
    inference: From neighbours to links.
    discovery: Groups the mentions that nothing fits into new entities; None leaves each alone.
    positives, negatives, loss: What training pulls together and pushes apart, and how.
    refresh: When training renews the vectors that it chooses positives and negatives on.
    rewrite: What of a text is read in other words, such as abbreviations; None for nothing.
    lexicon: Compares the strings of mentions, names and exemplars too, and lets a fitted
        ranker weigh up all that speaks for an entity; None for vectors alone.
    lookup: Finds entities by name beside those found by vector; None for vectors alone.
    scorer: For ``nlp.evaluate``.
    threshold: The chance of being right that a link must have, 0 to 1; below it a
        mention is NIL. 0.0 links whatever the graph can reach.
    n_candidates: Candidates found for each mention, and kept on its ``Link``.
    match_types: Whether a mention may only be linked to entities that have its label for a type,
        or no type at all.
    max_exemplars: Exemplars of an entity that are searched, those that stand for the others best;
        0 for all.
    overwrite: Whether kb ids that are there already are replaced.
    use_gold_ents: Whether ``score`` links the reference's mentions (accuracy on given
        mentions) or takes those the pipeline found (end to end).
    labels_discard: Spans with these labels become NIL unseen.
    extension: Name of the attribute that carries the ``Link``: ``span._.arbo``.
    calibration: Curves from similarity to probability, see ``Calibration``.
    """

    def __init__(
        self,
        vocab: Vocab,
        model: Model,
        name: str = "arbo_linker",
        *,
        span_getter: SpanGetter,
        verbalization: Verbalization,
        similarity: Similarity,
        index: BuildIndex,
        inference: Inference,
        positives: Positives,
        negatives: Negatives,
        loss: Loss,
        refresh: Refresh,
        rewrite: Optional[Rewrite] = None,
        lexicon: Optional[BuildLexicon] = None,
        lookup: Optional[Lookup] = None,
        discovery: Optional[Discovery] = None,
        scorer: Optional[Callable] = None,
        threshold: float = 0.0,
        n_candidates: int = 64,
        match_types: bool = False,
        max_exemplars: int = 0,
        overwrite: bool = True,
        use_gold_ents: bool = True,
        labels_discard: Sequence[str] = (),
        extension: str = "arbo",
        calibration: Optional[Mapping[str, Sequence[float]]] = None,
    ):
        self.vocab = vocab
        self.model = model
        self.name = name
        self.similarity = similarity
        self.inference = inference
        self.discovery = discovery
        self.new_entities = NewEntities()
        self.scorer = scorer
        # The part of the state that spaCy's tools read and write.
        self.cfg: Dict[str, Any] = {
            "threshold": threshold,
            "n_candidates": n_candidates,
            "match_types": match_types,
            "overwrite": overwrite,
            "use_gold_ents": use_gold_ents,
            "extension": extension,
            "calibration": Calibration.from_config(calibration).to_config(),
        }
        self._given = dict(self.cfg)
        self.ranker: Optional[Ranker] = None
        self.span_getter = span_getter
        self.labels_discard = frozenset(labels_discard)
        self.encoding = DualEncoding(model)
        self.memory = Memory(
            vocab,
            self.encoding,
            verbalization,
            similarity,
            index,
            lexicon,
            rewrite,
            lookup,
            max_exemplars,
        )
        self.reader = MentionReader(self.encoding, span_getter, rewrite)
        objective = Objective(positives, negatives, loss, refresh)
        self.learner = Learner(name, model, self.memory, objective)
        register_extension(extension)
        check_threshold(threshold)

    @property
    def threshold(self) -> float:
        """The chance of being right that a link must have."""
        return self.cfg["threshold"]

    @threshold.setter
    def threshold(self, value: float) -> None:
        check_threshold(value)
        self.cfg["threshold"] = value

    @property
    def calibration(self) -> Calibration:
        """The curves from similarity to probability, and the ranker."""
        return replace(Calibration.from_config(self.cfg["calibration"]), ranker=self.ranker)

    @calibration.setter
    def calibration(self, value: Calibration) -> None:
        self.cfg["calibration"] = value.to_config()
        self.ranker = value.ranker

    # Knowledge base and exemplars

    def set_kb(self, kb_loader: Callable[[Vocab], ArboKB], *, reencode: bool = False) -> None:
        """Take over a knowledge base.

        kb_loader: Function from a vocabulary to an ``ArboKB``.
        reencode: Whether vectors of another encoder may be replaced. Without it they are an error.
        """
        self.memory.set_kb(kb_loader, reencode=reencode)

    # Training

    def initialize(
        self,
        get_examples: Callable[[], Iterable[Example]],
        *,
        nlp: Optional[Language] = None,
        kb_loader: Optional[Callable[[Vocab], ArboKB]] = None,
    ) -> None:
        """Load the encoder and the knowledge base, and store the corpus's mentions as exemplars.

        get_examples: Function that gives the training corpus.
        kb_loader: Function from a vocabulary to an ``ArboKB``. Without one the KB that is
            there stays, be it empty: then every mention is a new entity.
        """
        validate_get_examples(get_examples, "ArboLinker.initialize")
        self.model.initialize()
        self.encoding.changed()
        if kb_loader is not None:
            self.set_kb(kb_loader, reencode=True)
        self.memory.exemplars, self.memory.corrections = ExemplarStore(), Corrections()
        self.new_entities = NewEntities()
        self.memory.changed()
        for batch in util.minibatch(get_examples(), size=256):
            self._store([example.reference for example in batch])
        self.memory.warn_of_unknown_ids()

    def _store(self, docs: Sequence[Doc]) -> np.ndarray:
        """Keep the docs' labelled mentions as exemplars; their rows in the store."""
        return self.memory.store(*self.reader.labelled(docs))

    def update(
        self,
        examples: Iterable[Example],
        *,
        drop: float = 0.0,
        sgd: Optional[Optimizer] = None,
        losses: Optional[Dict[str, float]] = None,
    ) -> Dict[str, float]:
        """Learn from the reference mentions of a batch (arborescence paper, §2.3).

        Mentions that ``initialize`` has not seen are taken up as exemplars first.
        """
        losses = {} if losses is None else losses
        losses.setdefault(self.name, 0.0)
        examples = list(examples)
        validate_examples(examples, "ArboLinker.update")
        self.encoding.require_ready(self.name)
        rows = self._store([example.reference for example in examples])
        if not len(rows):
            return losses
        set_dropout_rate(self.model, drop)
        loss, count = self.learner.step(rows)
        if sgd is not None and count:
            self.finish_update(sgd)
        losses[self.name] += loss
        return losses

    def finish_update(self, sgd: Optimizer) -> None:
        self.model.finish_update(sgd)
        self.encoding.changed()

    def use_params(self, params: Dict) -> Iterator[None]:
        """Use other weights for a while; vectors are encoded again as they are needed."""
        for _ in super().use_params(params):
            self.encoding.changed()
            yield
        self.encoding.changed()

    def training_state(self) -> Tuple[Dict[str, np.ndarray], Dict[str, Any]]:
        """What a checkpoint must keep of training beside the weights: arrays, and JSON."""
        if len(self.exemplars.vectors) != len(self.exemplars):
            self.memory.complete()
        arrays, state = self.learner.state()
        kept = {"exemplars": self.exemplars.to_bytes(), "ranker": self._ranker_to_bytes()}
        arrays.update((name, np.frombuffer(data, dtype=np.uint8)) for name, data in kept.items())
        return arrays, {"learner": state, "cfg": self.cfg}

    def restore_training_state(self, arrays: Dict[str, np.ndarray], state: Dict[str, Any]) -> None:
        """Take over what ``training_state`` gave, after the weights."""
        self.cfg.update(state["cfg"])
        self._ranker_from_bytes(arrays["ranker"].tobytes())
        self.memory.exemplars = ExemplarStore().from_bytes(arrays["exemplars"].tobytes())
        self.memory.changed()
        self.encoding.changed()
        self.learner.restore(arrays, state["learner"])

    def score(self, examples: Iterable[Example], **kwargs) -> Dict[str, Any]:
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
        kwargs.setdefault("get_spans", self.span_getter)
        kwargs.setdefault("extension", self.cfg["extension"])
        return self.scorer(examples, **kwargs)

    def _with_gold_mentions(self, examples: List[Example]) -> List[Example]:
        given = [gold_mentions_example(example, self.span_getter) for example in examples]
        again = [example.predicted for example, is_new in given if is_new]
        for docs in util.minibatch(again, size=64):
            # Each for itself: what is scored is not kept as new entities.
            self.set_annotations(docs, LinkingLinker.predict(self, docs))
        return [example for example, _ in given]
