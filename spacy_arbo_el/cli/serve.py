"""The command ``arbo serve``: review in browsers, service for programs."""

import os
import signal
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, Optional

from spacy.cli._util import Arg, Opt
from wasabi import msg

from ..errors import ArboError, Errors
from ._util import errors_for_people, visible
from .arguments import CODE, check_model, check_needs, open_model
from .documents import Reading, document_reader

WHY = "the decisions are on the mentions of its documents"

# A shorter token could be guessed.
LEAST = 16


def serve_command(
    # fmt: off
    model: Path = Arg(..., help="Folder of a pipeline with a linker"),
    new: Optional[Path] = Opt(None, "--new", help="JSONL file that `arbo discover` has written"),
    texts: Optional[Path] = Opt(
        None, "--texts", help="Documents whose links are reviewed too, as for `arbo link`"
    ),
    annotations: Optional[Path] = Opt(
        None,
        "--import",
        help="Import decisions on links from Prodigy (.jsonl) or Label Studio (.json)",
    ),
    host: str = Opt("127.0.0.1", "--host", help="Address to listen on; by default this machine's"),
    port: int = Opt(8765, "--port", min=0, max=65535, help="Port to listen on; 0 for a free one"),
    name: str = Opt(os.environ.get("USER", ""), "--name", help="Your name", show_default=False),
    token: str = Opt(
        "", "--token", envvar="ARBO_TOKEN", help="Secret that clients send; random by default"
    ),
    url: str = Opt("", "--url", help="Address that browsers use, if different (a proxy's)"),
    kb: Optional[Path] = Opt(
        None,
        "--kb",
        help="Folder of a knowledge base to link with, whose edits by other programs are followed; "
        "with --read-only",
    ),
    read_only: bool = Opt(False, "--read-only", help="Show everything, change nothing"),
    adopt: bool = Opt(
        False, "--adopt", help="Make decisions that a journal has for another state of the pipeline"
    ),
    space: str = Opt("", "--space", help="URI that the ids of entities belong to, for OpenRefine"),
    code: Optional[Path] = CODE,
    # fmt: on
) -> None:
    """Review in the browser, and link for programs.

    Each decision on new entities, links and the knowledge base is in a journal beside the pipeline
    as soon as it is made. The pipeline itself is saved when you stop with Ctrl+C. Programs send the
    token in a header; the address /openapi.json describes what they can ask.

    \b
    Example:
      python -m spacy arbo serve MODEL --new new.jsonl --texts corpus.spacy
      python -m spacy arbo serve MODEL --read-only --host 0.0.0.0
      python -m spacy arbo serve MODEL --read-only --kb kb
    """
    with errors_for_people(), ExitStack() as stack:
        try:
            import uvicorn  # noqa: F401  said here, before anything is loaded

            from ..serve.app import create_app
        except ModuleNotFoundError as error:
            raise ImportError(Errors.E910) from error
        from ..pipelines import changing_pipeline
        from ..serve.exchange import take_over
        from ..serve.following import Following
        from ..serve.journal import adopt as adopt_journal
        from ..serve.links import Links
        from ..serve.review import Review
        from ..serve.running import listening, run
        from ..serve.security import Rules, new_token
        from ..storage.lines import check_exists

        if 0 < len(token) < LEAST:
            raise ArboError(Errors.E919.format(least=LEAST))
        check_needs({"--import": annotations is not None and texts is None}, "--texts", WHY)
        follows = "its entities are edited by other programs"
        check_needs({"--kb": kb is not None and not read_only}, "--read-only", follows)
        check_model(model)
        check_exists(model / "meta.json", "Give the folder of a pipeline.")
        bound = stack.enter_context(listening(host, port))
        rules = Rules(host, bound.getsockname()[1], token or new_token(), url)
        save: Any = None
        if not read_only:
            save = stack.enter_context(changing_pipeline(model)).save
            if adopt:
                adopt_journal(model)
        nlp, links = open_model(model), None
        review = Review(nlp, model, new, read_only=read_only, save=save)
        if kb is not None:
            review.linker.set_kb(kb)
        review.linker.refresh()
        if texts is not None:
            how = Reading("", "", "utf8", False)
            with document_reader(nlp, review.linker, texts, how) as read:
                links = Links(review.linker, list(read()))
        if annotations is not None and links is not None:
            counts = take_over(review, links, annotations, name or annotations.name)
            said = ", ".join(f"{count} {what}" for what, count in counts.items())
            msg.good(visible(f"Decisions of {annotations}: {said}"))
        app = create_app(review, rules, links, name, space)
        if kb is not None:
            stack.enter_context(Following(app.state.service, kb).running())
        # A server that is told to stop saves while it answers what was asked before.
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        with suppress(KeyboardInterrupt):
            run(app, bound, rules, lambda: _say(review, rules, token), review.save)
        if review.unsaved:
            review.save()
        if save is not None and review.saved:
            msg.good(visible(f"{model}: saved with all decisions"))


def _say(review: Any, rules: Any, token: str) -> None:
    """Say where the server is. It listens already."""
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
    print(f"{rules.origins[0]}/?token={'$ARBO_TOKEN' if token else rules.token}", flush=True)
    tables = "the page History has the address" if token else address(rules)
    print(f"For OpenRefine: {tables}", flush=True)
