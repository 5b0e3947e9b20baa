"""The command ``arbo serve``: review in browsers, service for programs."""

import os
import signal
from contextlib import ExitStack, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spacy.cli._util import Arg, Opt
from wasabi import msg

from ....cli._util import user_errors, visible
from ....cli.arguments import CODE, check_model, check_needs, open_model
from ....cli.documents import Reading, document_reader
from ..errors import ReviewMessages

if TYPE_CHECKING:
    from socket import socket

    from ..review import Review
    from ..serve.security import Rules

# A shorter token could be guessed.
LEAST = 16


TEXTS = Opt(
    None, "--texts", help="Documents whose links are reviewed too, as for `arbo link`"
)
HOST = Opt(
    "127.0.0.1", "--host", help="Address to listen on; by default this machine's"
)
PORT = Opt(
    8765, "--port", min=0, max=65535, help="Port to listen on; 0 for a free one"
)
NAME = Opt(os.environ.get("USER", ""), "--name", help="Your name", show_default=False)
TOKEN = Opt(
    "",
    "--token",
    envvar="ARBO_TOKEN",
    help="Secret that clients send; random by default",
)
URL = Opt("", "--url", help="Address that browsers use, if different (a proxy's)")
FOLLOWED = Opt(
    None,
    "--kb",
    help="Folder of a knowledge base to link with, whose edits by other programs are followed; "
    "with --read-only",
)
READ_ONLY = Opt(False, "--read-only", help="Show everything, change nothing")
ADOPT = Opt(
    False,
    "--adopt",
    help="Make decisions that a journal has for another state of the pipeline",
)
SPACE = Opt(
    "", "--space", help="URI that the ids of entities belong to, for OpenRefine"
)


def serve_command(
    model: Path = Arg(..., help="Folder of a pipeline with a linker"),
    texts: Path | None = TEXTS,
    host: str = HOST,
    port: int = PORT,
    name: str = NAME,
    token: str = TOKEN,
    url: str = URL,
    kb: Path | None = FOLLOWED,
    read_only: bool = READ_ONLY,
    adopt: bool = ADOPT,
    space: str = SPACE,
    code: Path | None = CODE,
) -> None:
    """Review in the browser, and link for programs.

    Each decision is in a journal beside the pipeline as soon as it is made. The pipeline itself is
    saved when you stop with Ctrl+C. Programs send the token in a header; the address /openapi.json
    describes what they can ask.

    \b
    Example:
      python -m spacy arbo serve MODEL --texts corpus.spacy
      python -m spacy arbo serve MODEL --read-only --host 0.0.0.0
      python -m spacy arbo serve MODEL --read-only --kb kb
    """
    with user_errors(), ExitStack() as stack:
        why = "without it, this server changes the entities itself"
        check_needs({"--kb": kb is not None and not read_only}, "--read-only", why)
        _check(model, token)
        from ....pipelines import changing_pipeline
        from ..decisions.journal import adopt as adopt_journal
        from ..review import Review
        from ..serve.app import create_app
        from ..serve.running import listening
        from ..serve.security import Rules, new_token

        bound = stack.enter_context(listening(host, port))
        rules = Rules(host, bound.getsockname()[1], token or new_token(), url)
        save = None
        if not read_only:
            owner = stack.enter_context(changing_pipeline(model))
            save = owner.save
            # What is served is what is locked, wherever a link leads by now.
            model = owner.path
            if adopt:
                adopt_journal(model)
        review = Review(open_model(model), model, read_only=read_only, save=save)
        if kb is not None:
            review.linker.set_kb(kb)
        review.linker.refresh()
        app = create_app(review, rules, _links(review, texts), name, space)
        _serve_pages(app, review, bound, rules, kb, token)


def _serve_pages(
    app: Any,
    review: "Review",
    bound: "socket",
    rules: "Rules",
    kb: Path | None,
    token: str,
) -> None:
    from ..serve.running import Following, run

    # A server that is told to stop saves while it answers what was asked before.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    following = (
        nullcontext() if kb is None else Following(app.state.service, kb).running()
    )
    with following, suppress(KeyboardInterrupt):
        run(app, bound, rules, lambda: _say(review, rules, token), review.save)
    review.save()
    if review.saved:
        msg.good(visible(f"{review.model}: saved with all decisions"))
        export = (
            f"python -m spacy arbo kb export {review.model} entities.csv --changed"
        )
        msg.info(visible(f"Your list with what was decided: {export}"))


def _check(model: Path, token: str) -> None:
    from ....records.lines import check_exists

    try:
        import uvicorn  # noqa: F401

        from ..serve import app  # noqa: F401
    except ModuleNotFoundError as error:
        raise ImportError(ReviewMessages.E910) from error
    if 0 < len(token) < LEAST:
        raise ReviewMessages.E919(least=LEAST)
    check_model(model)
    check_exists(model / "meta.json", "Give the folder of a pipeline.")


def _links(review: Any, texts: Path | None) -> Any | None:
    from ..links import LinkReview

    if texts is None:
        return None
    how = Reading("", "utf8", False)
    with document_reader(review.nlp, review.linker, texts, how) as read:
        return LinkReview(review.linker, list(read()))


def _say(review: Any, rules: Any, token: str) -> None:
    from ..serve.reconciliation import address
    from ..serve.security import LOOPBACK

    if rules.host not in (*LOOPBACK, "::1"):
        msg.warn(
            f"Every machine that reaches {rules.host or 'this one'} can ask this server, and "
            "others can read all of it: it speaks HTTP. Put a proxy with TLS before it, see "
            "SECURITY.md."
        )
    msg.good(f"{len(review.queue.rows)} new entities to review. Open this address:")
    # A given token, and all that is derived from it, is not for the log of a container.
    print(
        f"{rules.origins[0]}/?token={'$ARBO_TOKEN' if token else rules.token}",
        flush=True,
    )
    tables = "the page History has the address" if token else address(rules)
    print(f"For OpenRefine: {tables}", flush=True)
