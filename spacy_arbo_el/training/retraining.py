"""Training the linker of a pipeline once more, from the beginning, on chosen documents."""

from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import Any, Dict, Iterator, List, Sequence

from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example
from spacy.training.loop import create_train_batches, train_while_improving
from thinc.api import fix_random_seed

from ..errors import Errors
from ..linker import ArboLinker, find_linker, name_of_linker
from .loop import resolve_settings
from .resume import flat_settings

# What decides how an encoder is trained, in the section of the linker and in that of the training.
_OF_LINKER = ("inference", "mentions", "model", "objective", "retriever")
_OF_TRAINING = ("accumulate_gradient", "batcher", "before_update", "dropout", "optimizer", "seed")
# Not used here. Their functions may not be installed any more.
_LEFT_OUT: Dict[str, Any] = {
    "logger": {"@loggers": "spacy.ConsoleLogger.v1"},
    "before_to_disk": None,
    "score_weights": {},
}


@dataclass(frozen=True)
class Retraining:
    """How the linker of a pipeline is trained once more, as the pipeline's config says.

    nlp: The pipeline, which stays as it is.
    name: The name of its linker.
    component: The section of the linker in the config.
    training: The section ``[training]``.
    steps: The number of steps.
    """

    nlp: Language
    name: str
    component: Dict[str, Any]
    training: Dict[str, Any]
    steps: int

    @classmethod
    def of(cls, nlp: Language, docs: Sequence[Doc], steps: int, seed: int) -> "Retraining":
        """The training of a pipeline's linker.

        nlp: The pipeline.
        docs: The annotated documents that the linker was trained on.
        steps: The number of steps; 0 for as many as the config says for these documents.
        seed: The seed to use where the config has none.

        Raises ValueError where the config freezes the linker, or where neither ``steps`` nor the
        config says when training ends.
        """
        linker, config = find_linker(nlp), nlp.config.interpolate()
        name = name_of_linker(nlp, linker)
        training = {**config["training"], **_LEFT_OUT}
        if name in training["frozen_components"]:
            raise ValueError(Errors.E886.format(name=name))
        if training["seed"] is None:
            training["seed"] = seed
        steps = steps or _count_steps(nlp, training, docs)
        return cls(nlp, name, config["components"][name], training, steps)

    @property
    def settings(self) -> Dict[str, Any]:
        """All that decides how the encoder is trained, by dotted names."""
        component = {name: self.component[name] for name in _OF_LINKER}
        training = {name: self.training[name] for name in _OF_TRAINING}
        sections = {"components": {self.name: component}, "training": training}
        return {"steps": self.steps, **dict(flat_settings(sections))}

    def untrained(self) -> ArboLinker:
        """A linker with the weights that training begins with, and without a knowledge base.

        Raises ValueError where the encoder cannot be loaded.
        """
        fix_random_seed(self.training["seed"])
        linker = find_linker(self._new_pipeline())
        linker.model.initialize()
        linker.encoder.weights_changed()
        return linker

    def check_batches(self, docs: Sequence[Doc]) -> None:
        """Raise ValueError where the batcher of the config makes no batch of documents."""
        examples, batcher = _examples(docs), resolve_settings(self.training)["batcher"]
        try:
            batch, problem = next(iter(batcher(examples)), None), "it gives no batch"
        except ValueError as error:
            batch, problem = None, str(error)
        if not batch:
            raise ValueError(Errors.E889.format(count=len(docs), problem=problem))

    @contextmanager
    def trained(self, docs: Sequence[Doc]) -> Iterator[ArboLinker]:
        """A linker that is trained on the annotated mentions of documents.

        It has a copy of the knowledge base, with the same positions. It has its averaged weights,
        where the optimizer keeps any, as long as the context lasts.
        """
        # As spaCy does: once before the first weights are drawn, and once before the first step.
        fix_random_seed(self.training["seed"])
        nlp = self._new_pipeline()
        linker, knowledge_base = find_linker(nlp), find_linker(self.nlp).kb
        examples = _examples(docs)
        linker.initialize(lambda: examples, nlp=nlp, kb_loader=knowledge_base.without_vectors)
        training = resolve_settings(self.training)
        updates = train_while_improving(
            nlp,
            training["optimizer"],
            # There are never more passes than steps.
            create_train_batches(nlp, lambda _: examples, training["batcher"], self.steps),
            lambda: (0.0, {}),
            dropout=training["dropout"],
            eval_frequency=self.steps,
            accumulate_gradient=training["accumulate_gradient"],
            patience=0,
            max_steps=0,
            exclude=[],
            annotating_components=[],
            before_update=training["before_update"],
        )
        for _ in islice(updates, self.steps):
            pass
        with nlp.use_params(training["optimizer"].averages):
            yield linker

    def _new_pipeline(self) -> Language:
        """A pipeline with nothing but an untrained linker, and the same vocabulary."""
        nlp = type(self.nlp)(self.nlp.vocab, create_tokenizer=lambda _: self.nlp.tokenizer)
        component = dict(self.component)
        nlp.add_pipe(component.pop("factory"), self.name, config=component)
        return nlp


def _count_steps(nlp: Language, training: Dict[str, Any], docs: Sequence[Doc]) -> int:
    """The steps of a training on documents."""
    epochs, most, patience = (training[name] for name in ("max_epochs", "max_steps", "patience"))
    epochs = max(epochs, 0)
    if patience or not (epochs or most):
        message = Errors.E885.format(patience=patience, epochs=epochs, steps=most)
        raise ValueError(message)
    # spaCy counts steps from 0, and stops after the step with this number.
    most = most + 1 if most else 0
    if not epochs:
        return most
    examples, batcher = _examples(docs), resolve_settings(training)["batcher"]
    batches = create_train_batches(nlp, lambda _: examples, batcher, epochs)
    return sum(1 for _ in islice(batches, most or None))


def _examples(docs: Sequence[Doc]) -> List[Example]:
    # A linker learns from references only.
    return [Example(doc, doc) for doc in docs]
