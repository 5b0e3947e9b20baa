"""Draw the screenshots of the documentation: linked text, evidence, and new entities.

    python docs/screenshots.py        # needs Chromium

The demo's documents are linked by the default config with the demo's knowledge base, untrained.
"""

import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Dict, Tuple

import spacy
from spacy import displacy

from spacy_arbo_el.corpora.raw import read_documents
from spacy_arbo_el.corpora.reader import unlinked
from spacy_arbo_el.discovery.page import to_html
from spacy_arbo_el.explanations.html import render_evidence, to_displacy

DOCS = Path(__file__).resolve().parent
ASSETS = DOCS.parent / "assets"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


def pages() -> Dict[str, Tuple[str, str]]:
    """The pages by the name of their picture, with the size of the window."""
    nlp = spacy.blank("en")
    linker = nlp.add_pipe("arbo_linker")
    linker.set_kb(ASSETS / "entities.jsonl")
    docs = [unlinked(doc) for doc in read_documents(ASSETS / "test.jsonl", nlp)]
    new_entities = linker.discover(docs)
    text = displacy.render(to_displacy(docs[0]), style="ent", manual=True, page=True)
    evidence = render_evidence(docs[:2], threshold=linker.threshold)
    return {
        "screenshot_text.png": (text, "900,420"),
        "screenshot_evidence.png": (evidence, "900,900"),
        "screenshot_new_entities.png": (to_html(new_entities), "900,900"),
    }


def main() -> None:
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        raise SystemExit(f"None of these browsers is installed: {', '.join(BROWSERS)}.")
    for name, (html, size) in pages().items():
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "page.html")
            path.write_text(html, encoding="utf8")
            flags = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
            target = [f"--window-size={size}", f"--screenshot={DOCS / name}", path.as_uri()]
            subprocess.run([browser, *flags, f"--user-data-dir={folder}/user", *target], check=True)


if __name__ == "__main__":
    main()
