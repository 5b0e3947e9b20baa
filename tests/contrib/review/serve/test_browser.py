"""The pages in Chromium: keys, fragments, and nothing that leaves the machine."""

import os
import shutil
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from spacy_arbo_el import load_pipeline
from spacy_arbo_el.contrib.review.links import LinkReview
from spacy_arbo_el.contrib.review.review import Review
from spacy_arbo_el.contrib.review.serve import app as serve_app

from ....threads import PATIENCE
from .world import Shown, documents, serving

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
# The script of axe-core, as npm installs it.
AXE = os.environ.get("ARBO_AXE")
sync_api = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
pytest.importorskip("uvicorn", reason="the extra serve is not installed")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium: apt-get install chromium"),
]
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"]
FLAGS += [f"--disable-{name}" for name in ("background-networking", "component-update", "sync")]


@pytest.fixture(scope="module")
def chromium():
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def server(model):
    """A review with links that is served at a free port."""
    nlp = load_pipeline(model)
    review = Review(nlp, model)
    links = LinkReview(review.linker, documents(nlp))
    with serving(lambda rules: serve_app.create_app(review, rules, links, "ann")) as rules:
        yield review, rules


class Window(Shown):
    """A window of the browser; it fails where a script fails or another host is asked."""

    def __init__(self, chromium, server, **settings):
        self.review, self.rules = server
        self.problems, self.context = [], chromium.new_context(**settings)
        self.page = page = self.context.new_page()
        page.set_default_timeout(1000 * PATIENCE)
        page.on("console", lambda m: self.problems.append(m.text) if m.type == "error" else None)
        page.on("pageerror", lambda error: self.problems.append(str(error)))
        page.on("request", lambda request: self._check(request.url))
        self.root = ""
        self.go(f"/?token={self.rules.token}")
        self.root = "/".join(page.url.split("/")[3:5])

    def _check(self, address):
        if not address.startswith(self.rules.origins[0]):
            self.problems.append(address)

    def go(self, path):
        root = f"/{self.root}" if self.root else ""
        self.page.goto(self.rules.origins[0] + root + path, wait_until="networkidle")

    def cluster(self, name):
        self.go(f"/cluster?id={self.ids[name]}")

    def press(self, *keys):
        for key in keys:
            self.page.keyboard.press(key)
        self.page.wait_for_selector("body:not(.busy)")
        self.page.wait_for_load_state("networkidle")

    @property
    def heading(self):
        return self.page.locator("h1").inner_text()

    @property
    def message(self):
        return self.page.locator("#message").inner_text()

    def decided(self):
        return [entry["action"] for entry in self.review.standing]


@pytest.fixture
def window(chromium, server):
    window = Window(chromium, server)
    yield window
    window.context.close()
    assert not window.problems


def test_every_key_decides(window):
    window.press("Enter")
    assert "Quorn" in window.heading
    window.press("t")
    window.page.keyboard.type("Quorn Ltd")
    window.press("Enter")
    window.page.wait_for_selector("#message :text('No other mention')")
    assert "accepted as" in window.message
    assert window.kb.get(window.standing[-1]["kb_id"]).title == "Quorn Ltd"
    window.press("u")
    assert window.decided() == []
    assert "Quorn" in window.heading
    window.press("a")
    assert window.decided() == ["accept"]
    window.cluster("zorblat")
    window.press("2")
    assert window.decided() == ["accept", "link"]
    window.press("u")
    window.cluster("zorblat")
    window.press("/")
    window.page.keyboard.type("mercury")
    window.press("Enter")
    window.page.wait_for_selector("#found button")
    window.press("4")
    assert window.standing[-1]["kb_id"] in ("planet", "metal")
    window.press("u")
    window.cluster("Vexil")
    window.press("x")
    window.cluster("zorb")
    window.press("s")
    assert window.decided() == ["accept", "reject", "skip"]
    window.cluster("zorblat")
    window.press("f")
    window.page.keyboard.type("ask Noa")
    window.press("Enter")
    assert "ask Noa" in window.page.locator("main").inner_text()
    window.press("j", "j", "Space", "p")
    assert window.standing[-1]["action"] == "split"
    window.page.wait_for_selector('[data-focus="m"]')
    window.press("m", "Enter")
    assert window.standing[-1]["action"] == "merge"
    for _ in range(6):
        window.press("u")
    assert window.decided() == []
    assert len(window.rows) == 6


def test_other_keys_show(window):
    window.cluster("Quorn")
    window.press("w")
    window.page.wait_for_selector(".why")
    assert "below the threshold" in window.page.locator(".why").first.inner_text()
    window.press("ArrowRight")
    assert "Quorn" not in window.heading
    window.press("ArrowLeft")
    assert "Quorn" in window.heading
    window.press("?")
    assert window.page.locator("dialog").is_visible()
    window.press("Escape")
    assert not window.page.locator("dialog").is_visible()
    window.press("k")
    assert "entities" in window.heading
    window.press("Escape", "q")
    assert "6 new entities" in window.heading
    window.cluster("Quorn")
    window.press("p")
    assert "Select mentions first" in window.message
    assert window.decided() == []


def test_the_mouse_decides_and_going_back_works(window):
    window.page.get_by_role("link", name="Quorn").click()
    window.page.get_by_role("button", name="Reject").click()
    window.page.wait_for_selector("#message :text('rejected')")
    assert window.decided() == ["reject"]
    window.page.get_by_role("button", name="Undo").click()
    window.page.wait_for_selector("h1:has-text('Quorn')")
    assert window.decided() == []
    window.page.go_back()
    window.page.wait_for_selector("h1:not(:has-text('Quorn'))")


def test_an_entity_is_found_while_one_types(window):
    window.cluster("Vexil")
    window.press("/")
    window.page.keyboard.type("quicksilver")
    window.page.wait_for_selector('#found ol[data-for="quicksilver"] button')
    window.press("Enter")
    assert window.standing[-1]["kb_id"] == "metal"


def test_another_port_of_the_host_gets_no_cookie(chromium, window):
    heard = []

    class Neighbour(BaseHTTPRequestHandler):
        def do_GET(self):
            heard.append((self.path, self.headers.get("cookie"), self.headers.get("referer")))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_):
            pass

    with HTTPServer(("127.0.0.1", 0), Neighbour) as neighbour:
        threading.Thread(target=neighbour.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{neighbour.server_port}/"
        window.page.evaluate("address => { window.location = address }", address)
        window.page.wait_for_url(address)
        window.page.wait_for_load_state("networkidle")
        neighbour.shutdown()
    assert heard
    assert not any(cookie for _, cookie, _ in heard)
    assert not any(referer and window.root in referer for _, _, referer in heard)
    window.problems.clear()


@pytest.mark.parametrize("width", [360, 1280])
def test_pages_fit_and_words_and_blanks_stay_whole(chromium, server, width):
    window = Window(chromium, server, viewport={"width": width, "height": 700})
    window.cluster("Quorn")
    line = window.page.locator(".concordance label").first
    assert "They met Quorn at the fair" in line.inner_text().replace("\n", "")
    gaps = line.evaluate(
        """label => { const [a, b, c] = [...label.querySelectorAll(".before, mark, .after")]
            .map(one => one.getBoundingClientRect());
            return [b.left - a.right, c.left - b.right]; }"""
    )
    assert width == 360 or all(abs(gap) < 1 for gap in gaps)
    quorn = window.ids["Quorn"]
    paths = ["/", "/bulk?sure=0.1", "/history", f"/cluster?id={quorn}", "/links", "/link?n=0"]
    for path in [*paths, "/kb/entity?id=cat"]:
        window.go(path)
        broken = window.page.evaluate(
            """() => [...document.querySelectorAll("td bdi, td a, th")].filter(one => {
                const word = one.textContent.trim();
                const isWord = word.length < 20 && !/\\s/.test(word);
                return isWord && one.getClientRects().length > 1; }).map(one => one.outerHTML)"""
        )
        assert broken == [], path
        assert window.page.evaluate("document.documentElement.scrollWidth <= innerWidth"), path
    window.context.close()
    assert not window.problems


@pytest.mark.skipif(AXE is None, reason="axe-core is not installed: see tests/README.md")
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280])
def test_axe_finds_nothing(chromium, server, scheme, width):
    size = {"width": width, "height": 700}
    window = Window(chromium, server, viewport=size, color_scheme=scheme, bypass_csp=True)
    ids = window.ids
    window.review.decide("accept", "x", id=ids["Vexil"], title="Vexil")
    quorn, key = ids["Quorn"], window.review.new[ids["Quorn"]].members[0].key
    pages = ("/", f"/cluster?id={quorn}", "/bulk", "/links", "/link?n=0", "/kb?text=cat")
    pages += ("/kb/entity?id=cat", "/history", f"/document?f={key[0]}", "/cluster?id=none")
    for path in pages:
        window.go(path)
        if path.startswith("/cluster?id=NEW"):
            window.press("w")
        if path == "/history":
            window.press("?")
        window.page.add_script_tag(path=AXE)
        found = window.page.evaluate("axe.run().then(all => all.violations)")
        assert not found, (path, [(one["id"], one["nodes"][0]["html"]) for one in found])
    window.context.close()
