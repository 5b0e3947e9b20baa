"""Draw the screenshots of the documentation: text, evidence, new entities, the review, a table.

    python docs/screenshots.py        # needs Chromium, and Playwright for the review

The demo's documents are linked by the default config with the demo's knowledge base, untrained.
"""

import re
import shutil
import subprocess
import sys
import tempfile
from functools import partial
from html import escape
from pathlib import Path
from typing import Any

import spacy
from spacy import displacy
from spacy.util import import_file

from spacy_arbo_el import save_pipeline
from spacy_arbo_el.base.pages import page
from spacy_arbo_el.contrib.review.links import LinkReview
from spacy_arbo_el.contrib.review.queue import Filters
from spacy_arbo_el.contrib.review.review import Review
from spacy_arbo_el.contrib.review.serve.app import create_app
from spacy_arbo_el.contrib.review.serve.reconciliation import address
from spacy_arbo_el.corpora.docs import unlinked
from spacy_arbo_el.corpora.read import read_documents
from spacy_arbo_el.discovery.entities import to_html
from spacy_arbo_el.show.html import render_evidence, to_displacy

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from tests.contrib.review.serve.world import serving  # noqa: E402

DOCS = Path(__file__).resolve().parent
README = DOCS.parent / "README.md"
ASSETS = DOCS.parent / "assets"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


def pages() -> dict[str, tuple[str, str]]:
    """The pages by the name of their picture, with the size of the window."""
    nlp = spacy.blank("en")
    linker = nlp.add_pipe("arbo_linker")
    linker.set_kb(ASSETS / "entities.jsonl")
    docs = [unlinked(doc) for doc in read_documents(ASSETS / "test.jsonl", nlp)]
    new_entities = linker.corpus.discover(docs)
    evidence = render_evidence(docs[:2], threshold=linker.threshold)
    return {
        "screenshot_text.png": (namesakes(), "900,500"),
        "screenshot_evidence.png": (evidence, "900,900"),
        "screenshot_new_entities.png": (to_html(new_entities), "900,900"),
    }


def namesakes() -> str:
    """The example of the README, with what decided between two entities of one name."""
    blocks = re.findall(
        r"```python\n(.*?)```", README.read_text(encoding="utf8"), re.DOTALL
    )
    example: dict[str, Any] = {}
    exec(blocks[0], example)  # noqa: S102
    texts = ("Mercury is the smallest planet.", "The thermometer is full of Mercury.")
    docs = [example["nlp"](text) for text in texts]
    drawn = [to_displacy(doc) for doc in docs]
    parts = [
        displacy.render(one, style="ent", manual=True)
        + "".join(
            page("explanation", one=example["linker"].explain(span))
            for span in doc.ents
        )
        for one, doc in zip(drawn, docs)
    ]
    shown = "<hr>".join(parts).replace("<details>", "<details open>")
    return f"<meta charset='utf-8'><body style='font: 16px system-ui'>{shown}"


def draw_review(browser: str, folder: Path) -> None:
    """Draw the pages of the review."""
    from playwright.sync_api import sync_playwright

    nlp = spacy.blank("en")
    linker = nlp.add_pipe("arbo_linker", config={"threshold": 0.6})
    linker.set_kb(ASSETS / "entities.jsonl")
    docs = [unlinked(doc) for doc in read_documents(ASSETS / "test.jsonl", nlp)]
    linker.new_entities = linker.corpus.discover(docs)
    save_pipeline(nlp, folder / "model")
    review = Review(nlp, folder / "model")
    first = review.select(Filters())[0].id
    links = LinkReview(linker, docs)
    made = partial(create_app, review, links=links, by="Ann")
    with serving(made) as rules, sync_playwright() as playwright:
        chromium = playwright.chromium.launch(
            executable_path=browser, args=["--no-sandbox"]
        )
        for name, path, scheme in (
            ("queue", "/", "light"),
            ("cluster", f"/cluster?id={first}", "light"),
            ("links", "/link?n=0", "dark"),
        ):
            size = {"width": 1160, "height": 640}
            page = chromium.new_page(color_scheme=scheme, viewport=size)
            page.goto(f"{rules.origins[0]}/?token={rules.token}")
            page.goto(page.url.rstrip("/") + path, wait_until="networkidle")
            page.screenshot(path=DOCS / f"screenshot_review_{name}.png")
        chromium.close()


CELLS = (
    "Halden City",
    "River Sarn",
    "Sarn",
    "Müller and Søn",
    "Republic of Vestria",
    "Atlantis",
)
TABLE = """<meta charset="utf-8"><style>
body { font: 15px/1.5 system-ui, sans-serif; margin: 1rem; display: flex; gap: 2rem }
td, th { text-align: start; vertical-align: top; padding: .2rem 1.2rem .2rem 0 }
small { color: #59626b } iframe { border: 1px solid #7b858f; border-radius: 6px }
</style>"""


def draw_table(browser: str, folder: Path) -> None:
    """Draw what the Reconciliation API answers to cells, and a preview: not OpenRefine itself."""
    from playwright.sync_api import sync_playwright

    example = import_file("reconcile", DOCS.parent / "examples" / "reconcile.py")
    nlp = spacy.blank("en")
    nlp.add_pipe("arbo_linker").set_kb(ASSETS / "entities.jsonl")
    save_pipeline(nlp, folder / "model")
    with (
        serving(partial(create_app, Review(nlp, folder / "model"))) as rules,
        sync_playwright() as playwright,
    ):
        manifest = example.ask(address(rules))
        queries = {cell: {"query": cell, "limit": 3} for cell in CELLS}
        answers = example.ask(address(rules), queries=queries)
        preview = manifest["preview"]
        kb_id = answers[CELLS[0]]["result"][0]["id"]
        rows = "".join(
            f"<tr><td>{escape(cell)}</td><td>{said(answers[cell]['result'])}</td></tr>"
            for cell in CELLS
        )
        source = preview["url"].replace("{{id}}", kb_id)
        frame = 'src="{}" width="{width}" height="{height}"'.format(source, **preview)
        html = f"{TABLE}<table><tr><th>Cell</th><th>Answer</th></tr>{rows}</table>"
        html += f"<div><p><b>Preview</b></p><iframe {frame}></iframe></div>"
        (folder / "table.html").write_text(html, encoding="utf8")
        chromium = playwright.chromium.launch(
            executable_path=browser, args=["--no-sandbox"]
        )
        page = chromium.new_page(viewport={"width": 960, "height": 330})
        page.goto((folder / "table.html").as_uri(), wait_until="networkidle")
        page.screenshot(path=DOCS / "screenshot_table.png")
        chromium.close()


def said(candidates: list[dict[str, Any]]) -> str:
    """The match, or the candidates with their scores."""
    named = [
        f"{escape(one['name'])} <small>{one['id']}, {one['score']:.0f}</small>"
        for one in candidates
    ]
    matched = [
        f"✓ <b>{text}</b>" for text, one in zip(named, candidates) if one["match"]
    ]
    return "".join(matched) or "<br>".join(named)


def main() -> None:
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        raise SystemExit(
            f"None of these browsers is installed: {', '.join(BROWSERS)}."
        )
    for name, (html, size) in pages().items():
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "page.html")
            path.write_text(html, encoding="utf8")
            flags = [
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--hide-scrollbars",
            ]
            target = [
                f"--window-size={size}",
                f"--screenshot={DOCS / name}",
                path.as_uri(),
            ]
            subprocess.run(
                [browser, *flags, f"--user-data-dir={folder}/user", *target],
                check=True,
            )
    for draw in (draw_review, draw_table):
        with tempfile.TemporaryDirectory() as folder:
            draw(browser, Path(folder))


if __name__ == "__main__":
    main()
