"""Counts of a service, in the text format of Prometheus."""

import time
from collections.abc import Callable
from typing import Any

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    generate_latest,
)

from .security import RECONCILE, at_start, own_path

# Upper bounds of the histogram, in seconds.
BOUNDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
MEDIA_TYPE = "text/plain; version=0.0.4"


class Metrics:
    """ASGI middleware that counts requests by path and status. It counts their seconds too."""

    def __init__(self, app: Callable, counts: "Counts") -> None:
        self.app = app
        self.counts = counts

    async def __call__(
        self, scope: dict[str, Any], receive: Callable, send: Callable
    ) -> None:
        begun = time.monotonic()
        path = own_path(scope)
        noted = at_start(
            send,
            lambda start: self.counts.add_request(
                path, start["status"], time.monotonic() - begun
            ),
        )
        await self.app(scope, receive, noted)


class Counts:
    """Counts of requests and mentions. Threads may call all methods.

    paths: The paths that are counted by themselves. Others are "reconcile", or "pages".
    """

    paths: frozenset[str] = frozenset()

    def __init__(self) -> None:
        registry = CollectorRegistry()
        self.registry = registry
        self.entities = Gauge(
            "arbo_entities", "Entities of the knowledge base", registry=registry
        )
        self.mentions = Counter(
            "arbo_mentions",
            "Mentions that were asked for, by whether they have a link",
            ["linked"],
            registry=registry,
        )
        self.requests = Counter(
            "arbo_requests",
            "Answers by path and status",
            ["path", "status"],
            registry=registry,
        )
        self.seconds = Histogram(
            "arbo_request_seconds",
            "Time to the answer",
            ["path"],
            buckets=BOUNDS,
            registry=registry,
        )

    def add_request(self, path: str, status: int, seconds: float) -> None:
        """Count an answer."""
        if path not in self.paths:
            path = "reconcile" if path.startswith(RECONCILE) else "pages"
        self.requests.labels(path, str(status)).inc()
        self.seconds.labels(path).observe(seconds)

    def add_mentions(self, linked: int, unlinked: int) -> None:
        """Count mentions that were asked for. Those with a link, and the others."""
        self.mentions.labels("true").inc(linked)
        self.mentions.labels("false").inc(unlinked)

    def text(self, entities: int) -> str:
        """All counts. entities: How many the knowledge base has."""
        self.entities.set(entities)
        return generate_latest(self.registry).decode("utf8")
