"""Draws docs/graph_example.svg: the smallest graph whose two partitions differ.

    python docs/graph_example.py

The drawing shows the result of ``graph.link``.
"""

from html import escape
from pathlib import Path

import numpy as np

from spacy_arbo_el import graph

ENTITIES = ["e0", "e1"]
MENTIONS = ["y", "v"]
# Node numbers: entities first.
SOURCE, TARGET = np.array([0, 1, 2]), np.array([2, 3, 3])
WEIGHT = np.array([10, 1, 0.5], dtype=np.float32)

PLACES = [(50, 55), (50, 165), (190, 55), (190, 165)]
COLOURS = ["#1b6ca8", "#c2571a"]
RADIUS, WIDTH, HEIGHT = 22, 270, 215
TITLES = {
    "arborescence": "arborescence: v with e0",
    "minimax": "minimax: v with e1",
}


def arrow(edge: int, kept: bool, colour: str) -> str:
    (x1, y1), (x2, y2) = PLACES[SOURCE[edge]], PLACES[TARGET[edge]]
    length = np.hypot(x2 - x1, y2 - y1)
    dx, dy = (x2 - x1) / length * (RADIUS + 4), (y2 - y1) / length * (RADIUS + 4)
    style = (
        f'stroke="{colour}" stroke-width="2.5"'
        if kept
        else 'stroke="#bbb" stroke-dasharray="5 4"'
    )
    line = (
        f'<line x1="{x1 + dx:.0f}" y1="{y1 + dy:.0f}" x2="{x2 - dx:.0f}" y2="{y2 - dy:.0f}" '
        f'{style} marker-end="url(#head)"/>'
    )
    x, y = (x1 + x2) / 2, (y1 + y2) / 2
    beside = 'dx="8" dy="4"' if x1 == x2 else 'dy="-8" text-anchor="middle"'
    return f'{line}<text x="{x:.0f}" y="{y:.0f}" {beside}>{WEIGHT[edge]:g}</text>'


def node(number: int, colour: str) -> str:
    x, y = PLACES[number]
    name = (ENTITIES + MENTIONS)[number]
    if number < len(ENTITIES):
        shape = (
            f'<rect x="{x - RADIUS}" y="{y - RADIUS}" width="44" height="44" rx="4"'
        )
    else:
        shape = f'<circle cx="{x}" cy="{y}" r="{RADIUS}"'
    label = f'<text x="{x}" y="{y + 5}" text-anchor="middle" fill="white">{escape(name)}</text>'
    return f'{shape} fill="{colour}"/>{label}'


def panel(method: str, left: int) -> str:
    links = graph.link(
        len(ENTITIES), len(MENTIONS), SOURCE, TARGET, WEIGHT, method=method
    )
    owner = [*range(len(ENTITIES)), *links.entity.tolist()]
    parts = [
        f'<text x="{WIDTH / 2:.0f}" y="18" text-anchor="middle">{TITLES[method]}</text>'
    ]
    for edge in range(len(SOURCE)):
        mention = TARGET[edge] - len(ENTITIES)
        kept = links.parent[mention] == SOURCE[edge]
        parts.append(arrow(edge, kept, COLOURS[owner[TARGET[edge]]]))
    parts += [node(number, COLOURS[owner[number]]) for number in range(len(owner))]
    return f'<g transform="translate({left} 0)">' + "\n".join(parts) + "</g>"


def picture() -> str:
    head = (
        '<marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
        'orient="auto" markerUnits="userSpaceOnUse"><path d="M0 0L8 4L0 8z" fill="#555"/></marker>'
    )
    panels = [panel(method, i * WIDTH) for i, method in enumerate(TITLES)]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {2 * WIDTH} {HEIGHT}" '
        f'width="{2 * WIDTH}" height="{HEIGHT}" font-family="sans-serif" font-size="14">\n'
        f'<rect width="100%" height="100%" fill="white"/><defs>{head}</defs>\n'
        + "\n".join(panels)
        + "\n</svg>\n"
    )


def main() -> None:
    path = Path(__file__).with_suffix(".svg")
    path.write_text(picture(), encoding="utf8")
    print(f"Wrote {path.name}")


if __name__ == "__main__":
    main()
