"""Pretraining of encoders on entity names, without documents."""

import re
from pathlib import Path
from typing import Any, Dict, Iterator, Optional

from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example
from spacy.util import registry
from thinc.api import Config

from ..config_sources import complete_config
from ..encoders.serialization import TOKENIZER_FILES, save_transformer
from ..encoders.shim import shim_of
from ..errors import ArboError, Errors
from ..linker import ArboLinker
from ..storage.folders import FolderKind, replacing_folder


def _names_of_encoder(folder: Path) -> Optional[str]:
    names = ("config.json", "model.safetensors", *sorted(TOKENIZER_FILES))
    is_encoder = all((folder / name).is_file() for name in names[:2])
    return "|".join(map(re.escape, names)) if is_encoder else None


ENCODER = FolderKind("an encoder", _names_of_encoder)


# Not a dataclass: spaCy passes readers through pydantic.
@registry.readers("spacy-arbo-el.NoDocuments.v1")
class NoDocuments:
    """A corpus of empty documents. Each is a step that trains on names alone.

    Use it with ``NameQueries``::

        [corpora.train]
        @readers = "spacy-arbo-el.NoDocuments.v1"
        n = 1

    n: The number of documents.
    """

    def __init__(self, n: int = 1) -> None:
        self.n = n

    def __call__(self, nlp: Language) -> Iterator[Example]:
        for _ in range(self.n):
            yield Example(Doc(nlp.vocab), Doc(nlp.vocab))


def pretraining_config(config: Optional[Path], kb: Path, overrides: Dict[str, Any]) -> Config:
    """The config of a pretraining.

    config: A file; None for the config of the package.
    kb: A knowledge base, or a file of entities.
    overrides: Further settings, with dotted names.
    """
    if config is None:
        text = complete_config("pretrain")
    else:
        text = Config().from_disk(config, interpolate=False).to_str(interpolate=False)
    return Config().from_str(text, overrides={"paths.kb": str(kb), **overrides}, interpolate=False)


def check_one_encoder(linker: ArboLinker) -> None:
    """Raise ValueError where the encoder is not one transformer."""
    tower = linker.model.get_ref("mention")
    if tower is not linker.model.get_ref("entity"):
        raise ArboError(Errors.E614.format(name=linker.name))
    if not tower.shims:
        raise ArboError(Errors.E619.format(name=linker.name))


def save_encoder(linker: ArboLinker, output: Path) -> None:
    """Save a linker's transformer as Hugging Face does."""
    check_one_encoder(linker)
    shim = shim_of(linker.model.get_ref("mention"))
    with replacing_folder(output, ENCODER) as folder:
        save_transformer(folder, shim.tokenizer, shim._model)
