"""``arbo show``: look at links, their evidence, and what is new."""

from collections import defaultdict
from pathlib import Path

from spacy.cli._util import Arg, Opt

from ._util import errors_for_people


def show_command(
    # fmt: off
    model: Path = Arg(..., help="Pipeline with a linker"),
    corpus: Path = Arg(..., help=".spacy with mentions"),
    limit: int = Opt(5, "--limit", "-n", help="At most this many documents"),
    # fmt: on
) -> None:
    """Link the mentions of some documents and show what was linked, why, and what is new."""
    import spacy
    from rich.console import Console
    from rich.markup import escape

    from ..corpora.reader import MentionCorpus
    from ..evaluation.report import find_linker

    console = Console(width=130)
    with errors_for_people():
        nlp = spacy.load(model)
        linker = find_linker(nlp)
        examples = list(MentionCorpus(corpus, limit=limit)(nlp))
    new = defaultdict(list)
    for number, doc in enumerate(nlp.pipe([eg.predicted for eg in examples]), 1):
        console.print(f"\n[bold]{number}.[/bold] {escape(doc.text)}")
        console.print(_links_table(doc, linker))
        for span in linker.span_getter(doc):
            link = span._.get(linker.cfg["extension"])
            if link is not None and link.cluster:
                new[number, link.cluster].append(span.text)
    if new:
        console.print("\n[bold]Discovered: not in the knowledge base[/bold]")
        for (number, cluster), texts in new.items():
            console.print(f"  document {number}, {cluster}: " + escape(" = ".join(texts)))


def _links_table(doc, linker):
    from rich.table import Table

    table = Table(show_edge=False)
    for column in ("mention", "link", "entity", "chance", "why"):
        table.add_column(column, overflow="fold")
    for span in linker.span_getter(doc):
        link = span._.get(linker.cfg["extension"])
        if link is None:
            continue
        if link.is_nil:
            best = (
                f"best refused: {link.candidates[0].kb_id}" if link.candidates else "no candidates"
            )
            table.add_row(span.text, link.cluster or "NIL", "", f"{link.score:.2f}", best)
        else:
            title = linker.kb.get(link.kb_id).title
            steps = " ← ".join(
                f"{step.kind} “{step.text}” ({step.weight:.2f})" for step in link.evidence[1:]
            )
            table.add_row(span.text, link.kb_id, title, f"{link.score:.2f}", steps)
    return table
