"""Figures of ``arbo fit tune`` and ``arbo evaluate``, drawn by matplotlib (extra ``plots``).

The arborescence of a document is drawn by ``explanations/arborescence.py``, which needs nothing.
"""

import io
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Iterable, Mapping, Sequence, Tuple

import numpy as np
from spacy.tokens import Doc

from ..annotations import named
from ..display import shortened
from ..errors import ArboError, Errors
from ..explanations.explanation import Explanation
from ..kb.entity import NIL
from ..storage.files import write_file
from .reliability import Reliability
from .scorer import DRAWN_RECALLS
from .thresholds import Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from ..linker import ArboLinker

# Inches of a figure, and its points per inch as a picture.
SIZE = (6.4, 4.4)
RESOLUTION = 150
SUFFIXES = (".png", ".svg", ".pdf")
# Curves over the threshold and their styles.
THRESHOLD_LINES = {
    "nel_micro_p": ("precision of links", "-"),
    "nel_micro_r": ("recall of links", "--"),
    "arbo_nil_p": ("precision of NIL", "-"),
    "arbo_nil_r": ("recall of NIL", "--"),
    "arbo_acc": ("accuracy", ":"),
}


def plot_thresholds(rows: Sequence[Row], best: int) -> "Figure":
    """Plot precision and recall of links and NIL by threshold.

    rows: As ``sweep_linking`` gives them.
    best: The number of the row that is marked.
    """
    figure, axes = _new_figure("threshold", "score")
    thresholds = [row["threshold"] for row in rows]
    for number, (key, (label, style)) in enumerate(THRESHOLD_LINES.items()):
        axes.plot(
            thresholds, [row[key] for row in rows], style, color=f"C{number // 2}", label=label
        )
    chosen = thresholds[best]
    axes.axvline(chosen, color="0.6", linewidth=1, label=f"chosen: {chosen:g}")
    axes.set(ylim=(0, 1.02), xlim=(0, 1))
    axes.legend(fontsize="small")
    return figure


def plot_reliability(parts: Mapping[str, Reliability]) -> "Figure":
    """Plot how often links are right, by probability. On the diagonal, probabilities are true.

    The area of a point is the share of the mentions in its bin.

    parts: The reliability of each method, by its name.
    """
    figure, axes = _new_figure("probability of the link", "share of the links that are right")
    axes.plot([0, 1], [0, 1], color="0.6", linewidth=1)
    for name, part in parts.items():
        label = f"{name} (ECE {part.error:.3f})"
        (line,) = axes.plot(part.probability, part.accuracy, label=label, linewidth=1)
        area = 400 * part.count / max(part.count.sum(), 1)
        axes.scatter(part.probability, part.accuracy, s=area, color=line.get_color(), alpha=0.6)
    axes.set(ylim=(0, 1.02), xlim=(0, 1.02))
    axes.legend(fontsize="small")
    return figure


def plot_recall(rows: Mapping[str, Mapping[str, Any]]) -> "Figure":
    """Plot recall among the first k candidates, by k.

    rows: Scores by the name of the method, as ``score_rows`` gives them.
    """
    figure, axes = _new_figure("k", "recall@k")
    for name, scores in rows.items():
        recalls = [(k, scores.get(f"arbo_recall_at_{k}")) for k in DRAWN_RECALLS]
        axes.plot(*zip(*((k, r) for k, r in recalls if r is not None)), marker="o", label=name)
    axes.set_xscale("log", base=2)
    axes.set_xticks(DRAWN_RECALLS, [str(k) for k in DRAWN_RECALLS])
    axes.set_ylim(top=1.005)
    axes.legend(fontsize="small")
    return figure


def plot_cluster_sizes(sizes: Mapping[str, Sequence[int]]) -> "Figure":
    """Plot numbers of clusters by least number of mentions.

    sizes: The sizes of the clusters, by the name of the method, such as those of
        ``linker.new_entities`` or of gold clusters.
    """
    figure, axes = _new_figure("mentions", "clusters with at least so many")
    for name, values in sizes.items():
        falling = np.sort(np.asarray(values, dtype=np.int64))[::-1]
        axes.step(falling, np.arange(1, len(falling) + 1), where="pre", label=name)
    axes.set(xscale="log", yscale="log")
    axes.legend(fontsize="small")
    return figure


def plot_contributions(explanation: Explanation) -> "Figure":
    """Plot which features put one candidate before another.

    explanation: What ``linker.explain`` gives. ValueError where it has no contributions: there is
        one candidate, or the ranker has no weights.
    """
    parts = [part for part in explanation.contributions.items() if part[1]]
    parts.sort(key=lambda part: -abs(part[1]))
    if not parts:
        raise ArboError(Errors.E837.format(mention=explanation.mention))
    one, other = explanation.compared
    titles = explanation.titles
    figure, axes = _new_figure("log-odds", "")
    axes.set_title(
        f"{named(one, titles.get(one, ''))} before {named(other, titles.get(other, ''))}"
    )
    names, values = [name for name, _ in parts], np.array([value for _, value in parts])
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


def plot_map(linker: "ArboLinker", docs: Iterable[Doc], n_entities: int = 8) -> "Figure":
    """Plot mentions and entities by two principal components.

    Mentions have the colour of their entity, whose title stands at its vector. All others are grey.

    linker: What has linked the documents.
    n_entities: How many of the entities are named, those with the most mentions.
    """
    linker.refresh()
    stages = linker.stages
    spans = [stages.reader.mentions_to_link(doc) for doc in docs]
    vectors = stages.encode(stages.read(spans)).encoded
    ids = np.array([span.kb_id_ or NIL for group in spans for span in group], dtype=object)
    counts = Counter(one for one in ids if one in linker.kb)
    most = [one for one, _ in counts.most_common(n_entities)]
    points = vectors
    if most:
        raw = np.array([linker.kb.get_vector(one) for one in most], dtype=np.float32)
        points = np.concatenate([vectors, linker.similarity.prepare(raw)])
    points = principal_plane(points)
    figure, axes = _new_figure("", "")
    axes.grid(False)
    mentions, named_points = points[: len(ids)], points[len(ids) :]
    rest = ~np.isin(ids, most)
    axes.scatter(mentions[rest, 0], mentions[rest, 1], s=12, color="0.75")
    for number, (kb_id, point) in enumerate(zip(most, named_points)):
        colour, own = f"C{number}", ids == kb_id
        axes.scatter(mentions[own, 0], mentions[own, 1], s=16, color=colour)
        axes.scatter(point[0], point[1], s=90, marker="*", color=colour, edgecolor="black")
        title = shortened(linker.kb.get(kb_id).title, 30)
        axes.annotate(
            title, point, (6, 6), textcoords="offset points", fontsize="small", color=colour
        )
    axes.set(xticks=[], yticks=[])
    return figure


def principal_plane(vectors: np.ndarray) -> np.ndarray:
    """Project vectors onto two principal components: (n, 2) float."""
    centred = np.asarray(vectors, dtype=np.float64) - np.mean(vectors, axis=0, dtype=np.float64)
    _, _, axes = np.linalg.svd(centred, full_matrices=False)
    return np.pad(centred @ axes[:2].T, ((0, 0), (0, 2 - len(axes[:2]))))


def inline_svg(figure: "Figure") -> str:
    """A figure as an element of an HTML page."""
    import matplotlib

    data = io.StringIO()
    with matplotlib.rc_context({"svg.hashsalt": "arbo"}):
        figure.savefig(data, format="svg", metadata={"Date": None})
    return data.getvalue()[data.getvalue().index("<svg") :]


def save_figure(figure: "Figure", path: Path) -> None:
    """Write a figure in the format of its suffix. See ``check_figure``."""
    check_figure(path)
    data = io.BytesIO()
    # Without a date, the same figure gives the same file.
    dated = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}
    suffix = path.suffix.lower()[1:]
    figure.savefig(data, format=suffix, dpi=RESOLUTION, metadata=dated.get(suffix))
    write_file(path, data.getvalue())


def check_figure(path: Path) -> None:
    """ValueError if the suffix is none of ``SUFFIXES``. ImportError without matplotlib."""
    if path.suffix.lower() not in SUFFIXES:
        raise ArboError(Errors.E832.format(path=path, suffixes=", ".join(SUFFIXES)))
    check_plots()


def check_plots() -> None:
    """ImportError if matplotlib is not installed."""
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError as error:
        raise ImportError(Errors.E833) from error


def _new_figure(x: str, y: str) -> "Tuple[Figure, Axes]":
    """A figure outside pyplot. It opens no window, and nobody has to close it."""
    check_plots()
    from matplotlib.figure import Figure

    figure = Figure(figsize=SIZE, layout="constrained")
    axes = figure.add_subplot()
    axes.set(xlabel=x, ylabel=y)
    axes.grid(alpha=0.3)
    return figure, axes
