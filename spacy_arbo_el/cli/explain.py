"""``arbo explain``: why the mentions of a text are linked so."""

from pathlib import Path

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
    # fmt: on
) -> None:
    """Say why mentions are linked so, or not at all."""
    import spacy
    from spacy.tokens import Span

    from ..evaluation.report import find_linker
    from ..mentions import find_mentions

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
            spans = [Span(doc, found.start, found.end, label=label or found.label_)]
        if not spans:
            msg.fail("The pipeline found no mention. Name one with --mention.", exits=1)
        for span in spans:
            print(linker.explain(span, kb_id or None))
