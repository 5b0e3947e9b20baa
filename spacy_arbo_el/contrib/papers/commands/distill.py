"""The command ``arbo distill``: train an n-gram student."""

from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from spacy.cli._util import Opt
from wasabi import msg

from ....cli._util import config_overrides, user_errors
from ....cli.arguments import CODE, MODEL, open_model

if TYPE_CHECKING:
    from spacy.language import Language
    from thinc.api import Model

    from ..distillation import DistillationReport, DistillationSettings


def distill_command(
    # fmt: off
    ctx: typer.Context,
    model: Path = MODEL,
    config: Path = Opt(..., "--config", "-c", help="Config of the student"),
    texts: list[Path] = Opt(
        ..., "--texts", "-t", help="Texts: .txt, .jsonl, .csv or .spacy files, or folders"
    ),
    output: Path = Opt(..., "--output", "-o", help="Folder for the encoder"),
    target: str = Opt(
        "vectors", "--target", help="Target: vectors, or similarities for another width"
    ),
    steps: int = Opt(2000, "--steps", help="Number of steps"),
    mentions: int = Opt(20000, "--mentions", help="The most mentions that are read"),
    code: Path | None = CODE,
    # fmt: on
) -> None:
    """Distill an n-gram encoder.

    The config's encoder learns the vectors that MODEL gives to names of entities and to mentions in
    texts. Labels are not needed. Mentions are those annotated, otherwise names of entities and
    other words. Texts are read in order until --mentions is reached: name annotated ones first.
    Train with --paths.encoder OUTPUT. Settings of the config are overridden as in spacy train.

    \b
    Example:
      python -m spacy arbo distill out/model-best -c student.cfg -t raw.jsonl -o encoder
      python -m spacy arbo distill out/model-best -c student.cfg -t train.spacy -t raw.jsonl -o enc
    """
    from ....storage.folders import check_replaceable
    from ..distillation import DistillationSettings
    from ..ngrams.starting import NGRAM_ENCODER, save_encoder

    with user_errors(only_coded=True):
        check_replaceable(output, NGRAM_ENCODER)
        settings = DistillationSettings(target, steps, mentions=mentions)
        student = _student(config, config_overrides(ctx))
        report = _distilled(open_model(model), student, texts, settings)
        save_encoder(student, output)
    what = "mean cosine" if target == "vectors" else "correlation of similarities"
    msg.good(
        f"{output}: from {report.mentions} mentions and {report.names} names; {what} with the "
        f"teacher {report.before:.4f} before, {report.after:.4f} after"
    )


def _student(config: Path, overrides: dict[str, Any]) -> "Model":
    """The untrained encoder of a config."""
    from spacy.util import load_config, registry

    from ..distillation import check_student

    components = load_config(config, overrides=overrides, interpolate=True)["components"]
    student = registry.resolve({"model": components["arbo_linker"]["model"]})["model"]
    check_student(student)
    student.initialize()
    return student


def _distilled(
    nlp: "Language", student: "Model", texts: Sequence[Path], settings: "DistillationSettings"
) -> "DistillationReport":
    """Train the student on the texts, with a progress bar."""
    from tqdm import tqdm

    from ....corpora.names import spans_to_read
    from ....corpora.read import read_documents
    from ....linker import find_linker
    from ..distillation import distill

    linker = find_linker(nlp)
    docs = chain.from_iterable(read_documents(path, nlp) for path in texts)
    spans = spans_to_read(docs, nlp, linker.kb.entities, linker.mentions.getter, settings.seed)
    with tqdm(total=settings.steps, unit=" steps", leave=False) as bar:
        return distill(linker, student, spans, settings, lambda step, loss: _show(bar, loss))


def _show(bar: Any, loss: float) -> None:
    bar.set_postfix(loss=f"{loss:.4f}", refresh=False)
    bar.update()
