"""The command ``arbo explain``: reasons for a text's links."""

from pathlib import Path
from typing import Optional

from spacy.cli._util import Arg, Opt
from wasabi import msg

from ._util import errors_for_people, visible_lines
from .arguments import CODE, MODEL, open_model


def explain_command(
    # fmt: off
    model: Path = MODEL,
    text: str = Arg(..., help="A text with mentions"),
    mention: str = Opt(
        "", "--mention", help="The mention to link; by default those that the pipeline finds"
    ),
    label: str = Opt("", "--label", help="The label of the mention, if the linker matches types"),
    kb_id: str = Opt("", "--kb-id", help="The id of the expected entity"),
    page: Optional[Path] = Opt(None, "--page", help="HTML page of the links and their evidence"),
    code: Optional[Path] = CODE,
    # fmt: on
) -> None:
    """Explain why mentions have their links.

    With --kb-id, also why a mention is not linked to that entity.

    \b
    Example:
      python -m spacy arbo explain out/model-best "Boats travel up the Amazon." --mention Amazon
    """
    from spacy.tokens import Span

    from ..explanations.html import render_evidence
    from ..linker import find_linker
    from ..mentions.getters import find_mentions, set_mentions
    from ..storage.files import write_file

    with errors_for_people():
        nlp = open_model(model)
        linker = find_linker(nlp)
        getter = linker.mentions.getter
        doc = nlp(text)
        spans = find_mentions(doc, getter)
        if mention:
            start = doc.text.find(mention)
            span = doc.char_span(start, start + len(mention), alignment_mode="expand")
            if start < 0 or span is None:
                msg.fail(f"There is no {mention!r} in the text.", exits=1)
            # doc.ents drops entities without a label.
            spans = [Span(doc, span.start, span.end, label=label or "MENTION")]
            set_mentions(doc, spans, getter)
            doc = linker(doc)
        if not spans:
            msg.fail("The pipeline found no mention. Name one with --mention.", exits=1)
        for span in spans:
            print(visible_lines(linker.explain(span, kb_id or None)))
        if page is not None:
            extension, threshold = linker.cfg["extension"], linker.threshold
            html = render_evidence(
                [doc], get_spans=getter, extension=extension, threshold=threshold
            )
            write_file(page, html.encode("utf8"))
            msg.good(f"{page}: the text with its links and their evidence")
