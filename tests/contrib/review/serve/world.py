"""A saved pipeline with new entities of every kind, over the tower of NumPy."""

import re
import socket
import threading
from contextlib import contextmanager
from html import unescape

from spacy_arbo_el import find_linker
from spacy_arbo_el.contrib.review.links import LinkReview
from spacy_arbo_el.contrib.review.review import Review
from spacy_arbo_el.contrib.review.serve.app import create_app
from spacy_arbo_el.contrib.review.serve.security import Rules

from ....linker.conftest import build
from ....linker.world import unlinked_doc
from ....threads import wait_until

SCRIPT = "<script>document.title='owned'</script>"
RIGHT_TO_LEFT = "גלידריה"
TEXTS = [
    "They met [Quorn|x] at the fair, and [Quorn|x] sold meat.",
    "Shares of [Quorn|x] fell on Monday.",
    "The maker [Quorn|x] of meat is old.",
    "The [zorblat|x] was seen at night.",
    "A [zorblat|x] and another [zorblat|x] swam away.",
    "The [zorb|x] swam too.",
    f"They wrote [{SCRIPT}|x] on the wall & left.",
    f"אכלנו אצל [{RIGHT_TO_LEFT}|x] אתמול.",
    "Only [Vexil|x] came.",
]


def pipeline():
    """A pipeline whose linker keeps the new entities of ``TEXTS``."""
    nlp = build(threshold=0.9)
    linker = find_linker(nlp)
    linker.new_entities = linker.corpus.discover(documents(nlp))
    return nlp


def documents(nlp, texts=TEXTS):
    docs = [unlinked_doc(nlp, text) for text in texts]
    for number, doc in enumerate(docs):
        doc.user_data["doc_id"] = f"doc{number}"
    return docs


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


@contextmanager
def serving(make_app):
    """The rules of a server at a free port. make_app: From rules to an application."""
    rules = Rules(port=free_port())
    with running(make_app(rules), rules.port):
        yield rules


@contextmanager
def running(app, port, rules=None):
    """The server of an application, by Uvicorn, in a thread."""
    import uvicorn

    from spacy_arbo_el.contrib.review.serve.running import configured

    config = configured(app, rules or Rules())
    config.port = port
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        wait_until(lambda: server.started or not thread.is_alive(), "the start of the server")
        assert server.started, "the server has ended before it had started"
        yield server
    finally:
        server.should_exit = True
        thread.join()


class Shown:
    """A review that is shown, and what its tests look at."""

    @property
    def rows(self):
        """Its open new entities by id."""
        return self.review.queue.rows

    @property
    def ids(self):
        """Their ids by name."""
        return {row.name: row.id for row in self.rows.values()}

    def keys_of(self, id_):
        """The mentions of a new entity, as forms name them."""
        return ["{}:{}:{}".format(*member.key) for member in self.review.new[id_].members]

    @property
    def standing(self):
        return self.review.standing

    @property
    def kb(self):
        return self.review.linker.kb

    @property
    def nlp(self):
        return self.review.nlp


class Browser(Shown):
    """What a browser does with our pages, without scripts."""

    def __init__(self, nlp, model, texts=False, **settings):
        from starlette.testclient import TestClient

        self.review = Review(nlp, model, **settings)
        self.rules = Rules(port=80, token="secret")
        self.links = LinkReview(self.review.linker, documents(nlp)) if texts else None
        self.app = create_app(self.review, self.rules, self.links, "ann")
        self.client = TestClient(
            self.app, base_url="http://127.0.0.1", raise_server_exceptions=True
        )
        self.log_in()

    def log_in(self):
        """Open a window of its own."""
        answer = self.client.get("/?token=secret")
        assert answer.status_code == 200
        self.root = answer.url.path.rstrip("/")
        history = self.get("/history")
        self.csrf = re.search(r'name="csrf" value="([^"]+)"', history).group(1)

    def get(self, path, status=200, **query):
        answer = self.client.get(self.root + path, params=query or None)
        assert answer.status_code == status, answer.text
        return answer.text

    def post(self, path, status=200, **fields):
        fields = {"csrf": self.csrf, **fields}
        self.answer = self.client.post(self.root + path, data=fields)
        assert self.answer.status_code == status, self.answer.text
        return self.answer.text

    def decide(self, action, name, status=200, **fields):
        """Decide on the new entity of this name."""
        return self.post(f"/decide/{action}", status, id=self.ids[name], **fields)

    def fields_of(self, page, action):
        """The hidden fields of the first form of a page with this action."""
        action = self.root + action
        form = re.search(rf'<form[^>]*action="{action}".*?</form>', page, re.S).group()
        pairs = re.findall(r'<input type="hidden" name="([^"]*)" value="([^"]*)"', form)
        return {name: unescape(value) for name, value in pairs}
