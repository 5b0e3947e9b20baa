"""``arbo show``: links with their evidence, and new entities."""

from collections import Counter, defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Dict, Iterable, Iterator, List, Optional, Set, Tuple

from spacy.cli._util import Opt
from spacy.tokens import Doc, Span

from ._util import errors_for_people, plain, print_table
from .arguments import CODE, DATA, MODEL, open_model

if TYPE_CHECKING:
    from ..annotations import Link
    from ..linker import ArboLinker


def show_command(
    # fmt: off
    model: Path = MODEL,
    data: Path = DATA,
    limit: int = Opt(5, "--limit", "-n", help="Number of documents to show; all are linked"),
    code: Optional[Path] = CODE,
    # fmt: on
) -> None:
    """Show links with their evidence.

    All documents are linked in one graph. Some are shown, and all new entities.

    \b
    Example:
      python -m spacy arbo show out/model-best dev.spacy --limit 3
    """
    from rich.console import Console
    from tqdm import tqdm

    from ..corpora.reader import MentionCorpus
    from ..linker import find_linker

    console = Console(width=130)
    with errors_for_people():
        nlp = open_model(model, data)
        linker = find_linker(nlp)
        examples = tqdm(MentionCorpus(data)(nlp), unit=" documents", leave=False)
        docs = linker.corpus.link(example.predicted for example in examples)
    for number, doc in enumerate(docs[:limit], 1):
        console.print(f"\n[bold]{number}.[/bold]", plain(doc.text))
        _print_links(doc, linker)
    _print_new_entities(docs, linker)


def _links(doc: Doc, linker: "ArboLinker") -> Iterator[Tuple[Span, "Link"]]:
    for span in linker.mentions.getter(doc):
        link = span._.get(linker.cfg["extension"])
        if link is not None:
            yield span, link


def _print_links(doc: Doc, linker: "ArboLinker") -> None:
    rows = ((span.text, *_link_cells(link, linker)) for span, link in _links(doc, linker))
    print_table(("mention", "link", "entity", "probability", "evidence"), rows)


def _print_new_entities(docs: Iterable[Doc], linker: "ArboLinker") -> None:
    texts: Dict[str, Counter] = defaultdict(Counter)
    documents: Dict[str, Set[int]] = defaultdict(set)
    for number, doc in enumerate(docs):
        for span, link in _links(doc, linker):
            if link.cluster:
                texts[link.cluster][span.text] += 1
                documents[link.cluster].add(number)
    rows = []
    for cluster in sorted(texts, key=lambda cluster: -sum(texts[cluster].values())):
        names = ", ".join(f"{text} ({count})" for text, count in texts[cluster].most_common())
        total = sum(texts[cluster].values())
        rows.append((cluster, total, len(documents[cluster]), names))
    columns = ("new entity", "mentions", "documents", "names")
    print_table(columns, rows, "\nDiscovered: not in the knowledge base")


def _link_cells(link: "Link", linker: "ArboLinker") -> List[str]:
    score = f"{link.score:.2f}"
    if link.is_nil:
        best = f"best candidate: {link.candidates[0].kb_id}" if link.candidates else "no candidates"
        return [link.cluster or "NIL", "", score, best]
    steps = (f"{step.kind} “{step.text}” ({step.weight:.2f})" for step in link.evidence[1:])
    return [link.kb_id, linker.kb.get(link.kb_id).title, score, " ← ".join(steps)]
