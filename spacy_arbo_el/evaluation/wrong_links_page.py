"""Wrong links as an HTML page."""

from typing import Sequence

from ..display import html_rows, shown_probability
from ..explanations.explanation import Explanation, outcome_of
from ..explanations.html import as_html
from ..markup import escaped
from ..pages import folded, item, page
from .wrong_links import WrongLink, by_kind, confusions, summary

# How many pairs of entities are listed.
N_CONFUSIONS = 50
SORTS = ("confidence", "name")


def to_html(wrong: Sequence[WrongLink], total: int, threshold: float) -> str:
    """A complete page: the confusions, and each wrong link under its kind.

    wrong: In the order to begin with.
    total: The number of gold mentions.
    threshold: The linker's, to say what fell below it.
    """
    pairs = confusions(wrong)
    rows = [(f"{count} ×", gold, "→", predicted) for count, gold, predicted in pairs]
    more = f"<p>… and {len(rows) - N_CONFUSIONS:,} more</p>" if len(rows) > N_CONFUSIONS else ""
    table = f"{html_rows(rows[:N_CONFUSIONS])}{more}" if rows else ""
    about = f"<p>{escaped(summary(wrong, total))}.</p>" + (
        f"<details open><summary>Correct entity → linked instead</summary>{table}</details>"
        if table
        else ""
    )
    groups = (
        folded(f"{kind}: {len(group)}", (_section(one, threshold) for one in group), is_open=True)
        for kind, group in by_kind(wrong).items()
    )
    return page("Wrong links", about, (), SORTS, "".join(groups))


def _section(one: WrongLink, threshold: float) -> str:
    about = " · ".join((*one.traits, f"document {one.document}"))
    reason = f"{one.kind}"
    if one.rank:
        score = shown_probability(one.link.scores[one.rank - 1])
        reason += f", number {one.rank} of {len(one.link.ids)} with a probability of {score}"
    outcome = outcome_of(one.link, one.titles.get(one.predicted, ""), threshold)
    explanation = Explanation(one.text, one.link, outcome, one.titles, one.gold_name, reason)
    content = (
        f"<h2><bdi>{escaped(one.gold_name)}</bdi> <span class='arrow'>→</span> "
        f"<bdi>{escaped(one.predicted_name)}</bdi> <small>{escaped(one.label)}</small></h2>"
        f"<p dir='auto'>{escaped(one.before)}<mark>{escaped(one.text)}</mark>{escaped(one.after)} "
        f"<small><bdi>{escaped(about)}</bdi></small></p><ol>{as_html(explanation)}</ol>"
    )
    return item(content, {"confidence": one.confidence, "name": one.text})
