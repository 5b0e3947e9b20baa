"""Pages of evidence and of new entities, and what displaCy draws of links."""

import base64
import hashlib
import re
import shutil
import subprocess

import pytest
import spacy
from spacy import displacy
from spacy.tokens import Doc, Span

from spacy_arbo_el.discovery.entities import to_html
from spacy_arbo_el.mentions.annotations import Evidence, Link, annotate
from spacy_arbo_el.mentions.explanation import Explanation, outcome_of
from spacy_arbo_el.mentions.getters import EntSpans, place_of
from spacy_arbo_el.show.html import direction_of, render_evidence, to_displacy

from ..base.test_display import new_entity
from ..threads import PATIENCE

TEMPLATE = "https://example.org/{}"
VOCAB = spacy.blank("xx").vocab


def linked_doc(words=("Mercury", "saw", "Zorblat"), doc_id="", score=0.934):
    doc = Doc(VOCAB, words=list(words))
    doc.user_data["doc_id"] = doc_id
    doc.ents = [Span(doc, 0, 1, "STAR", kb_id="D1"), Span(doc, 2, 3, "THING", kb_id="NIL")]
    path = [Evidence("entity", "D1", "Mercury", "", 1.0), Evidence("mention", "0:7", "x", "", 0.9)]
    first, second = map(place_of, doc.ents)
    links = {
        first: Link("D1", score, ["D1", "D2"], [score, 0.02], path, "", ["Mercury", "Hg"]),
        second: Link("NIL", 0.123, ["D1"], [0.123], (), "new-1", ["Mercury"]),
    }
    annotate(doc, links, EntSpans(), "arbo", overwrite=True)
    return doc


def drawn(doc, **settings):
    return displacy.render(to_displacy(doc, **settings), style="ent", manual=True, jupyter=False)


def text_of(html):
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", "", html)).strip()


def test_displacy_draws_title_id_and_probability_of_a_link_with_its_address_if_there_is_one():
    html = drawn(linked_doc(), kb_url_template=TEMPLATE)
    assert text_of(html) == "Mercury STAR Mercury D1 0.93 saw Zorblat THING new-1"
    assert re.search(r'href="https://example.org/D1">\s*<bdi>Mercury</bdi>', html)
    plain = drawn(linked_doc())
    assert "<a " not in plain and "Mercury D1 0.93" in text_of(plain)
    # What other components link is drawn too.
    doc = Doc(VOCAB, words=["Mercury"])
    doc.ents = [Span(doc, 0, 1, "STAR", kb_id="Q308")]
    assert text_of(drawn(doc)) == "Mercury STAR Q308"


def test_displacy_keeps_the_colours_of_labels():
    ents, options = to_displacy(linked_doc()), {"colors": {"THING": "#123456"}}
    assert [ent["label"] for ent in ents["ents"]] == ["STAR", "THING"]
    html = displacy.render(ents, style="ent", manual=True, jupyter=False, options=options)
    assert html.count("#123456") == 1


@pytest.mark.parametrize(
    ("text", "direction"),
    [("Mercury عطارد", "ltr"), ("عطارد Mercury", "rtl"), ("«1» ירושלים", "rtl"), ("12", "ltr")],
)
def test_text_from_right_to_left_stays_so(text, direction):
    doc = linked_doc([*text.split(), "x", "y", "z"][:5])
    assert direction_of(doc) == direction
    assert f"direction: {direction}" in drawn(doc)
    assert all("<bdi>" in ent["params"]["text"] for ent in to_displacy(doc)["ents"])


def test_a_vocabulary_decides_where_no_letter_does():
    assert direction_of(Doc(spacy.blank("ar").vocab, words=["12"])) == "rtl"


def test_the_outcome_is_that_of_the_terminal():
    first, second = (ent._.arbo for ent in linked_doc().ents)
    assert outcome_of(first, first.title) == "D1 (Mercury), probability 0.93"
    reason = "NIL: the most probable candidate, D1 (Mercury), has a probability of 0.12"
    assert outcome_of(second, "") == reason
    assert outcome_of(second, "", 0.5) == f"{reason}, below the threshold of 0.5"
    assert outcome_of(second, "", 0.1).startswith("NIL: by a correction")
    page = text_of(render_evidence([linked_doc()], threshold=0.5))
    assert "D1 (Mercury), probability 0.93" in page and "below the threshold of 0.5" in page


def test_the_evidence_page_names_documents_and_has_their_candidates():
    html = render_evidence([linked_doc(doc_id="PMID 1"), linked_doc()])
    assert "<h2><bdi>PMID 1</bdi></h2>" in html and "document 2" in html
    assert "<summary>2 candidates</summary>" in html and "Hg" in html
    part = render_evidence([linked_doc()], page=False)
    assert "<script" not in part and "<html" not in part and "body {" not in part


def test_an_explanation_is_shown_in_notebooks():
    link = linked_doc().ents[0]._.arbo
    explanation = Explanation("Mer<b>", link, "linked", {"D2": "quicksilver"}, "D3", "no & no")
    html = explanation._repr_html_()
    assert "Mer&lt;b&gt;" in html and "quicksilver" in html and "D3: no &amp; no" in html


PAGES = {
    "evidence": lambda: render_evidence([linked_doc(score=s) for s in (0.9, 0.5, 0.7)]),
    "new entities": lambda: to_html([new_entity(count=n) for n in (3, 2, 1, 1)]),
}


@pytest.mark.parametrize("make", PAGES.values(), ids=PAGES)
def test_pages_run_one_script_load_nothing_and_are_sorted_by_what_each_item_has(make):
    html = make()
    (script,) = re.findall(r"<script>(.*?)</script>", html, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode("utf8")).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in html and "default-src 'none'" in html
    assert not re.findall(r"<(?:link|img|iframe)|src=|@import|url\(", html)
    assert "width=device-width" in html
    choices = re.findall(r"<option value='(\w+)'>", html)
    items = re.findall(r"<section class='item'[^>]*>", html)
    assert len(choices) > 3 and len(items) in (3, 4)
    for item in items:
        assert set(choices) == set(re.findall(r" data-(\w+)='", item))


def test_documents_are_sorted_by_their_least_certain_link():
    html = PAGES["evidence"]()
    assert re.findall(r"data-uncertainty='(\d\.\d)", html) == ["0.0", "0.5", "0.3"]


def test_new_entities_with_one_mention_are_folded():
    html = PAGES["new entities"]()
    before, after = html.split("<details class='fold'>")
    assert before.count("<section") == 2 and after.count("<section") == 2
    assert "2 new entities with a single mention" in after
    assert "<details class='fold' open>" in to_html([new_entity(count=1)])
    assert "<details class='fold'" not in to_html([new_entity(count=2)])


def test_the_page_of_new_entities_says_why_the_nearest_entities_were_refused():
    text = text_of(to_html([new_entity()]))
    assert "below the threshold of 0.5" in text and "0.31" in text and "document doc 1" in text


CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")


def in_browser(html, folder, *options):
    path = folder / "page.html"
    path.write_text(html, encoding="utf8")
    flags = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder / 'user'}"]
    command = [CHROMIUM, *flags, *options, path.as_uri()]
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE).stdout


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed")
@pytest.mark.parametrize("make", PAGES.values(), ids=PAGES)
def test_a_browser_runs_our_script_and_no_other(make, tmp_path):
    foreign = "<script>document.title = 'script'</script><img src='x' onerror='document.title=1'>"
    html = make()
    (title,) = re.findall(r"<head>.*<title>(.*?)</title>", html)
    page = in_browser(html.replace("</h1>", f"</h1>{foreign}"), tmp_path, "--dump-dom")
    assert '<div class="controls">' in page, "our script shows the controls"
    assert f"<title>{title}</title><style>" in page
