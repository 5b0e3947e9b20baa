"""The arborescence of a document as a drawing. It shows through which mention each has its link.

Every link has a path from an entity to its mention. The paths of a document share their first
steps, so together they are a forest: an entity, its exemplars and mentions under it, and other
mentions under these.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from spacy.tokens import Doc

from ..base.pages import part
from ..mentions.annotations import DEFAULT_EXTENSION, Evidence, Link, links_of
from ..mentions.getters import EntSpans, SpanGetter, find_mentions, offsets_of_span

# Pixels: of a row and a column, and how high and how wide a box is at most.
ROW = 34
COLUMN = 250
HEIGHT = 26
WIDTH = 190
# Characters of a box.
LENGTH = 24
FILLS = {
    "entity": "#dbeafe",
    "exemplar": "#dcfce7",
    "mention": "#fef9c3",
    "new entity": "#f3f4f6",
}

# What identifies a node: its kind and its id.
NodeKey = tuple[str, str]


@dataclass
class Node:
    """An entity, an exemplar or a mention in a forest.

    text: What its box says.
    about: What shows when it is pointed at.
    probability: Of the edge that leads to it; None for a root.
    children: The nodes under it.
    """

    kind: str
    text: str
    about: str
    probability: float | None = None
    children: list["Node"] = field(default_factory=list)


def forest_of(links: Iterable[tuple[str, str, Link]]) -> list[Node]:
    """Build the forest of the paths of links. Its roots are returned.

    links: The place ("start:end"), the surface form and the link of each mention.
    """
    nodes: dict[NodeKey, Node] = {}
    roots: list[Node] = []

    def place(key: NodeKey, node: Node, parent: Node | None) -> Node:
        if key in nodes:
            return nodes[key]
        nodes[key] = node
        (roots if parent is None else parent.children).append(node)
        return node

    for offsets, text, link in links:
        parent: Node | None = None
        for step in link.evidence:
            node = _node_of(step, is_root=parent is None)
            parent = place((step.kind, step.id), node, parent)
        if link.cluster:
            root = Node("new entity", link.cluster, f"new entity {link.cluster}")
            root = place(("new entity", link.cluster), root, None)
            place(("mention", offsets), Node("mention", text, offsets), root)
    return roots


def _node_of(step: Evidence, *, is_root: bool) -> Node:
    text = f"{step.text} ({step.id})" if step.kind == "entity" else step.text
    description = " · ".join(
        item for item in (step.kind, step.id, step.document, step.context) if item
    )
    return Node(step.kind, text, description, None if is_root else step.weight)


def draw_arborescence(
    doc: Doc,
    *,
    get_spans: SpanGetter | None = None,
    extension: str = DEFAULT_EXTENSION,
) -> str:
    """The links of a document as a drawing (SVG). Each entity with the mentions that it reaches.

    A line shows the probability of its step. Mentions of a new entity are under its id. In a
    notebook: ``IPython.display.HTML(draw_arborescence(doc))``.

    doc: A linked Doc.
    get_spans: Which spans to draw; ``doc.ents`` by default.
    extension: The attribute that carries the links.
    """
    spans = find_mentions(doc, get_spans or EntSpans())
    links = [
        ("{}:{}".format(*offsets_of_span(span)), span.text, link)
        for span, link in zip(spans, links_of(doc, spans, extension))
        if link is not None
    ]
    return as_svg(forest_of(links))


def as_svg(roots: Iterable[Node]) -> str:
    """A forest as a drawing, roots at the left."""
    boxes = []
    row = column = 0
    for top, depth, parent, node in _placed(roots):
        row = max(row, top + 1)
        column = max(column, depth + 1)
        before = None if parent is None else ((depth - 1) * COLUMN, parent * ROW)
        boxes.append((node, depth * COLUMN, top * ROW, before))
    width = max(column * COLUMN - (COLUMN - WIDTH), 1) + 2
    height = max(row * ROW, 1)
    box = {"height": HEIGHT, "width": WIDTH, "letters": LENGTH, "fills": FILLS}
    return part("forest", boxes, width, height, box)


def _placed(roots: Iterable[Node]) -> Iterator[tuple[int, int, int | None, Node]]:
    """Lay out all nodes in rows and columns.

    RETURNS: For each node its row, column, the row of its parent (None for a root), and itself.

    The first child is in the row of its parent, each other one in a separate row.
    """
    row = 0
    for root in roots:
        waiting: list[tuple[int, int | None, Node, bool]] = [(0, None, root, True)]
        rows_of: dict[int, int] = {}
        while waiting:
            depth, parent, node, is_first = waiting.pop()
            if not is_first:
                row += 1
            rows_of[id(node)] = row
            yield row, depth, parent, node
            children = list(enumerate(node.children))
            for number, child in reversed(children):
                waiting.append((depth + 1, rows_of[id(node)], child, number == 0))
        row += 1
