"""The command ``arbo errors``: list a pipeline's wrong links."""

from pathlib import Path
from typing import List, Optional

from spacy.cli._util import Opt
from wasabi import msg

from ..errors import ArboError, Errors
from ._util import errors_for_people, visible_lines
from .arguments import CODE, DATA, GPU, LIMIT, MODEL, open_model

# How many pairs of entities are printed.
N_CONFUSIONS = 10


def errors_command(
    # fmt: off
    model: Path = MODEL,
    data: Path = DATA,
    output: List[Path] = Opt(
        ..., "--output", "-o", help="What to write: an .html page or a .csv table; may be repeated"
    ),
    limit: int = LIMIT,
    gpu_id: int = GPU,
    code: Optional[Path] = CODE,
    # fmt: on
) -> None:
    """List wrong links on annotated documents.

    The annotated mentions are linked. Wrong links are grouped by cause: the correct entity is not
    in the knowledge base, was not retrieved, or was ranked lower. Each has its sentence, the
    correct and the linked entity, the candidates and the path. The most confident come first.

    \b
    Example:
      python -m spacy arbo errors out/model-best dev.spacy -o errors.html -o errors.csv
    """
    from ..evaluation.report import annotated_examples, own_outcomes
    from ..evaluation.wrong_links import as_csv, confusions, summary, to_html, wrong_links
    from ..linker import find_linker
    from ..storage.files import write_file

    with errors_for_people():
        for path in output:
            if path.suffix.lower() not in (".html", ".csv"):
                raise ArboError(Errors.E835.format(path=path))
        nlp = open_model(model, data)
        linker = find_linker(nlp)
        results = own_outcomes(nlp, annotated_examples(nlp, data, limit))
        wrong = wrong_links(linker, results)
        total = sum(one.gold is not None for one in results)
        for path in output:
            is_page = path.suffix.lower() == ".html"
            text = to_html(wrong, total, linker.threshold) if is_page else as_csv(wrong)
            write_file(path, text.encode("utf8", "replace"))
    print(visible_lines(summary(wrong, total)))
    for count, gold, predicted in confusions(wrong)[:N_CONFUSIONS]:
        print(visible_lines(f"{count:5d} × {gold} → {predicted}"))
    msg.good(f"{', '.join(map(str, output))}: wrong links")
