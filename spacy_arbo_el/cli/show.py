"""``arbo show``: explanations of the links of a text."""

from pathlib import Path

from spacy.cli._util import Opt
from spacy.language import Language
from spacy.tokens import Doc, Span
from wasabi import msg

from ._util import user_errors, visible_lines
from .arguments import CODE, MODEL, open_model

FEATURES = Opt(False, "--features", help="The numbers behind the words, in log-odds")
PAGE = Opt(None, "--page", help="HTML page of the text's links and their evidence")


def show_command(
    # fmt: off
    model: Path = MODEL,
    text: str = Opt(..., "--text", help="The text whose links are explained"),
    mention: str = Opt(
        "", "--mention", help="Its mention; by default those that the pipeline finds"
    ),
    label: str = Opt(
        "", "--label", help="The label of the mention, if the linker matches types"
    ),
    kb_id: str = Opt("", "--kb-id", help="The id of the entity that you expect"),
    features: bool = FEATURES,
    page: Path | None = PAGE,
    code: Path | None = CODE,
    # fmt: on
) -> None:
    """Explain the links of a text.

    With --kb-id also why a mention is not linked to that entity.

    \b
    Example:
      python -m spacy arbo show out/model-best --text "Boats travel up the Amazon."
    """
    with user_errors():
        nlp = open_model(model)
        doc = _linked_text(nlp, text, mention, label)
        _explain(nlp, doc, kb_id or None, features)
        if page is not None:
            _write_page(nlp, doc, page)


def _linked_text(nlp: Language, text: str, mention: str, label: str) -> Doc:
    from ..linker import find_linker
    from ..mentions.getters import set_mentions

    doc = nlp(text)
    if not mention:
        return doc
    start = doc.text.find(mention)
    span = doc.char_span(start, start + len(mention), alignment_mode="expand")
    if start < 0 or span is None:
        msg.fail(f"There is no {mention!r} in the text.", exits=1)
    linker = find_linker(nlp)
    # doc.ents drops entities without a label.
    spans = [Span(doc, span.start, span.end, label=label or "MENTION")]
    set_mentions(doc, spans, linker.mentions.getter)
    return linker(doc)


def _explain(nlp: Language, doc: Doc, kb_id: str | None, has_numbers: bool) -> None:
    from ..linker import find_linker
    from ..mentions.getters import find_mentions

    linker = find_linker(nlp)
    spans = find_mentions(doc, linker.mentions.getter)
    if not spans:
        msg.fail("The pipeline found no mention. Name one with --mention.", exits=1)
    for span in spans:
        explanation = linker.explain(span, kb_id)
        print(visible_lines(explanation))
        if has_numbers and explanation.numbers:
            print(visible_lines(f"  by: {explanation.numbers}"))


def _write_page(nlp: Language, doc: Doc, path: Path) -> None:
    from ..linker import find_linker
    from ..show.html import render_evidence
    from ..storage.files import write_file

    linker = find_linker(nlp)
    settings = {"extension": linker.cfg["extension"], "threshold": linker.threshold}
    html = render_evidence([doc], get_spans=linker.mentions.getter, **settings)
    write_file(path, html.encode("utf8"))
    msg.good(f"{path}: the text with its links and their evidence")
