"""Counts of a service, in the text format of Prometheus."""

import threading
import time
from bisect import bisect_left
from collections import Counter
from itertools import accumulate
from typing import Any, Callable, Dict, Iterator, List, MutableMapping, Sequence, Tuple

from .security import own_path

# Upper bounds of the histogram, in seconds.
BOUNDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, float("inf"))
MEDIA_TYPE = "text/plain; version=0.0.4"


class Metrics:
    """ASGI middleware that counts requests by path and status. It counts their seconds too.

    app: The application.
    counts: Where they are counted.
    """

    def __init__(self, app: Callable, counts: "Counts") -> None:
        self.app, self.counts = app, counts

    async def __call__(self, scope: Dict[str, Any], receive: Callable, send: Callable) -> None:
        async def noted(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                self.counts.add_request(path, message["status"], time.monotonic() - start)
            await send(message)

        start, path = time.monotonic(), own_path(scope)
        await self.app(scope, receive, noted)


class Counts:
    """Counts of requests and mentions. Threads may call all methods.

    paths: The paths that are counted by themselves; all others are "other".
    """

    def __init__(self, paths: Sequence[str]) -> None:
        self.paths, self._lock = frozenset(paths), threading.Lock()
        self.requests: Counter[Tuple[str, int]] = Counter()
        self.buckets: Dict[str, List[int]] = {}
        self.seconds: Counter[str] = Counter()
        self.mentions: Counter[bool] = Counter()

    def add_request(self, path: str, status: int, seconds: float) -> None:
        """Count an answer."""
        path = path if path in self.paths else "other"
        with self._lock:
            self.requests[path, status] += 1
            self.buckets.setdefault(path, [0] * len(BOUNDS))[bisect_left(BOUNDS, seconds)] += 1
            self.seconds[path] += seconds  # type: ignore[assignment]

    def add_mentions(self, linked: int, unlinked: int) -> None:
        """Count mentions that were asked for. Those with a link, and the others."""
        with self._lock:
            self.mentions.update({True: linked, False: unlinked})

    def text(self, entities: int) -> str:
        """All counts. entities: How many the knowledge base has."""
        with self._lock:
            return "".join(f"{line}\n" for line in self._lines(entities))

    def _lines(self, entities: int) -> Iterator[str]:
        yield "# TYPE arbo_entities gauge"
        yield f"arbo_entities {entities}"
        yield "# TYPE arbo_mentions_total counter"
        for linked in (True, False):
            yield f'arbo_mentions_total{{linked="{linked}"}} {self.mentions[linked]}'.lower()
        yield "# TYPE arbo_requests_total counter"
        for (path, status), count in sorted(self.requests.items()):
            yield f'arbo_requests_total{{path="{path}",status="{status}"}} {count}'
        yield "# TYPE arbo_request_seconds histogram"
        for path, counts in sorted(self.buckets.items()):
            for bound, count in zip(BOUNDS, accumulate(counts)):
                le = "+Inf" if bound == BOUNDS[-1] else bound
                yield f'arbo_request_seconds_bucket{{path="{path}",le="{le}"}} {count}'
            yield f'arbo_request_seconds_sum{{path="{path}"}} {self.seconds[path]:.6f}'
            yield f'arbo_request_seconds_count{{path="{path}"}} {sum(counts)}'
