"""Weights between those before and after training."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from spacy.language import Language
from spacy.util import registry
from thinc.api import Model

from ..base.devices import torch
from ..base.errors import ArboError, Errors
from ..linker import ArboLinker, linkers_of
from .short_run import copied_pipeline


def average_weights(before: Model, after: Model, share: float) -> None:
    """Interpolate between the weights of transformers before and after training.

    Between the two, an encoder that was trained on few or on noisy mentions is often better than
    both (WiSE-FT; Wortsman et al. 2022, §3).

    before: The model before training.
    after: The trained one, which is changed.
    share: The share of the weights before training, 0 to 1.
    """
    pairs = [(a, b) for m, n in zip(before.walk(), after.walk()) for a, b in zip(m.shims, n.shims)]
    for start, trained in pairs:
        weights = dict(start._model.named_parameters())
        with torch.no_grad():
            for name, parameter in trained._model.named_parameters():
                parameter.lerp_(weights[name], share)


@contextmanager
def averaged(nlp: Language, share: float) -> Iterator[None]:
    """Give the linkers of a pipeline averaged weights in the block.

    share: The share of the weights that an encoder has by its name in the config. 0 changes
        nothing, and neither do weights without training.
    """
    linkers = _averageable(nlp) if share else {}
    trained = {name: one for name, one in linkers.items() if one.encoder.is_trained}
    kept = {name: _parameters(linker.model) for name, linker in trained.items()}
    copies = {name: [one.detach().clone() for one in own] for name, own in kept.items()}
    try:
        for name, linker in trained.items():
            average_weights(_untrained(nlp, name), linker.model, share)
            linker.encoder.weights_changed(trained=True)
        yield
    finally:
        with torch.no_grad():
            for name, linker in trained.items():
                for parameter, copy in zip(kept[name], copies[name]):
                    parameter.copy_(copy)
                linker.encoder.weights_changed(trained=True)


def averaged_copy(nlp: Language, share: float) -> Language:
    """Make a copy whose linkers have averaged weights, to save it in place of the pipeline.

    share: As in ``averaged``.
    """
    linkers = _averageable(nlp)
    # Training draws the same random numbers afterwards.
    with torch.random.fork_rng():
        copy = copied_pipeline(nlp)
        for name in linkers:
            linker: Any = copy.get_pipe(name)
            average_weights(_untrained(copy, name), linker.model, share)
            linker.encoder.weights_changed(trained=True)
    return copy


def _averageable(nlp: Language) -> dict[str, ArboLinker]:
    """The linkers of a pipeline. Raises ValueError where none has a transformer."""
    linkers = linkers_of(nlp)
    if not any(node.shims for linker in linkers.values() for node in linker.model.walk()):
        raise ArboError(Errors.E621)
    return linkers


def _untrained(nlp: Language, name: str) -> Model:
    config = nlp.config.interpolate()["components"][name]["model"]
    with torch.random.fork_rng():
        model: Model = registry.resolve({"model": config})["model"]
        model.initialize()
    return model


def _parameters(model: Model) -> list[Any]:
    return [one for node in model.walk() for shim in node.shims for one in shim._model.parameters()]
