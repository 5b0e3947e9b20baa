"""Pages without a browser: what they show, and what a decision on them does."""

import html
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from spacy.tokens import DocBin, Span

from spacy_arbo_el import find_linker, load_pipeline, save_pipeline
from spacy_arbo_el.contrib.review import near
from spacy_arbo_el.contrib.review.commands.new import read_new_entities
from spacy_arbo_el.contrib.review.decisions.journal import journal_path
from spacy_arbo_el.contrib.review.links import LinkReview, gold_docs
from spacy_arbo_el.contrib.review.queue import SORTS, Filters
from spacy_arbo_el.contrib.review.review import Review
from spacy_arbo_el.contrib.review.serve import app

from ....cases import cases
from ....commands import run
from ....expecting import raises
from ....linker.conftest import build
from .world import RIGHT_TO_LEFT, SCRIPT, documents


def cluster(browser, name):
    """The page of a new entity, and the fields of its forms."""
    page = browser.get("/cluster", id=browser.ids[name])
    return page, browser.fields_of(page, "/decide/accept")


def links_of(nlp, text=0):
    """What the mentions of a document are linked to."""
    return [ent.kb_id_ for ent in nlp(documents(nlp)[text]).ents]


def test_the_queue_is_filtered_and_the_address_has_the_filters(browser):
    assert "6 new entities" in browser.get("/")
    page = browser.get("/", q="zorb", sort="mentions", least=2)
    assert "zorblat" in page
    assert "Vexil" not in page
    assert "/cluster?q=zorb&amp;least=2&amp;sort=mentions&amp;id=NEW-" in page
    assert "1 new entity " in browser.get("/", near="fruit", low=0.3)
    assert "can&#39;t be &#39;x&#39;" in browser.get("/", least="x", status=404)
    assert "1 new entity " in browser.get("/", document="doc8")


def test_a_cluster_shows_its_mentions_and_says_why_not(browser):
    """The most central mention first, with the blanks round it."""
    page, fields = cluster(browser, "Quorn")
    assert page.count("data-member") == 4
    assert page.index('class="medoid"') < page.index("<mark>")
    assert "large spotted cat" in page
    assert "below the threshold of 0.9" in page
    assert '<span class="before">They met </span><mark><bdi>Quorn</bdi></mark>' in page
    assert '<span class="after"> at the fair, and Quorn sold meat.</span>' in page
    why = browser.get("/why", id=fields["id"], kb_id="planet")
    assert "planet: candidate number 8" in why
    assert "zorblat" in browser.get("/similar", id=fields["id"])


def test_an_acceptance_counts_for_the_next_document_and_is_undone(browser, model):
    fields = cluster(browser, "Quorn")[1]
    page = browser.post("/decide/accept", **fields, title="Quorn Ltd", types="COMPANY, FOOD")
    assert "zorblat" in page
    assert "accepted as ENT-" in page
    entity = browser.kb.get(fields["id"].replace("NEW", "ENT"))
    assert (entity.title, entity.types) == ("Quorn Ltd", ("COMPANY", "FOOD"))
    # Other commands see it too, though it is in the journal alone.
    for nlp in (browser.nlp, load_pipeline(model)):
        assert links_of(nlp) == [entity.id] * 2
    assert fields["id"] not in run("new", "list", model)
    assert fields["id"] not in read_new_entities(model).ids
    browser.post("/undo")
    assert entity.id not in browser.kb
    assert len(browser.rows) == 6
    assert links_of(browser.nlp) == ["NIL"] * 2


def test_every_decision_is_kept_by_a_kill_and_undone_in_order(start, browser):
    before = browser.ids
    fields = {name: cluster(browser, name)[1] for name in before}
    browser.post("/decide/link", **fields["Quorn"], kb_id="maker")
    browser.post("/decide/merge", **fields["zorblat"], others=before["zorb"])
    browser.post("/decide/reject", **fields[SCRIPT])
    browser.post("/decide/skip", **fields["Vexil"])
    browser.post("/decide/flag", **fields[RIGHT_TO_LEFT], comment="ask Noa")
    browser.post("/decide/kb_add", id="E1", title="New one", aliases="Newer\nNewest")
    browser.post("/decide/kb_update", id="cat", title="big cat", aliases="panther")
    browser.post("/decide/kb_merge", id="metal", into="planet")
    browser.post("/decide/kb_remove", ids="shop")
    again = start()
    review = again.review
    assert len(review.new[before["zorblat"]].members) == 4
    assert len(review.queue.rows) == 3
    assert review.skipped == {before["Vexil"]}
    assert "ask Noa" in again.get("/", state="flagged")
    assert links_of(review.nlp) == ["maker"] * 2
    kb = review.linker.kb
    assert kb.get("cat").title == "big cat"
    assert kb.get("metal").id == "planet"
    assert "shop" not in kb
    assert kb.get("E1").aliases == ("Newer", "Newest")
    for _ in range(9):
        again.post("/undo")
    assert "no such decision" in again.post("/undo", status=422)
    assert again.ids == before
    assert before == start().ids
    titles = {name: kb.get(name).title for name in ("cat", "metal", "shop")}
    assert titles == {"cat": "jaguar", "metal": "mercury", "shop": "Amazon"}


def test_every_kind_of_decision_is_repeated(start, browser):
    ids, kb_id = browser.ids, "cat"
    keys = browser.keys_of(ids["Quorn"])
    browser.post("/decide/split", id=ids["Quorn"], mentions=keys[:2])
    browser.post("/decide/split", id=ids["Quorn"], mentions=keys[2:3])
    browser.post("/decide/link_all", ids=[ids["Quorn"], ids["zorb"]], kb_id=kb_id)
    browser.post("/decide/accept_all", ids=[ids["Vexil"], ids["zorblat"]])
    browser.post("/undo")
    browser.post("/decide/reject", id=ids["Vexil"])
    assert start().ids == browser.ids
    browser.post("/save")
    browser.post("/decide/merge", id=ids[SCRIPT], others=ids[RIGHT_TO_LEFT])
    assert start().ids == browser.ids


def test_a_saved_pipeline_goes_on_where_it_was(start, browser, model):
    browser.post("/decide/reject", **cluster(browser, "Vexil")[1])
    assert browser.review.unsaved == 1
    browser.post("/save")
    assert browser.review.unsaved == 0
    assert "Vexil" not in start().ids
    again = start()
    assert again.review.unsaved == 0
    again.post("/undo")
    assert "Vexil" in again.ids
    assert "Vexil" in start().ids


def test_many_are_accepted_and_undone_at_once(start, browser):
    preview = browser.get("/bulk", sure=0.95)
    assert "3 new entities</b> with 5 mentions would be added" in preview
    ids = [browser.ids[name] for name in ("zorblat", "zorb", "Vexil")]
    browser.post("/decide/accept_all", **browser.fields_of(preview, "/decide/accept_all"), ids=ids)
    assert len(browser.rows) == 3
    assert len(start().rows) == 3
    browser.post("/undo")
    assert len(browser.rows) == 6
    assert len(browser.kb) == 8
    wrong = [ids[0], "NEW-nothing"]
    browser.post("/decide/accept_all", 422, ids=wrong)
    assert len(browser.rows) == 6
    assert len(browser.kb) == 8


def test_links_are_confirmed_and_corrected(start):
    browser = start(texts=True)
    page = browser.get("/links")
    assert "What teaches most first" in page
    assert "Quorn" in page
    row = next(row for row in browser.links.rows if row.text == "Quorn")
    fields = {"n": row.number}
    page = browser.get("/link", **fields)
    assert "8 candidates" in page
    assert 'data-key="n"' in page
    assert 'data-key="1"' in page
    browser.post("/decide/learn", **fields, kb_id="maker")
    assert links_of(browser.nlp) == ["maker"] * 2
    assert browser.standing[-1]["verdict"] == "correct"
    assert links_of(start().nlp) == ["maker"] * 2
    browser.post("/decide/learn", **fields, kb_id="NIL")
    assert links_of(browser.nlp)[0] == "NIL"
    browser.post("/undo")
    assert links_of(browser.nlp) == ["maker"] * 2
    browser.post("/undo")
    assert not browser.review.linker.stages.corrections.items
    assert "Q0" in browser.post("/decide/learn", 422, **fields, kb_id="Q0")


def test_mentions_with_one_question_are_asked_once_in_their_texts(start):
    browser = start(texts=True)
    rows = browser.links.select(Filters(), browser.review)
    assert len({row.question for row in rows}) == len(rows) < len(browser.links.rows)
    quorn = next(row for row in rows if row.text == "Quorn")
    page = browser.get("/links")
    assert "<mark>Quorn</mark>" in page
    assert browser.links.document(quorn)[:16] in page
    browser.post("/decide/learn", n=quorn.number, kb_id="maker")
    open_rows = browser.links.select(Filters(), browser.review)
    assert not [row for row in open_rows if row.place in browser.links.covered(quorn, "maker")]


def test_labels_of_the_list_come_first_and_others_are_not_marked(browser):
    rows = browser.rows
    for row_id, row in rows.items():
        rows[row_id] = replace(row, is_listed=row.name == "Vexil")
    browser.review.queue._order = sorted(map(SORTS["doubt"], rows.values()))
    first, *_ = browser.review.select(Filters())
    assert first.name == "Vexil"
    assert browser.get("/bulk", sure=0.0).count(" checked ") == 1


def test_exports_have_what_was_decided(start):
    browser = start(texts=True)
    before = browser.ids
    browser.post("/decide/accept", **cluster(browser, "Quorn")[1], title="=Quorn", kb_id="Q1")
    browser.post("/decide/merge", **cluster(browser, "zorblat")[1], others=before["zorb"])
    browser.post("/decide/reject", **cluster(browser, "Vexil")[1])
    *_, quorn = browser.get("/export/entities.csv").splitlines()
    assert quorn.startswith("Q1,'=Quorn,")
    assert quorn.endswith(",new")
    lines = browser.get("/export/decisions.jsonl").splitlines()
    assert [json.loads(line)["action"] for line in lines] == ["accept", "merge", "reject"]
    assert json.loads(lines[0])["entity"]["title"] == "=Quorn"
    gold = browser.client.get(browser.root + "/export/gold.spacy").content
    docs = list(DocBin().from_bytes(gold).get_docs(browser.nlp.vocab))
    assert [[ent.kb_id_ for ent in doc.ents] for doc in docs] == [["Q1", "Q1"], ["Q1"], ["Q1"]]


def test_no_window_changes_what_another_has_changed(browser):
    entity = browser.get("/kb/entity", id="cat")
    edit = browser.fields_of(entity, "/decide/kb_update")
    browser.post("/decide/kb_update", **edit, title="Mine", aliases="panther")
    for action in ("kb_update", "kb_merge", "kb_remove"):
        fields = browser.fields_of(entity, f"/decide/{action}")
        more = {"title": "Theirs", "into": "car"}
        assert "has changed since" in browser.post(f"/decide/{action}", 422, **fields, **more)
    assert browser.kb.get("cat").aliases == ("panther",)
    # A cluster, the second one of a merge, and those of a bulk acceptance.
    page, ids = cluster(browser, "zorblat")[0], browser.ids
    similar = browser.get("/similar", id=ids["zorblat"])
    value = re.search(rf'name="others" value="({ids["Quorn"]}@\w+)"', similar).group(1)
    bulk = re.findall(r'name="ids" value="([^"]+)"', browser.get("/bulk", sure=0.1))
    fields = {name: cluster(browser, name)[1] for name in ("Quorn", "zorb")}
    browser.decide("split", "Quorn", mentions=browser.keys_of(ids["Quorn"])[:1])
    merge = browser.fields_of(page, "/decide/split")
    assert "has changed since" in browser.post("/decide/merge", 422, **merge, others=value)
    assert "has changed since" in browser.post("/decide/accept_all", 422, ids=bulk)
    assert "has changed since" in browser.post("/decide/reject", 422, **fields["Quorn"])
    browser.post("/decide/merge", **merge, others=ids["zorb"])
    assert "not open any more" in browser.post("/decide/reject", 422, **fields["zorb"])
    assert len(browser.kb) == 8


def test_an_undo_takes_back_what_its_page_showed(browser):
    ids = browser.ids
    browser.decide("reject", "Quorn")
    shown = browser.fields_of(browser.get("/kb"), "/undo")
    browser.decide("reject", "Vexil")  # in another window
    page = browser.post("/undo", **shown)
    assert "Taken back: <bdi>“Quorn” rejected</bdi>" in page
    assert browser.ids.keys() == ids.keys() - {"Vexil"}
    assert "no such decision" in browser.post("/undo", 422, **shown)


def test_any_decision_that_nothing_depends_on_is_undone(start, browser):
    ids = browser.ids
    browser.decide("accept", "zorblat", title="Zorblat")
    kb_id = browser.standing[-1]["kb_id"]
    browser.decide("reject", "Vexil")
    browser.decide("link", "zorb", kb_id=kb_id)
    history = browser.get("/history")
    assert history.count("others depend on it") == 1
    assert "“zorb” linked to “Zorblat”" in history
    assert f'href="{browser.root}/kb/entity?id={kb_id}"' in history
    assert "on “zorb” came later" in html.unescape(browser.post("/undo", 422, n=0))
    browser.post("/undo", n=1)
    assert "Vexil" in browser.ids
    assert kb_id in browser.kb
    browser.post("/undo", n=2)
    browser.post("/undo", n=0)
    assert browser.ids == ids
    assert kb_id not in browser.kb
    again = start()
    assert not again.standing
    assert again.ids == browser.ids


def test_decisions_that_mean_nothing_are_refused(browser, model):
    ids = browser.ids
    for action, fields in cases("meaningless_decisions"):
        named = {
            name: [ids[one] for one in value] if name == "ids" else ids.get(value, value)
            for name, value in fields.items()
        }
        page = browser.post(f"/decide/{action}", 404 if action == "learn" else 422, **named)
        assert "linker.new_entities" not in page, action
        assert not journal_path(model).exists(), action


def test_an_entity_that_others_were_merged_into_shows_their_exemplars(browser):
    count = len(browser.review.exemplars("cat")) + len(browser.review.exemplars("car"))
    browser.post("/decide/kb_merge", id="car", into="cat")
    assert f"{count} exemplars" in browser.get("/kb/entity", id="cat")
    browser.get("/effect", kb_id="cat")


def test_mentions_in_a_document_lead_where_they_belong(start):
    browser = start(texts=True)
    page, fields = cluster(browser, "Quorn")
    address = html.unescape(re.search(r'href="[^"]*(/document\?[^"#]*)#here"', page).group(1))
    shown = browser.client.get(browser.root + address).text
    assert shown.count('id="here"') == 1
    assert f"/cluster?id={fields['id']}" in shown
    browser.post("/decide/accept", **fields, title="Quorn Ltd")
    kb_id = browser.standing[-1]["kb_id"]
    shown = browser.client.get(browser.root + address).text
    assert f"/kb/entity?id={kb_id}" in shown
    for link in set(re.findall(r'href="(/[^"]+)"', shown)):
        assert browser.client.get(html.unescape(link)).status_code == 200, link


def split_and_accept(browser):
    """Split a mention off a new entity, and accept the rest. RETURNS: The id of what is off."""
    id_ = browser.ids["zorblat"]
    browser.post("/decide/split", id=id_, mentions=browser.keys_of(id_)[:1])
    off = browser.standing[-1]["off"]
    browser.post("/decide/accept", id=id_, title="Zorblat")
    return off


def test_an_entity_accepted_a_minute_ago_is_a_candidate_of_the_next_cluster(browser):
    off = split_and_accept(browser)
    kb_id = browser.standing[-1]["kb_id"]
    page = browser.get("/cluster", id=off)
    first = re.search(r'name="kb_id" value="([^"]+)"><button data-key="1"', page).group(1)
    assert first == kb_id
    assert "would be linked by now" in page
    effect = browser.get("/effect", kb_id=kb_id)
    assert "1 other mention now links to it, in 1 cluster" in effect
    assert off in effect
    assert 'data-key="e"' in effect
    linked = browser.fields_of(effect, "/decide/link_all")
    browser.post("/decide/link_all", **linked)
    assert off not in browser.rows
    assert browser.standing[-1]["ids"] == [off]
    browser.post("/undo")
    assert off in browser.rows


def test_a_cluster_of_many_mentions_has_similar_ones_too(browser, monkeypatch):
    entity = browser.review.new[browser.ids["Quorn"]]
    monkeypatch.setattr(near, "COMPARED", len(entity.members))
    similar = [row.name for row in browser.review.similar(entity)]
    assert similar
    assert "Quorn" not in similar


def test_after_a_split_the_next_cluster_is_the_one_that_was_next(browser):
    order = [row.id for row in browser.review.select(Filters())]
    one = next(i for i in order if len(browser.review.new[i].members) > 2)
    following = order[order.index(one) + 1]
    fields = browser.fields_of(browser.get("/cluster", id=one), "/decide/split")
    page = browser.post("/decide/split", **fields, mentions=browser.keys_of(one)[:-1])
    assert f"next={following}" in str(browser.answer.url)
    assert re.search(rf'id={following}"[^>]*data-key="ArrowRight"', page)
    page = browser.post("/decide/accept", **browser.fields_of(page, "/decide/accept"), title="x")
    assert f"id={following}" in str(browser.answer.url)


def test_an_id_that_exists_asks_before_it_drops_what_was_typed(browser):
    fields = {**cluster(browser, "Quorn")[1], "title": "Typed", "kb_id": "maker"}
    page = browser.post("/decide/accept", 409, **fields)
    assert "has the id <bdi>maker</bdi> already" in page
    assert not browser.standing
    browser.post("/decide/link", **browser.fields_of(page, "/decide/link"))
    assert browser.standing[-1]["kb_id"] == "maker"
    assert browser.kb.get("maker").title == "Apple"


def test_windows_have_names_of_their_own(browser):
    first = browser.root, browser.csrf
    browser.post("/name", name="  Noa  Levi ")
    browser.decide("reject", "Quorn")
    browser.log_in()
    browser.decide("reject", "Vexil")
    browser.root, browser.csrf = first
    browser.post("/undo")
    assert [e["by"] for e in browser.review.journal.log.entries] == ["Noa Levi", "ann", "Noa Levi"]


def test_links_leave_out_what_is_decided_under_new_entities(start):
    browser = start(texts=True)
    before = len(browser.links.select(Filters(), browser.review))
    browser.post("/decide/accept", **cluster(browser, "Quorn")[1], title="Quorn Ltd")
    open_rows = browser.links.select(Filters(), browser.review)
    assert "Quorn" not in {row.text for row in open_rows}
    assert len(open_rows) == before - 1
    assert f"{before - 1} links" in browser.get("/links")


def test_a_text_that_occurs_twice_is_reviewed_once(data):
    docs = documents(data)
    once, twice = (LinkReview(find_linker(data), some).rows for some in (docs, [docs[0], *docs]))
    assert [(row.place, row.text) for row in twice] == [(row.place, row.text) for row in once]


def test_mentions_that_overlap_are_decided_on_and_exported_apart(tmp_path):
    nlp = build(key="sc")
    save_pipeline(nlp, tmp_path)
    doc = nlp.make_doc("the old cat sat")
    places = [(1, 3, "A"), (2, 3, "A"), (2, 3, "B")]
    doc.spans["sc"] = [Span(doc, start, end, label=label) for start, end, label in places]
    review = Review(nlp, tmp_path)
    links = LinkReview(review.linker, [doc])
    seen = {row.name: review.version("learn", row.name) for row in links.rows}
    for row in links.rows:
        review.decide("learn", "ann", {row.name: seen[row.name]}, **links.entry_of(row, "cat"))
    with raises("has changed since"):
        review.decide("learn", "ann", seen, **links.entry_of(links.rows[0], "car"))

    def exported():
        (gold,) = gold_docs(review.linker, links.docs, review.standing)
        return [(span.start, span.end, span.label_) for span in gold.spans["sc"]]

    assert exported() == places
    review.undo("ann", 1)
    assert exported() == [places[0], places[2]]


def test_read_only_changes_nothing(start, model):
    browser = start(read_only=True)
    fields = {"id": browser.ids["Quorn"]}
    page = browser.get("/cluster", **fields)
    assert "read-only" in page
    assert "/decide/" not in page.replace("/decide/split", "")
    assert "read-only" in browser.post("/decide/reject", 422, **fields)
    assert "read-only" in browser.post("/undo", 422)
    assert not journal_path(model).exists()


def test_hostile_texts_are_escaped_on_every_page(start):
    browser = start(texts=True)
    ids = browser.ids
    browser.post("/decide/kb_add", id=SCRIPT, title=SCRIPT, description=SCRIPT, types=SCRIPT)
    key = browser.review.new[ids[SCRIPT]].members[0].key[0]
    number = next(r.number for r in browser.links.rows if r.text == SCRIPT)
    for path, query in {
        "/": {},
        "/cluster": {"id": ids[SCRIPT]},
        "/similar": {"id": ids["Quorn"]},
        "/why": {"id": ids[SCRIPT], "kb_id": "cat"},
        "/search": {"text": SCRIPT, "id": SCRIPT, "back": SCRIPT},
        "/bulk": {"sure": 0.1},
        "/document": {"f": key},
        "/links": {},
        "/link": {"n": number},
        "/kb": {"text": SCRIPT},
        "/kb/entity": {"id": SCRIPT},
        "/history": {},
    }.items():
        page = browser.get(path, **query)
        assert "<script>document" not in page, path
        assert "script" in page.lower(), path


def test_texts_of_any_direction_keep_theirs(start):
    page = cluster(start(), RIGHT_TO_LEFT)[0]
    assert '<label dir="auto"><input type="checkbox" name="mentions"' in page


def colours(dark):
    """The colours of the style sheet by name."""
    style = Path(app.__file__).parent / "static" / "style.css"
    blocks = re.findall(r":root \{(.*?)\}", style.read_text(encoding="utf8"), re.S)
    found = {}
    for block in blocks[: 1 + dark]:
        found.update(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", block))
    return found


def luminance(colour):
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("dark", [False, True])
def test_contrasts_are_those_of_wcag(dark):
    found = colours(dark)
    for front, back, least in cases("contrasts"):
        low, high = sorted((luminance(found[front]), luminance(found[back])))
        assert (high + 0.05) / (low + 0.05) >= least, (front, back)


def test_what_is_not_there_is_said_so(start):
    browser = start(texts=True)
    for path in ("/cluster?id=NEW-x", "/link?n=99", "/nothing", "/kb/entity?id=x"):
        assert "message error" in browser.get(path, status=404), path
    without_texts = start()
    for name in ("anything", "gold.spacy"):
        without_texts.get(f"/export/{name}", status=404)
    for sure in ("nan", "inf", "-1", "x"):
        assert "E915" in browser.get("/bulk", sure=sure, status=404)
    browser.get("/", low="nan", status=404)
