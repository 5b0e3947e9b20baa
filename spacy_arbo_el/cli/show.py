"""``arbo show``: look at links, their evidence, and what is new."""

from collections import Counter, defaultdict
from pathlib import Path

from spacy.cli._util import Arg, Opt

from ._util import errors_for_people


def show_command(
    # fmt: off
    model: Path = Arg(..., help="Pipeline with a linker"),
    corpus: Path = Arg(..., help=".spacy with mentions"),
    limit: int = Opt(5, "--limit", "-n", help="Documents to show; all are linked"),
    # fmt: on
) -> None:
    """Link all documents together; show the links of some, why, and what is new in all of them."""
    import spacy
    from rich.console import Console
    from rich.markup import escape
    from tqdm import tqdm

    from ..corpora.reader import MentionCorpus
    from ..evaluation.report import find_linker

    console = Console(width=130)
    with errors_for_people():
        nlp = spacy.load(model)
        linker = find_linker(nlp)
        examples = tqdm(MentionCorpus(corpus)(nlp), unit=" documents", leave=False)
        docs = linker.link_corpus(example.predicted for example in examples)
    for number, doc in enumerate(docs[:limit], 1):
        console.print(f"\n[bold]{number}.[/bold] {escape(doc.text)}")
        console.print(_links_table(doc, linker))
    console.print(_new_table(docs, linker))


def _new_table(docs, linker):
    from rich.table import Table

    texts, places = defaultdict(Counter), defaultdict(set)
    for number, doc in enumerate(docs, 1):
        for span in linker.span_getter(doc):
            link = span._.get(linker.cfg["extension"])
            if link is not None and link.cluster:
                texts[link.cluster][span.text] += 1
                places[link.cluster].add(number)
    table = Table(title="\nDiscovered: not in the knowledge base", title_justify="left")
    for column in ("new entity", "mentions", "documents", "called"):
        table.add_column(column, overflow="fold")
    for cluster in sorted(texts, key=lambda c: -sum(texts[c].values())):
        names = ", ".join(f"{text} ({count})" for text, count in texts[cluster].most_common())
        total, where = sum(texts[cluster].values()), len(places[cluster])
        table.add_row(cluster, str(total), str(where), names)
    return table


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
