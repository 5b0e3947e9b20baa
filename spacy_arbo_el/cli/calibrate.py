"""``arbo calibrate``: probabilities and the reranker, fitted on annotated documents."""

from pathlib import Path
from typing import Optional

from spacy.cli._util import Arg, Opt
from wasabi import msg

from ._util import errors_for_people
from .arguments import CODE, MODEL, check_annotated, check_model


def calibrate_command(
    # fmt: off
    model: Path = MODEL,
    data: Path = Arg(..., help="Annotated .spacy that the linker was not trained on"),
    output: Optional[Path] = Opt(
        None, "--output", "-o", help="Where to save the pipeline; by default it is overwritten"
    ),
    code: Optional[Path] = CODE,
    # fmt: on
) -> None:
    """Fit probabilities and the reranker.

    The curves from similarity to probability are printed.

    \b
    Example:
      python -m spacy arbo calibrate out/model-best dev.spacy --output calibrated
    """
    import spacy

    from ..calibration.calibration import Calibration
    from ..corpora.docbin import read_docs
    from ..evaluation.calibrate import calibrate_pipeline
    from ..linker import find_linker
    from ..pipelines import changing_pipeline, load_pipeline, save_pipeline

    with errors_for_people():
        check_model(model)
        check_annotated(data)
    with errors_for_people(), changing_pipeline(output or model):
        # The present calibration may be of another version.
        config = spacy.util.load_config(model / "config.cfg")
        linkers = [n for n, c in config["components"].items() if c["factory"] == "arbo_linker"]
        nlp = load_pipeline(model, config={f"components.{n}.calibration": None for n in linkers})
        for name in linkers:
            find_linker(nlp, name).calibration = Calibration()
        fitted = calibrate_pipeline(nlp, list(read_docs(data, nlp.vocab)))
        save_pipeline(nlp, output or model)
    for name, parts in fitted.items():
        for kind, curve in parts.calibration.to_config().items():
            msg.info(f"{name}, {kind}: sigmoid({curve[0]:.2f} * similarity {curve[1]:+.2f})")
        if parts.reranker_accuracy is not None:
            accuracy = f"{parts.reranker_accuracy:.4f} on held-out documents"
            msg.info(f"{name}, reranker: accuracy {accuracy}")
