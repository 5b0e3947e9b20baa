"""Weights between those before and after training."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from spacy.language import Language
from spacy.util import registry
from thinc.api import Model

from ..base.devices import torch
from ..base.errors import ArboError, Errors
from ..linker import linkers_of
from ..pipelines import load_pipeline, save_pipeline


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


def averaged_copy(nlp: Language, share: float) -> Language:
    """A copy whose linkers have averaged weights, while training continues with the pipeline.

    The copy searches the entities that the pipeline searches.

    share: The share of the weights that an encoder has by its name in the config.
    """
    linkers = linkers_of(nlp)
    if not any(node.shims for linker in linkers.values() for node in linker.model.walk()):
        raise ArboError(Errors.E621)
    folder = TemporaryDirectory()
    path = Path(folder.name) / "pipeline"
    # Training draws the same random numbers afterwards.
    with torch.random.fork_rng():
        save_pipeline(nlp, path)
        copy = load_pipeline(path)
        # The knowledge base stays in the folder, which is removed with the copy.
        vars(copy)["folder"] = folder
        config = copy.config.interpolate()["components"]
        for name in linkers:
            before = registry.resolve({"model": config[name]["model"]})["model"]
            before.initialize()
            linker: Any = copy.get_pipe(name)
            average_weights(before, linker.model, share)
            linker.encoder.weights_changed(trained=True)
            linker.datastore.among = linkers[name].datastore.among
    return copy
