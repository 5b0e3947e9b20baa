"""The weights that an n-gram encoder begins with."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy
from safetensors import SafetensorError
from thinc.api import Model

from ....base.errors import ArboError
from ....encoders.sources import resolve_name
from ....storage.folders import FolderKind, replacing_folder
from ..errors import PaperMessages
from .fields import unigram_rows
from .hashing import number_tokens, tokenize

WEIGHTS = "ngrams.safetensors"
SETTINGS = "ngrams.json"
FORMAT = 1
# What the names of the table of word pieces end with, in the architectures of BERT's family.
WORD_PIECES = "embeddings.word_embeddings.weight"


def _names_of_encoder(folder: Path) -> str | None:
    names = (WEIGHTS, SETTINGS)
    is_encoder = all((folder / name).is_file() for name in names)
    return "|".join(map(re.escape, names)) if is_encoder else None


NGRAM_ENCODER = FolderKind("an n-gram encoder", _names_of_encoder)


def random_projection(width: int, inner: int, seed: int) -> np.ndarray:
    """(width, inner) float: a random projection that roughly keeps angles.

    It is the same in all processes.
    """
    generator = np.random.default_rng((seed, width, inner))
    return generator.normal(scale=(2.0 / width) ** 0.5, size=(width, inner))


def identity_block(width: int, inner: int, place: int, others: float, noise: float) -> np.ndarray:
    """Initial weights that pass on one input: (width, inner). A share of the others is passed on
    too.

    inner: A multiple of the width: inputs of that width beside each other.
    place: Which of the inputs is passed on.
    others: The share of the others.
    noise: The size of random weights between all of them.
    """
    generator = np.random.default_rng((place, width, inner))
    weights = generator.normal(scale=noise / width**0.5, size=(width, inner))
    for number in range(inner // width):
        block = weights[:, number * width : (number + 1) * width]
        block += np.eye(width) * (1.0 if number == place else others)
    return weights


def starting_weights(model: Model) -> None:
    """Initialize the table of vectors, and distilled weights if any.

    model: What ``build_ngram_encoder`` gives, with the weights of its layers.

    Raises ValueError where ``start`` names nothing that can be read.
    """
    start = model.attrs["start"]
    table = model.get_ref("mention").get_ref("table")
    rows = table.get_dim("nV")
    width = table.get_dim("nO")
    vectors = np.random.default_rng((rows, width)).normal(size=(rows, width)) / width**0.5
    ops: Any = table.ops
    if start is not None and not (Path(start) / WEIGHTS).is_file():
        words, found = word_piece_vectors(start, width)
        own = _rows_of_words(words, rows)
        vectors *= np.linalg.norm(found, axis=1).mean()
        # Vocabularies begin with their most frequent words: these keep a row that others share.
        vectors[own[::-1]] = found[::-1]
    table.set_param("E", ops.asarray2f(vectors.astype(np.float32)))
    if start is not None and (Path(start) / WEIGHTS).is_file():
        load_encoder(model, Path(start))


def _rows_of_words(words: list[str], rows: int) -> np.ndarray:
    """(n,) int64, the rows of words in the table."""
    tokens = tokenize(words)
    none = np.zeros(len(tokens), dtype=bool)
    numbers, _, _ = number_tokens(tokens, none, 0, none)
    return unigram_rows(numbers[tokens.bounds[:-1]], rows)


def word_piece_vectors(name: str, width: int) -> tuple[list[str], np.ndarray]:
    """Whole words of a transformer's vocabulary with their vectors.

    The vectors are those of its first layer without their mean, projected onto their principal
    directions where the width is less than theirs. Torch is not needed.

    name: The bundled encoder, or a folder with vocab.txt and model.safetensors.
    width: The width of the vectors.
    RETURNS: n words, and (n, width) float32.
    """
    folder = Path(resolve_name(name))
    for file in ("vocab.txt", "model.safetensors"):
        if not (folder / file).is_file():
            raise ArboError(PaperMessages.E850.format(name=name, file=file))
    try:
        table = _word_piece_table(folder / "model.safetensors")
    except (SafetensorError, StopIteration, ValueError):
        raise ArboError(PaperMessages.E850.format(name=name, file=WORD_PIECES)) from None
    if width > table.shape[1]:
        raise ArboError(PaperMessages.E851.format(name=name, width=width, available=table.shape[1]))
    pieces = (folder / "vocab.txt").read_text(encoding="utf8").split("\n")[: len(table)]
    # Whole words of one token: not "##ing", "[CLS]" or "[unused0]".
    numbers = [i for i, piece in enumerate(pieces) if piece.isalnum() and piece == piece.lower()]
    tokens = tokenize([pieces[i] for i in numbers])
    numbers = [i for i, count in zip(numbers, np.diff(tokens.bounds).tolist()) if count == 1]
    vectors = table[numbers] - table[numbers].mean(axis=0)
    if width < vectors.shape[1]:
        values, directions = np.linalg.eigh(vectors.T @ vectors)
        vectors = vectors @ directions[:, np.argsort(-values)[:width]]
    return [pieces[i] for i in numbers], vectors


def _word_piece_table(path: Path) -> np.ndarray:
    with safetensors.safe_open(str(path), framework="numpy") as file:
        name = next(key for key in file.keys() if key.endswith(WORD_PIECES))  # noqa: SIM118
        return np.asarray(file.get_tensor(name), dtype=np.float32)


# Folders of `arbo distill`


def settings_of(model: Model) -> dict[str, Any]:
    """Settings that an encoder's weights depend on."""
    mention = model.get_ref("mention")
    table = mention.get_ref("table")
    reader = mention.attrs["reader"]
    return {
        "format": FORMAT,
        "width": mention.get_dim("nO"),
        "vectors": table.get_dim("nO"),
        "rows": table.get_dim("nV"),
        "hidden": mention.layers[-1].get_dim("nI"),
        "near": reader.near,
        "window": reader.window,
        "subwords": reader.subwords,
    }


def _parameters(model: Model) -> dict[str, tuple[Model, str]]:
    """The towers' nodes with the names of their parameters."""
    nodes = [*model.get_ref("mention").walk(), *model.get_ref("entity").walk()]
    distinct = {node.id: node for node in nodes}.values()
    return {
        f"{number}.{name}": (node, name)
        for number, node in enumerate(distinct)
        for name in sorted(node.param_names)
    }


def save_encoder(model: Model, output: Path) -> None:
    """Save an encoder's weights to a folder for ``start``."""
    arrays = {
        key: np.ascontiguousarray(node.ops.to_numpy(node.get_param(name)))
        for key, (node, name) in _parameters(model).items()
    }
    with replacing_folder(output, NGRAM_ENCODER) as folder:
        safetensors.numpy.save_file(arrays, str(folder / WEIGHTS))
        (folder / SETTINGS).write_text(json.dumps(settings_of(model), indent=1), encoding="utf8")


def load_encoder(model: Model, folder: Path) -> None:
    """Load the weights of a folder that ``save_encoder`` wrote.

    Raises ValueError where they are for other settings, or are damaged.
    """
    try:
        saved = json.loads((folder / SETTINGS).read_text(encoding="utf8"))
        arrays = safetensors.numpy.load_file(str(folder / WEIGHTS))
    except (OSError, ValueError, SafetensorError) as error:
        raise ArboError(PaperMessages.E852.format(path=folder, problem=error)) from None
    own = settings_of(model)
    if not isinstance(saved, dict) or saved != own:
        saved = saved if isinstance(saved, dict) else {}
        names = [name for name in own if saved.get(name) != own[name]]
        differing = ", ".join(f"{name} = {saved.get(name)}" for name in names)
        raise ArboError(PaperMessages.E853.format(path=folder, settings=differing))
    parameters = _parameters(model)
    for key, (node, name) in parameters.items():
        array = arrays.get(key)
        if array is None or array.shape != node.get_param(name).shape:
            raise ArboError(PaperMessages.E852.format(path=folder, problem=f"{key} is missing"))
        if array.dtype != np.float32 or not np.isfinite(array).all():
            raise ArboError(PaperMessages.E852.format(path=folder, problem=f"{key} is damaged"))
    for key, (node, name) in parameters.items():
        ops: Any = node.ops
        node.set_param(name, ops.asarray(arrays[key]))
