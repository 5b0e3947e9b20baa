"""Pages of evidence and of new entities, what displaCy draws, and the forest of a document."""

import base64
import hashlib
import re
from xml.etree import ElementTree

import pytest
import spacy
from hypothesis import given
from hypothesis import strategies as st
from spacy import displacy
from spacy.tokens import Doc, Span

from spacy_arbo_el import (
    Evidence,
    Explanation,
    Link,
    draw_arborescence,
    render_evidence,
    to_displacy,
)
from spacy_arbo_el.base.pages import page
from spacy_arbo_el.discovery.entities import to_html
from spacy_arbo_el.mentions.annotations import annotate
from spacy_arbo_el.mentions.getters import EntSpans, place_of
from spacy_arbo_el.show.arborescence import COLUMN, ROW, Node, as_svg, forest_of
from spacy_arbo_el.show.html import direction_of

from ..base.test_display import new_entity

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
    assert "<a " not in plain
    assert "Mercury D1 0.93" in text_of(plain)
    # What other components link is drawn too.
    doc = Doc(VOCAB, words=["Mercury"])
    doc.ents = [Span(doc, 0, 1, "STAR", kb_id="Q308")]
    assert text_of(drawn(doc)) == "Mercury STAR Q308"


@pytest.mark.parametrize(
    "text, direction",
    [("Mercury عطارد", "ltr"), ("عطارد Mercury", "rtl"), ("«1» ירושלים", "rtl"), ("12", "ltr")],
)
def test_text_from_right_to_left_stays_so(text, direction):
    doc = linked_doc([*text.split(), "x", "y", "z"][:5])
    assert direction_of(doc) == direction
    assert f"direction: {direction}" in drawn(doc)
    assert all("<bdi>" in ent["params"]["text"] for ent in to_displacy(doc)["ents"])


def test_the_evidence_page_names_documents_and_has_their_candidates():
    html = render_evidence([linked_doc(doc_id="PMID 1"), linked_doc()])
    assert "<h2><bdi>PMID 1</bdi></h2>" in html
    assert "document 2" in html
    assert "<summary>2 candidates</summary>" in html
    assert "Hg" in html
    part = render_evidence([linked_doc()], page=False)
    assert "<script" not in part
    assert "<html" not in part
    assert "body {" not in part


def test_an_explanation_is_shown_as_text():
    link = linked_doc().ents[0]._.arbo
    explanation = Explanation("Mer<b>", link, "linked", {"D2": "quicksilver"}, "D3", "no & no")
    html = page("explanation", one=explanation)
    assert "Mer&lt;b&gt;" in html
    assert "quicksilver" in html
    assert "D3: no &amp; no" in html


PAGES = {
    "evidence": lambda: render_evidence([linked_doc(score=s) for s in (0.9, 0.5, 0.7)]),
    "new entities": lambda: to_html([new_entity(count=n) for n in (3, 2, 1, 1)]),
}


@pytest.mark.parametrize("make", PAGES.values(), ids=PAGES)
def test_pages_run_one_script_load_nothing_and_are_sorted_by_what_each_item_has(make):
    html = make()
    (script,) = re.findall(r"<script>(.*?)</script>", html, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode("utf8")).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in html
    assert "default-src 'none'" in html
    assert not re.findall(r"<(?:link|img|iframe)|src=|@import|url\(", html)
    assert "width=device-width" in html
    choices = re.findall(r"<option value='(\w+)'>", html)
    items = re.findall(r"<section class='item'[^>]*>", html)
    assert len(choices) > 3
    assert len(items) in (3, 4)
    for item in items:
        assert set(choices) == set(re.findall(r" data-(\w+)='", item))


def test_documents_are_sorted_by_their_least_certain_link():
    html = PAGES["evidence"]()
    assert re.findall(r"data-uncertainty='(\d\.\d)", html) == ["0.0", "0.5", "0.3"]


def test_new_entities_with_one_mention_are_folded():
    html = PAGES["new entities"]()
    assert html.count("<mark>") == 3 + 2 + 1 + 1
    before, after = html.split("<details class='fold'>")
    assert before.count("<section") == 2
    assert after.count("<section") == 2
    assert "2 new entities with a single mention" in after
    assert "<details class='fold' open>" in to_html([new_entity(count=1)])
    many = to_html([new_entity(count=9)])
    assert "<details class='fold'" not in many
    assert "<summary>4 more</summary>" in many


def test_the_page_of_new_entities_says_why_the_nearest_entities_were_refused():
    text = text_of(to_html([new_entity()]))
    assert "below the threshold of 0.5" in text
    assert "0.31" in text
    assert "document doc 1" in text


ENTITY = Evidence("entity", "D1", "Mercury", "", 1.0)
EXEMPLAR = Evidence("exemplar", "f:0:4", "the <planet>", "round it", 1.0, "PMID 1")


def mention(place, weight):
    return Evidence("mention", place, f"m{place}", "", weight)


LINKS = [
    ("0:1", "m0:1", Link("D1", 0.9, evidence=[ENTITY, mention("0:1", 0.9)])),
    ("2:3", "m2:3", Link("D1", 0.8, evidence=[ENTITY, mention("0:1", 0.9), mention("2:3", 0.8)])),
    ("4:5", "m4:5", Link("D1", 0.7, evidence=[ENTITY, EXEMPLAR, mention("4:5", 0.7)])),
    ("6:7", "m6:7", Link("NIL", 0.1, cluster="new-1")),
    ("8:9", "m8:9", Link("NIL", 0.1, cluster="new-1")),
    ("9:9", "m9:9", Link("NIL", 0.1)),
]


def outline(nodes):
    return [(node.text, outline(node.children)) for node in nodes]


def test_paths_of_links_are_one_forest():
    assert outline(forest_of(LINKS)) == [
        ("Mercury (D1)", [("m0:1", [("m2:3", [])]), ("the <planet>", [("m4:5", [])])]),
        ("new-1", [("m6:7", []), ("m8:9", [])]),
    ]
    assert forest_of([]) == []


def test_the_drawing_has_a_box_for_each_node_and_a_line_for_each_edge():
    svg = ElementTree.fromstring(as_svg(forest_of(LINKS)))[0]
    tags = [element.tag.split("}")[1] for element in svg.iter()]
    assert (tags.count("rect"), tags.count("path")) == (8, 6)
    texts = [element.text for element in svg.iter() if element.tag.endswith("}text")]
    assert [text for text in texts if text[0].isdigit()] == ["0.90", "0.80", "1.00", "0.70"]
    assert "the <planet>" in texts, "escaped"
    titles = [element.text for element in svg.iter() if element.tag.endswith("}title")]
    assert "exemplar · f:0:4 · PMID 1 · round it" in titles


trees = st.recursive(
    st.builds(Node, st.just("mention"), st.text(), st.text(), st.just(0.5)),
    lambda children: st.builds(
        Node, st.just("mention"), st.text(), st.text(), st.just(0.5), st.lists(children, max_size=4)
    ),
    max_leaves=12,
)


@given(st.lists(trees, max_size=3))
def test_boxes_never_overlap_and_stay_inside(roots):
    html = as_svg(roots)
    width, height = map(int, re.search(r"width='(\d+)' height='(\d+)' viewBox", html).groups())
    boxes = [tuple(map(int, box)) for box in re.findall(r"<rect x='(\d+)' y='(\d+)'", html)]
    assert len(boxes) == len(set(boxes))
    assert all(x % COLUMN == 0 and y % ROW == 0 for x, y in boxes)
    assert all(x < width and y < height for x, y in boxes)


def test_the_links_of_a_doc_are_drawn():
    doc = Doc(spacy.blank("xx").vocab, words=["a", "b"])
    assert "<rect" not in draw_arborescence(doc)
    doc.ents = [Span(doc, 0, 1, "X"), Span(doc, 1, 2, "X")]
    links = {(0, 1, "X"): LINKS[0][2], (2, 3, "X"): LINKS[1][2]}
    annotate(doc, links, EntSpans(), "arbo", overwrite=True)
    assert draw_arborescence(doc).count("<rect") == 3
