"""The drawing of a document's links: a forest of entities, exemplars and mentions."""

import re
from xml.etree import ElementTree

import spacy
from hypothesis import given
from hypothesis import strategies as st
from spacy.tokens import Doc, Span

from spacy_arbo_el.mentions.annotations import Evidence, Link, annotate
from spacy_arbo_el.mentions.getters import EntSpans
from spacy_arbo_el.show.arborescence import COLUMN, ROW, Node, as_svg, draw_arborescence, forest_of

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
