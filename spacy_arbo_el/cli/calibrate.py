"""``arbo calibrate``: probabilities and the reranker, fitted on annotated documents."""

from pathlib import Path
from typing import TYPE_CHECKING, Optional

from wasabi import msg

from .arguments import CODE, HELD_OUT, MODEL, OUTPUT, changed_pipeline

if TYPE_CHECKING:
    from spacy.language import Language


def calibrate_command(
    # fmt: off
    model: Path = MODEL,
    data: Path = HELD_OUT,
    output: Optional[Path] = OUTPUT,
    code: Optional[Path] = CODE,
    # fmt: on
) -> None:
    """Fit probabilities and the reranker.

    The curves from similarity to probability are printed.

    \b
    Example:
      python -m spacy arbo calibrate out/model-best dev.spacy --output calibrated
    """
    from ..corpora.docbin import read_docs
    from ..evaluation.calibrate import calibrate_pipeline

    with changed_pipeline(model, output, data, _load_uncalibrated) as nlp:
        fitted = calibrate_pipeline(nlp, list(read_docs(data, nlp.vocab)))
    for name, parts in fitted.items():
        for kind, curve in parts.calibration.to_config().items():
            msg.info(f"{name}, {kind}: sigmoid({curve[0]:.2f} * similarity {curve[1]:+.2f})")
        if parts.reranker_accuracy is not None:
            right = f"{parts.reranker_accuracy:.1%} of the held-out mentions that have a right one"
            msg.info(f"{name}, reranker: the first candidate is right for {right}")


def _load_uncalibrated(model: Path) -> "Language":
    """Load without the calibration. It may be of another version."""
    from spacy.util import load_config

    from ..calibration import Calibration
    from ..linker import find_linker
    from ..pipelines import load_pipeline

    config = load_config(model / "config.cfg")
    linkers = [n for n, c in config["components"].items() if c["factory"] == "arbo_linker"]
    nlp = load_pipeline(model, config={f"components.{n}.calibration": None for n in linkers})
    for name in linkers:
        find_linker(nlp, name).calibration = Calibration()
    return nlp
