"""``arbo show``: links of documents with their evidence, and explanations of a text."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spacy.cli._util import Arg, Opt
from spacy.language import Language
from spacy.tokens import Doc, Span
from wasabi import msg

from ..base.errors import Errors
from ._util import plain, print_table, user_errors, visible_lines
from .arguments import CODE, MODEL, check_needs, open_model

if TYPE_CHECKING:
    from ..linker import ArboLinker
    from ..mentions.annotations import Link


FEATURES = Opt(False, "--features", help="The numbers behind the words, in log-odds")
PAGE = Opt(None, "--page", help="HTML page of the text's links and their evidence")


def show_command(
    # fmt: off
    model: Path = MODEL,
    data: Path | None = Arg(None, help="Annotated .spacy file, or a folder of them"),
    limit: int = Opt(5, "--limit", "-n", help="Number of documents to show; all are linked"),
    text: str = Opt("", "--text", help="Instead of documents: explain the links of this text"),
    mention: str = Opt(
        "", "--mention", help="Its mention; by default those that the pipeline finds"
    ),
    label: str = Opt("", "--label", help="The label of the mention, if the linker matches types"),
    kb_id: str = Opt("", "--kb-id", help="The id of the entity that you expect"),
    features: bool = FEATURES,
    page: Path | None = PAGE,
    code: Path | None = CODE,
    # fmt: on
) -> None:
    """Show links with their evidence.

    All documents are linked in one graph. Some are shown, and all new entities. Or the links of a
    text are explained, and with --kb-id also why a mention is not linked to that entity.

    \b
    Example:
      python -m spacy arbo show out/model-best dev.spacy --limit 3
      python -m spacy arbo show out/model-best --text "Boats travel up the Amazon."
    """
    with user_errors():
        options: dict[str, Any] = {
            "--mention": mention,
            "--label": label,
            "--kb-id": kb_id,
            "--page": page,
            "--features": features,
        }
        if not text:
            is_given = {option: bool(value) for option, value in options.items()}
            check_needs(is_given, "--text", "documents are shown without it")
        if (data is None) != bool(text):
            raise Errors.E836()
        nlp = open_model(model, data)
        if data is not None:
            _show_documents(nlp, data, limit)
            return
        doc = _linked_text(nlp, text, mention, label)
        _explain(nlp, doc, kb_id or None, features)
        if page is not None:
            _write_page(nlp, doc, page)


def _show_documents(nlp: Language, data: Path, limit: int) -> None:
    from rich.console import Console
    from tqdm import tqdm

    from ..corpora.reader import MentionCorpus
    from ..linker import find_linker

    console = Console(width=130)
    linker = find_linker(nlp)
    examples = tqdm(MentionCorpus(data)(nlp), unit=" documents", leave=False)
    docs = linker.corpus.link(example.predicted for example in examples)
    for number, doc in enumerate(docs[:limit], 1):
        console.print(f"\n[bold]{number}.[/bold]", plain(doc.text))
        _print_links(doc, linker)
    _print_new_entities(docs, linker)


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


def _links(doc: Doc, linker: "ArboLinker") -> Iterator[tuple[Span, "Link"]]:
    for span in linker.mentions.getter(doc):
        link = span._.get(linker.cfg["extension"])
        if link is not None:
            yield span, link


def _print_links(doc: Doc, linker: "ArboLinker") -> None:
    rows = ((span.text, *_link_cells(link, linker)) for span, link in _links(doc, linker))
    columns = ("mention", "link", "entity", "probability", "in the list", "share", "evidence")
    print_table(columns, rows)


def _print_new_entities(docs: Iterable[Doc], linker: "ArboLinker") -> None:
    texts: dict[str, Counter] = defaultdict(Counter)
    documents: dict[str, set[int]] = defaultdict(set)
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


def _link_cells(link: "Link", linker: "ArboLinker") -> list[str]:
    share = f"{link.shares[0]:.2f}" if link.shares else ""
    numbers = f"{link.score:.2f}", f"{link.presence:.2f}", share
    if link.is_nil:
        best = f"best candidate: {link.candidates[0].kb_id}" if link.candidates else "no candidates"
        if link.undecided:
            best = f"undecided between: {' '.join(candidate.kb_id for candidate in link.undecided)}"
        return [link.cluster or "NIL", "", *numbers, best]
    steps = (f"{step.kind} “{step.text}” ({step.weight:.2f})" for step in link.evidence[1:])
    return [link.kb_id, linker.kb.get(link.kb_id).title, *numbers, " ← ".join(steps)]
