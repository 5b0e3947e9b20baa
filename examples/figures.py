"""Figures of one's own data, by matplotlib; also in notebooks.

from figures import plot_contributions, plot_map

plot_contributions(linker.explain(doc.ents[0])).savefig("why.svg")
plot_map(linker, docs).savefig("map.svg")
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from spacy.tokens import Doc

from spacy_arbo_el import ArboLinker
from spacy_arbo_el.base.display import shortened
from spacy_arbo_el.kb.entity import NIL
from spacy_arbo_el.mentions.annotations import named
from spacy_arbo_el.mentions.explanation import Explanation


def new_figure(x: str, y: str) -> tuple[Figure, Axes]:
    """A figure outside pyplot. It opens no window, and nobody has to close it."""
    figure = Figure(figsize=(6.4, 4.4), layout="constrained")
    axes = figure.add_subplot()
    axes.set(xlabel=x, ylabel=y)
    axes.grid(alpha=0.3)
    return figure, axes


def plot_cluster_sizes(sizes: Mapping[str, Sequence[int]]) -> Figure:
    """Plot numbers of clusters by least number of mentions.

    sizes: The sizes of the clusters, by the name of the method, such as those of
        ``linker.new_entities`` or of gold clusters.
    """
    figure, axes = new_figure("mentions", "clusters with at least so many")
    for name, values in sizes.items():
        falling = np.sort(np.asarray(values, dtype=np.int64))[::-1]
        axes.step(falling, np.arange(1, len(falling) + 1), where="pre", label=name)
    axes.set(xscale="log", yscale="log")
    axes.legend(fontsize="small")
    return figure


def plot_contributions(explanation: Explanation) -> Figure:
    """Plot which features put one candidate before another.

    explanation: What ``linker.explain`` gives. ValueError where it has no contributions: there is
        one candidate, or the ranker has no weights.
    """
    parts = [part for part in explanation.contributions.items() if part[1]]
    parts.sort(key=lambda part: -abs(part[1]))
    if not parts:
        raise ValueError(
            f"Nothing puts a candidate of {explanation.mention!r} before another: it has one, or "
            "the ranker has no features. Fit one: arbo fit."
        )
    one, other = explanation.compared
    titles = explanation.titles
    figure, axes = new_figure("log-odds", "")
    axes.set_title(
        f"{named(one, titles.get(one, ''))} before {named(other, titles.get(other, ''))}"
    )
    names, values = (
        [name for name, _ in parts],
        np.array([value for _, value in parts]),
    )
    ends = np.cumsum(values)
    colours = np.where(values >= 0, "C0", "C3")
    rows = np.arange(len(parts))
    axes.barh(rows, values, left=ends - values, color=colours)
    axes.barh(len(parts), ends[-1], color="0.5")
    axes.set_yticks([*rows, len(parts)], [*names, "sum"])
    axes.invert_yaxis()
    axes.margins(x=0.05)
    axes.axvline(0, color="0.6", linewidth=1)
    return figure


def plot_map(linker: ArboLinker, docs: Iterable[Doc], n_entities: int = 8) -> Figure:
    """Plot mentions and entities by two principal components.

    Mentions have the colour of their entity, whose title stands at its vector. All others are grey.

    linker: What has linked the documents.
    n_entities: How many of the entities are named, those with the most mentions.
    """
    linker.refresh()
    stages = linker.stages
    spans = [stages.reader.mentions_to_link(doc) for doc in docs]
    vectors = stages.encode(stages.read(spans)).encoded
    ids = np.array(
        [span.kb_id_ or NIL for group in spans for span in group], dtype=object
    )
    counts = Counter(one for one in ids if one in linker.kb)
    most = [one for one, _ in counts.most_common(n_entities)]
    points = vectors
    if most:
        raw = np.array([linker.kb.get_vector(one) for one in most], dtype=np.float32)
        points = np.concatenate([vectors, linker.similarity.prepare(raw)])
    points = principal_plane(points)
    figure, axes = new_figure("", "")
    axes.grid(False)
    mentions, named_points = points[: len(ids)], points[len(ids) :]
    rest = ~np.isin(ids, most)
    axes.scatter(mentions[rest, 0], mentions[rest, 1], s=12, color="0.75")
    for number, (kb_id, point) in enumerate(zip(most, named_points)):
        colour, own = f"C{number}", ids == kb_id
        axes.scatter(mentions[own, 0], mentions[own, 1], s=16, color=colour)
        axes.scatter(
            point[0], point[1], s=90, marker="*", color=colour, edgecolor="black"
        )
        title = shortened(linker.kb.get(kb_id).title, 30)
        axes.annotate(
            title,
            point,
            (6, 6),
            textcoords="offset points",
            fontsize="small",
            color=colour,
        )
    axes.set(xticks=[], yticks=[])
    return figure


def principal_plane(vectors: np.ndarray) -> np.ndarray:
    """Project vectors onto two principal components: (n, 2) float."""
    centred = np.asarray(vectors, dtype=np.float64) - np.mean(
        vectors, axis=0, dtype=np.float64
    )
    _, _, axes = np.linalg.svd(centred, full_matrices=False)
    return np.pad(centred @ axes[:2].T, ((0, 0), (0, 2 - len(axes[:2]))))
