"""``arbo explain``: why the mentions of a text are linked so."""

from pathlib import Path
from typing import Optional

from spacy.cli._util import Arg, Opt
from wasabi import msg

from ._util import errors_for_people


def explain_command(
    # fmt: off
    model: Path = Arg(..., help="Pipeline with a linker"),
    text: str = Arg(..., help="A text with mentions"),
    mention: str = Opt("", "--mention", help="What is to be linked; by default what is found"),
    label: str = Opt("", "--label", help="The mention's label, where types count"),
    kb_id: str = Opt("", "--kb-id", help="The entity that was expected"),
    page: Optional[Path] = Opt(None, "--page", help="HTML page of the text, its links and paths"),
    # fmt: on
) -> None:
    """Say why mentions are linked so, or not at all."""
    import spacy
    from spacy.tokens import Span

    from ..evaluation.report import find_linker
    from ..io import write_file
    from ..mentions import find_mentions, set_mentions
    from ..visualization import render_evidence

    with errors_for_people():
        nlp = spacy.load(model)
        linker = find_linker(nlp)
        doc = nlp(text)
        spans = find_mentions(doc, linker.span_getter)
        if mention:
            start = doc.text.find(mention)
            found = doc.char_span(start, start + len(mention), alignment_mode="expand")
            if start < 0 or found is None:
                msg.fail(f"There is no {mention!r} in the text.", exits=1)
            # doc.ents keeps no entity without a label.
            spans = [Span(doc, found.start, found.end, label=label or "MENTION")]
            set_mentions(doc, spans, linker.span_getter)
            doc = linker(doc)
        if not spans:
            msg.fail("The pipeline found no mention. Name one with --mention.", exits=1)
        for span in spans:
            print(linker.explain(span, kb_id or None))
        if page is not None:
            settings = {"get_spans": linker.span_getter, "extension": linker.cfg["extension"]}
            write_file(page, render_evidence([doc], **settings).encode("utf8"))
            msg.good(f"{page}: the text, its links and what carried them")
