"""Hostile titles, ids, labels, texts and addresses put no markup into pages."""

from html.parser import HTMLParser

import pytest
import spacy
from hypothesis import example, given
from hypothesis import strategies as st
from spacy.tokens import Doc, Span

from spacy_arbo_el import Evidence, Link, MentionRecord, NewEntity, render_evidence, to_displacy
from spacy_arbo_el.discovery.entities import RefusedEntity, to_html
from spacy_arbo_el.mentions.annotations import annotate, register_extension
from spacy_arbo_el.mentions.getters import EntSpans, place_of
from spacy_arbo_el.show.html import web_address

from ..cases import cases
from ..expecting import raises

VOCAB = spacy.blank("xx").vocab
TEMPLATE = "https://example.org/{}"
VECTORS = cases("hostile_markup")
hostile = st.one_of(
    st.sampled_from(VECTORS),
    st.text(alphabet="<>\"'&`=/ {}%#:;\\aZ\u2028\x0b!-[]?", min_size=1, max_size=12),
    st.builds(str.__add__, st.sampled_from(VECTORS), st.sampled_from(VECTORS)),
)
# Not in the text of a Doc, where displaCy makes line breaks of them.
one_line = hostile.map(lambda text: " ".join(text.split()) or "<x>")
# Titles and file names may have half characters, which no Doc can hold.
any_text = st.one_of(hostile, hostile.map(lambda text: text + "\ud800\udc80"))


class Page(HTMLParser):
    """The elements of a page with the names of their attributes, its addresses and its text."""

    def __init__(self, html):
        super().__init__(convert_charrefs=True)
        self.elements, self.addresses, self.text, self.other = [], [], [], []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attrs):
        names = [name for name, _ in attrs]
        assert len(names) == len(set(names))
        self.elements.append((tag, *names))
        self.addresses += [value for name, value in attrs if name in ("href", "src")]

    def handle_endtag(self, tag):
        self.elements.append(("/" + tag,))

    def handle_data(self, data):
        self.text.append(data)

    def handle_comment(self, data):
        self.other.append(data)

    def unknown_decl(self, data):
        self.other.append(data)

    handle_pi = handle_comment


def linked_doc(word, label, kb_id, title, nil_word, cluster, context, document):
    register_extension("arbo")
    doc = Doc(VOCAB, words=["They", "saw", word, nil_word, "there"])
    doc.user_data["title"] = title
    doc.ents = [Span(doc, 2, 3, label, kb_id=kb_id), Span(doc, 3, 4, label, kb_id="NIL")]
    path = [
        Evidence("entity", kb_id, title, "", 1.0),
        Evidence("exemplar", kb_id, word, context, 1.0, document),
        Evidence("mention", "9:12", word, "", 0.9),
    ]
    first, second = map(place_of, doc.ents)
    links = {
        first: Link(kb_id, 0.9, [kb_id], [0.9], path),
        second: Link("NIL", 0.1, [kb_id], [0.1], cluster=cluster),
    }
    annotate(doc, links, EntSpans(), "arbo", overwrite=True)
    return doc


PLAIN = Page(
    render_evidence([linked_doc("a", "B", "c", "d", "e", "f", "g", "h")], kb_url_template=TEMPLATE)
)


@given(
    st.tuples(one_line, one_line, one_line, any_text, one_line, one_line, any_text, any_text),
    st.sampled_from([TEMPLATE, "{}", "HTTPS://example.org/?q={}&x='{}'"]),
)
@example((VECTORS[1],) * 8, TEMPLATE)
def test_evidence_page_has_the_elements_of_its_template_alone(fields, template):
    word, label, kb_id, title, _, cluster, context, document = fields
    if kb_id == "NIL":
        return
    html = render_evidence([linked_doc(*fields)], kb_url_template=template)
    page = Page(html.encode("utf8").decode("utf8"))
    assert page.elements == PLAIN.elements
    assert not page.other
    (address,) = page.addresses
    assert address == "#" or address.lower().startswith(("http://", "https://"))


@given(st.tuples(*[any_text] * 9))
@example((VECTORS[1],) * 9)
def test_page_of_new_entities_has_the_elements_of_its_template_alone(fields):
    def page_of(id_, name, title, kb_id, text, before, label, document, page_title):
        record = MentionRecord(("f", 0, 1), (), text, before, before, label, text, document)
        refused = RefusedEntity(kb_id, title, 0.1, name)
        entity = NewEntity(id_, name, (record,) * 7, 0, 1.0, (refused,))
        return Page(to_html([entity], page_title).encode("utf8").decode("utf8"))

    page = page_of(*fields)
    assert page.elements == page_of(*"abcdefghi").elements
    assert not page.other


def test_text_of_others_is_shown_as_it_is():
    page = Page(render_evidence([linked_doc(*[f"<b> & 'q' \"{i}\"" for i in range(8)])]))
    text = "".join(page.text)
    assert all(text.count(f"<b> & 'q' \"{i}\"") for i in (0, 1, 2, 3, 4, 5))


@pytest.mark.parametrize("template, kb_id, address", cases("addresses"))
def test_addresses_are_of_the_web_or_none(template, kb_id, address):
    assert web_address(template, kb_id) == address


@pytest.mark.parametrize("template", ["javascript:x('{}')", "x/{}", "/{}", "", "data:{}", "//x/{}"])
def test_templates_of_other_addresses_are_refused(template):
    doc = linked_doc("a", "B", "c", "d", "e", "f", "g", "h")
    with raises("must begin with http"):
        to_displacy(doc, kb_url_template=template)
