"""Figures of ``arbo fit --thresholds`` and ``arbo evaluate``, by matplotlib (extra ``plots``).

The arborescence of a document is drawn by ``show/arborescence.py``, which needs nothing.
"""

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..base.errors import Errors
from ..evaluation.reliability import Reliability
from ..evaluation.scorer import DRAWN_RECALLS
from ..storage.files import write_file
from .thresholds import SweepRow

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

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


def plot_thresholds(rows: Sequence[SweepRow], best: int) -> "Figure":
    """Plot precision and recall of links and NIL by threshold.

    rows: As ``sweep_linking`` gives them.
    best: The number of the row that is marked.
    """
    figure, axes = new_figure("threshold", "score")
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


def plot_reliability(reliabilities: Mapping[str, Reliability]) -> "Figure":
    """Plot how often links are right, by probability. On the diagonal, probabilities are true.

    The area of a point is the share of the mentions in its bin.

    reliabilities: The reliability of each method, by its name.
    """
    figure, axes = new_figure("probability of the link", "share of the links that are right")
    axes.plot([0, 1], [0, 1], color="0.6", linewidth=1)
    for name, reliability in reliabilities.items():
        label = f"{name} (ECE {reliability.error:.3f})"
        (line,) = axes.plot(reliability.probability, reliability.accuracy, label=label, linewidth=1)
        area = 400 * reliability.count / max(reliability.count.sum(), 1)
        axes.scatter(
            reliability.probability, reliability.accuracy, s=area, color=line.get_color(), alpha=0.6
        )
    axes.set(ylim=(0, 1.02), xlim=(0, 1.02))
    axes.legend(fontsize="small")
    return figure


def plot_recall(rows: Mapping[str, Mapping[str, Any]]) -> "Figure":
    """Plot recall among the first k candidates, by k.

    rows: Scores by the name of the method, as ``score_rows`` gives them.
    """
    figure, axes = new_figure("k", "recall@k")
    for name, scores in rows.items():
        recalls = [(k, scores.get(f"arbo_recall_at_{k}")) for k in DRAWN_RECALLS]
        axes.plot(*zip(*((k, r) for k, r in recalls if r is not None)), marker="o", label=name)
    axes.set_xscale("log", base=2)
    axes.set_xticks(DRAWN_RECALLS, [str(k) for k in DRAWN_RECALLS])
    axes.set_ylim(top=1.005)
    axes.legend(fontsize="small")
    return figure


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
    """Check that a figure can be written.

    Raises ValueError if the suffix is none of ``SUFFIXES``, and ImportError without matplotlib.
    """
    if path.suffix.lower() not in SUFFIXES:
        raise Errors.E835(path=path, suffixes=", ".join(SUFFIXES))
    check_plots()


def check_plots() -> None:
    """ImportError if matplotlib is not installed."""
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError as error:
        raise ImportError(Errors.E833) from error


def new_figure(x: str, y: str) -> "tuple[Figure, Axes]":
    """A figure outside pyplot. It opens no window, and nobody has to close it."""
    check_plots()
    from matplotlib.figure import Figure

    figure = Figure(figsize=SIZE, layout="constrained")
    axes = figure.add_subplot()
    axes.set(xlabel=x, ylabel=y)
    axes.grid(alpha=0.3)
    return figure, axes
