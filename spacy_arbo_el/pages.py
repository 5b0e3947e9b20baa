"""HTML pages in one style, which can be searched and sorted in the browser, without a server."""

import base64
import hashlib
from typing import Iterable, Mapping, Sequence, Union

from .markup import escaped

# What a page is sorted by: numbers from large to small, texts from A to Z.
SortKey = Union[float, str]

# For parts of pages, which may stand in a notebook: nothing outside .arbo changes.
STYLE = """<style>
.arbo { font: 15px/1.6 system-ui, sans-serif; overflow-wrap: anywhere }
.arbo .step { border: 1px solid #9ca3af; border-radius: .4em; padding: .1em .5em; color: #111;
  display: inline-block; margin: .1em 0 }
.arbo .entity { background: #dbeafe } .arbo .exemplar { background: #dcfce7 }
.arbo .mention { background: #fef9c3 } .arbo .nil { background: #f3f4f6 }
.arbo mark { background: #fde68a; color: #111; padding: 0 .2em; border-radius: .2em }
.arbo .arrow { padding: 0 .3em; opacity: .7 } .arbo small, .arbo .about { opacity: .7 }
.arbo table { border-collapse: collapse; font-size: .9em; margin: .3rem 0 }
.arbo td, .arbo th { padding: .1rem .6rem .1rem 0; text-align: start; vertical-align: top }
.arbo li { margin: .4rem 0 } .arbo ol { margin: .3rem 0; padding-inline-start: 2rem }
.arbo details { margin: .2rem 0 } .arbo summary { cursor: pointer; opacity: .8 }
</style>
"""
_PAGE_STYLE = """<style>
body { max-width: 60rem; margin: 1.5rem auto; padding: 0 1rem }
h1 { font-size: 1.4rem } h2 { font-size: 1.1rem; margin: .3rem 0 }
.item { border-top: 1px solid #ccc; padding: .6rem 0 } .item[hidden] { display: none }
.controls[hidden] { display: none }
.controls { display: flex; flex-wrap: wrap; gap: .5rem; position: sticky; top: 0;
  background: Canvas; padding: .5rem 0 }
.controls input { flex: 1 1 12rem } .controls input, .controls select { font: inherit }
</style>
"""
# Pages of a corpus have thousands of items: their texts are read once, at the first search.
_SCRIPT = """
const all = [...document.querySelectorAll(".item")];
const count = document.getElementById("count");
document.querySelector(".controls").hidden = false;
let texts = null;
document.getElementById("search").addEventListener("input", event => {
  texts = texts || all.map(item => item.textContent.toLowerCase());
  const wanted = event.target.value.trim().toLowerCase();
  let shown = 0;
  all.forEach((item, i) => {
    item.hidden = !texts[i].includes(wanted);
    shown += !item.hidden;
    if (wanted && !item.hidden && item.closest(".fold")) item.closest(".fold").open = true;
  });
  count.textContent = wanted ? shown + " of " + all.length : "";
});
document.getElementById("sort").addEventListener("change", event => {
  const key = event.target.value;
  const order = key === "name"
    ? (a, b) => a.dataset.name.localeCompare(b.dataset.name)
    : (a, b) => b.dataset[key] - a.dataset[key];
  for (const list of document.querySelectorAll(".items")) {
    const items = [...list.children].filter(child => child.matches(".item"));
    list.append(...items.sort(order));
  }
});
"""
_HASH = base64.b64encode(hashlib.sha256(_SCRIPT.encode("utf8")).digest()).decode("ascii")
# No script but this one runs, and nothing is loaded, whatever the texts of others contain.
_POLICY = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{_HASH}'"


def item(content: str, keys: Mapping[str, SortKey], element_id: str = "") -> str:
    """One item of a page.

    content: HTML.
    keys: What it can be sorted by; "name" is text, all others are numbers.
    """
    data = "".join(f" data-{name}='{escaped(value)}'" for name, value in keys.items())
    anchor = f" id='{escaped(element_id)}'" if element_id else ""
    return f"<section class='item'{anchor}{data}>{content}</section>\n"


def folded(summary: str, items: Iterable[str], *, is_open: bool = False) -> str:
    """Items that can be unfolded; nothing where there are none."""
    content = "".join(items)
    if not content:
        return ""
    attribute = " open" if is_open else ""
    return (
        f"<details class='fold'{attribute}><summary>{escaped(summary)}</summary>"
        f"<div class='items'>{content}</div></details>\n"
    )


def page(title: str, about: str, items: Iterable[str], sorts: Sequence[str], end: str = "") -> str:
    """A complete page.

    title: Text.
    about: HTML under the title, such as counts and a legend.
    items: What ``item`` gave, in the order to begin with.
    sorts: Names of the keys that it can be sorted by, the first of which is the present order.
    end: HTML after the items.
    """
    options = "".join(f"<option value='{name}'>by {name}</option>" for name in sorts)
    return (
        "<!DOCTYPE html>\n<html lang='en'><head><meta charset='utf-8'>"
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        "<meta name='viewport' content='width=device-width, initial-scale=1'>"
        f"<title>{escaped(title)}</title>{STYLE}{_PAGE_STYLE}</head><body class='arbo'>"
        f"<h1><bdi>{escaped(title)}</bdi></h1>{about}"
        "<div class='controls' hidden><input id='search' type='search' placeholder='Search' "
        f"aria-label='Search'><select id='sort' aria-label='Sort'>{options}</select>"
        f"<span id='count'></span></div><div class='items'>{''.join(items)}</div>{end}"
        f"<script>{_SCRIPT}</script></body></html>\n"
    )
