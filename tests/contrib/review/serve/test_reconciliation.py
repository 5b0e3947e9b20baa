"""The Reconciliation API 0.2: answers of the form that it asks for, links as those of ``nlp``."""

import csv
import json
from pathlib import Path

import pytest
import spacy
from jsonschema import Draft202012Validator
from spacy.tokens import Doc, Span
from spacy.util import import_file

from spacy_arbo_el import Entity, find_linker, load_pipeline
from spacy_arbo_el.contrib.review.review import Review
from spacy_arbo_el.contrib.review.serve.app import create_app
from spacy_arbo_el.contrib.review.serve.cells import Query, _of_cell, candidates
from spacy_arbo_el.contrib.review.serve.reconciliation import address

from ....cases import cases
from ....linker.world import ENTITIES
from .world import SCRIPT, Browser, serving

ROOT = Path(__file__).parents[4]
SCHEMAS = json.loads((Path(__file__).parent / "reconciliation" / "schemas.json").read_text("utf8"))


def check(name, content):
    """Fails where content is not of the form of the specification. RETURNS: The content."""
    Draft202012Validator({**SCHEMAS, "$ref": f"#/$defs/{name}"}).validate(content)
    return content


class Client:
    """A program that knows the address that was printed, and nothing else."""

    def __init__(self, browser):
        self.linker, self.http = browser.review.linker, browser.client
        self.http.cookies.clear()
        self.url = address(browser.rules)

    def get(self, path="", status=200, **query):
        answer = self.http.get(self.url + path, params=query or None)
        assert answer.status_code == status, answer.text
        assert answer.headers["access-control-allow-origin"] == "*"
        return answer

    def post(self, status=200, **fields):
        data = {k: v if isinstance(v, str) else json.dumps(v) for k, v in fields.items()}
        answer = self.http.post(self.url, data=data)
        assert answer.status_code == status, answer.text
        return answer.json()

    def link(self, *queries):
        """The candidates of each query."""
        batch = {f"q{number}": query for number, query in enumerate(queries)}
        found = check("results", self.post(queries=check("queries", batch)))
        assert list(found) == list(batch)
        return [one["result"] for one in found.values()]


@pytest.fixture
def client(model):
    nlp = load_pipeline(model)
    find_linker(nlp).threshold = 0.5
    return Client(Browser(nlp, model))


def ids(candidates):
    return [one["id"] for one in candidates]


def test_the_manifest_says_where_everything_is(client):
    manifest = check("manifest", client.get().json())
    assert manifest == client.get("/").json()
    assert manifest["defaultTypes"][0] == {"id": "COMPANY", "name": "COMPANY"}
    assert manifest["identifierSpace"] == "http://127.0.0.1/kb/entity?id="
    for kind in ("entity", "type", "property"):
        suggest = manifest["suggest"][kind]
        found = client.http.get(suggest["service_url"] + suggest["service_path"] + "?prefix=a")
        check("suggestions", found.json())
    assert client.http.get(manifest["preview"]["url"].replace("{{id}}", "cat")).status_code == 200
    propose = manifest["extend"]["propose_properties"]
    found = client.http.get(propose["service_url"] + propose["service_path"] + "?type=FOOD&limit=2")
    assert ids(check("proposal", found.json())["properties"]) == ["name", "type"]


def test_cells_get_the_candidates_that_the_linker_gives(client):
    cells = ["quicksilver", "jaguars", "Amazon", "Nothing like it"]
    found = client.link(*({"query": cell, "limit": 3} for cell in cells))
    assert [len(one) for one in found] == [3] * 4
    assert [one[0]["match"] for one in found] == [True, True, False, False]
    for cell, one in zip(cells, found):
        span = Span(Doc(client.linker.vocab, [cell], [False]), 0, 1)
        link = client.linker.stages.link([[span]], 0.5).links[0]
        assert ids(one) == list(link.ids[:3])
        assert [c["score"] for c in one] == pytest.approx([100 * s for s in link.scores[:3]])
    first = found[0][0]
    assert first["name"] == "mercury"
    assert first["type"] == [{"id": "MATTER", "name": "MATTER"}]
    assert {f["id"]: f["value"] for f in first["features"]} == {
        "exact_name": True,
        "shared_words": 1.0,
    }
    # The other cells of a batch change nothing, and neither does the way to ask.
    assert client.link({"query": "jaguars", "limit": 3})[0] == found[1]
    batch = json.dumps({"q": {"query": "jaguars", "limit": 3}})
    assert client.get(queries=batch).json()["q"]["result"] == found[1]


def test_without_other_columns_one_of_two_entities_of_a_name_does_not_match(client):
    shop = {"pid": "description", "v": "online shop and cloud company"}
    alone, of_type, told_apart = client.link(
        {"query": "Amazon", "limit": 1},
        {"query": "Amazon", "type": "PLACE"},
        {"query": "Amazon", "properties": [shop]},
    )
    assert alone[0]["score"] > 50
    assert not alone[0]["match"]
    assert ids(of_type) == ["river"]
    assert of_type[0]["match"]
    assert ids(told_apart)[0] == "shop"
    assert told_apart[0]["match"]


@pytest.mark.bundled
def test_scores_of_the_default_ranker_are_of_one_distribution():
    nlp = spacy.blank("xx")
    linker = nlp.add_pipe("arbo_linker")
    linker.set_kb(ENTITIES)
    cells = [Query(query="Amazon"), Query(query="Amazon", type="PLACE"), Query(query="jaguars")]
    plain, of_type, other = candidates(linker, cells)
    assert all(sum(c["score"] for c in cell) <= 100 for cell in (plain, of_type, other))
    # A name of two: the linker takes one, a table is not to.
    assert plain[0]["score"] > 100 * linker.threshold
    assert 100 * linker.threshold > plain[1]["score"]
    assert plain[1]["score"] > 10
    assert set(ids(plain)[:2]) == {"river", "shop"}
    assert not plain[0]["match"]
    # The ranker, which knows names too, keeps to the types that were asked for.
    assert ids(of_type) == ["river"]
    assert of_type[0]["match"]
    assert other[0]["match"]


def test_an_id_is_found_as_it_is(client):
    (found,) = client.link({"query": "shop", "limit": 2})
    assert ids(found)[0] == "shop"
    assert found[0]["score"] == 100
    assert found[0]["match"]
    assert len(found) == 2
    assert not found[1]["match"]


def test_misspelled_cells_have_similar_names_as_candidates(client):
    query = {"query": "quicksilvr", "limit": 1}
    misspelled, of_type, other = client.link(
        query, {**query, "type": "MATTER"}, {**query, "type": "FOOD"}
    )
    assert ids(misspelled) == ["metal"]
    assert ids(of_type) == ["metal"]
    assert ids(other) == ["fruit"]
    assert misspelled[0]["score"] > 40
    assert misspelled[0]["score"] < 50
    assert not misspelled[0]["match"]


def test_types_restrict_the_candidates(client):
    plain, of_type, of_two, of_both, unknown = client.link(
        {"query": "Amazon"},
        {"query": "Amazon", "type": "PLACE", "type_strict": "should"},
        {"query": "Amazon", "type": ["PLACE", "COMPANY"]},
        {"query": "Amazon", "type": ["PLACE", "COMPANY"], "type_strict": "all"},
        {"query": "Amazon", "type": "NOTHING"},
    )
    assert {"river", "shop", "cat"} < set(ids(plain))
    assert ids(of_type) == ["river"]
    assert {"id": "type", "value": True} in of_type[0]["features"]
    assert set(ids(of_two)) == {"river", "shop", "maker", "car"}
    assert of_both == []
    assert unknown == []


def test_other_columns_are_evidence(client):
    def best(pid, value, query="Amazon"):
        ((first, *_),) = client.link({"query": query, "properties": [{"pid": pid, "v": value}]})
        return first["id"], {f["id"]: f["value"] for f in first["features"]}["properties"]

    assert best("description", "great river in South America") == ("river", 1.0)
    assert best("description", "online shop and cloud company") == ("shop", 1.0)
    assert best("name", ["Amazon River", {"id": "x", "name": "the river"}]) == ("river", 0.5)
    assert best("type", "MATTER", "Mercury") == ("metal", 1.0)
    (found,) = client.link({"properties": [{"pid": "name", "v": "quicksilver"}]})
    assert ids(found)[0] == "metal"


def test_suggestions_begin_with_what_was_typed(client):
    def suggest(kind, **query):
        return ids(check("suggestions", client.get(f"/suggest/{kind}", **query).json())["result"])

    assert suggest("entity", prefix="am") == ["river", "shop"]
    assert suggest("entity", prefix="cat")[0] == "cat"
    assert suggest("entity", prefix="quiksilver")[0] == "metal"
    assert suggest("entity", prefix="am", cursor=1) == ["shop"]
    assert suggest("entity", cursor=3) == ["shop", "fruit", "maker", "cat", "car"]
    assert suggest("type", prefix="fo") == ["FOOD"]
    assert suggest("property", prefix="other") == ["name"]
    assert client.get("/suggest/entity", 400, cursor="x").json()["error"]
    assert client.get("/suggest/nothing", 404).json()["error"]


def test_properties_become_columns(client):
    meta = {"legs": 4, "mass": [56.5], "large": 2**60}
    client.linker.kb.update({"id": "cat", "title": "jaguar", "meta": meta})
    asked = {"ids": ["cat", "metal", "x"], "properties": [{"id": one} for one in ("name", *meta)]}
    found = check("extension", client.post(extend=asked))
    assert found["meta"][0] == {"id": "name", "name": "Other names"}
    # Numbers beyond those of clients are texts.
    assert found["rows"]["cat"] == {
        "name": [{"str": "jaguar"}, {"str": "jaguars"}],
        "legs": [{"int": 4}],
        "mass": [{"float": 56.5}],
        "large": [{"str": str(2**60)}],
    }
    assert found["rows"]["metal"]["name"][1] == {"str": "quicksilver"}
    assert found["rows"]["x"] == dict.fromkeys(("name", *meta), [])
    properties = client.get("/properties", limit="9" * 5000).json()["properties"]
    assert "legs" in ids(properties)


def test_previews_show_texts_of_others_as_texts(client):
    client.linker.kb.add({"id": "<1>", "title": SCRIPT, "description": SCRIPT, "types": [SCRIPT]})
    page = client.get("/preview", id="<1>")
    assert "<script" not in page.text
    assert "&lt;script" in page.text
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors" not in policy
    assert client.get("/static/style.css").status_code == 200
    assert client.get("/preview", 404, id="nothing").json()["error"]


def test_one_bad_cell_costs_one_cell(client):
    for bad in cases("bad_cells"):
        cells = {"a": {"query": "jaguars"}, "b": bad, "c": {"query": "apples"}}
        found = {name: one["result"] for name, one in client.post(queries=cells).items()}
        assert found["b"] == [], bad
        assert (ids(found["a"])[0], ids(found["c"])[0]) == ("cat", "fruit"), bad


@pytest.mark.parametrize("more", cases("lenient_cells"))
def test_null_and_objects_of_other_versions_are_what_they_mean(client, more):
    found = client.post(queries={"a": {"query": "jaguars", **more}, "b": {"query": "apples"}})
    assert ids(found["a"]["result"])[0] == "cat"
    assert ids(found["b"]["result"])[0] == "fruit"


def test_nothing_matches_where_the_linker_is_undecided():
    query = Query(query="Veil")
    found = [(Entity("1", "Veil Ltd"), 0.46), (Entity("2", "Veil AG"), 0.45)]
    first = _of_cell(query, 0.3, found, None, ())[0]
    assert first["id"] == "1"
    assert first["match"]
    assert not any(one["match"] for one in _of_cell(query, 0.3, found, None, {"1", "2"}))
    assert _of_cell(query, 0.3, found, None, {"2", "3"})[0]["match"]


def test_an_empty_cell_of_another_column_says_nothing(client):
    empty = [{"pid": "description", "v": None}, {"pid": "type", "v": [None]}]
    cells = {"a": {"query": "jaguars", "properties": empty}, "b": {"query": "jaguars"}}
    found = client.post(queries=cells)
    assert ids(found["a"]["result"]) == ids(found["b"]["result"])


def test_wrong_queries_get_one_message_with_the_place(client):
    for queries, where in cases("wrong_queries"):
        said = client.post(400, queries=queries)["error"]
        assert f"{where} of a reconciliation request is wrong" in said, queries


def test_who_lacks_the_secret_learns_nothing(client):
    http, url = client.http, client.url
    for path in ("", "/", "/preview?id=cat"):
        answer = http.get(f"{url[:-1]}x{path}")
        assert answer.status_code == 401
        assert "cat" not in answer.text
    assert http.get("/reconcile/").status_code == 401
    assert http.get(url, headers={"host": "evil.example"}).status_code == 421
    # The address allows to ask, and nothing else.
    secret = url.rsplit("/", 1)[1]
    assert http.get("/", params={"token": secret}).status_code == 401
    assert http.post(f"{url}/decide/reject").status_code == 404
    batch = json.dumps({str(number): {"query": "a"} for number in range(101)})
    assert client.post(413, queries=batch)["error"]
    assert client.post(400, other="x")["error"]


def test_pages_of_other_places_may_ask(client):
    answer = client.http.options(client.url, headers={"origin": "http://refine.example"})
    assert answer.status_code == 204
    assert "POST" in answer.headers["access-control-allow-methods"]


def test_what_is_decided_in_the_review_counts_for_the_next_table(model):
    browser = Browser(load_pipeline(model), model)
    browser.post("/decide/kb_add", id="E1", title="Quorn", description="maker of meat")
    client = Client(browser)
    assert ids(client.link({"query": "Quorn"})[0])[0] == "E1"


def test_the_example_links_a_table_as_openrefine_does(model, tmp_path, capsys):
    example = import_file("reconcile", ROOT / "examples" / "reconcile.py")
    nlp = load_pipeline(model)
    find_linker(nlp).threshold = 0.5
    names = ["quicksilver", "", "jaguars", *["apples"] * 10]
    lines = ["name,description", "Amazon,great river", "Amazon,", *(f"{one}," for one in names)]
    (tmp_path / "names.csv").write_text("\n".join(lines), encoding="utf8")
    with serving(lambda rules: create_app(Review(nlp, model), rules)) as rules:
        example.main(address(rules), tmp_path / "names.csv", "name", tmp_path / "linked.csv")
    with (tmp_path / "linked.csv").open(encoding="utf8", newline="") as file:
        rows = list(csv.DictReader(file))
    found = [row["kb_id"] for row in rows]
    assert found == ["river", "", "metal", "", "cat", *["fruit"] * 10]
    assert rows[1]["candidates"].startswith(("river Amazon|shop", "shop Amazon|river"))
    assert "13 of 15 rows match" in capsys.readouterr().out
