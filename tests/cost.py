"""Plugin: what each test costs in CPU seconds; one that costs much has to say so."""

import os

import pytest
from numba.core import event

# The aim is 2 CPU seconds; on a slow or busy machine a test takes up to twice as many.
LIMIT = 4.0
DEAR = ("slow", "bundled", "attack")


def cpu_seconds() -> float:
    """Of this process and of those it has waited for."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


class Compiling(event.Listener):
    """CPU seconds in which Numba compiled, which the first caller of a function pays."""

    def __init__(self):
        self.seconds, self.starts = 0.0, []

    def on_start(self, event):
        self.starts.append(cpu_seconds())

    def on_end(self, event):
        start = self.starts.pop()
        # What is compiled within is counted with what needs it.
        if not self.starts:
            self.seconds += cpu_seconds() - start


class Costs:
    """Fails tests above ``LIMIT`` without a mark of ``DEAR``, and prints the ten dearest.

    Only the call is counted: fixtures, which tests share, are not, nor is compiling.

    is_limited: Whether there is a limit. Tests on more inputs than usual take as long as they do.
    """

    def __init__(self, is_limited=True):
        self.is_limited, self.costs = is_limited, {}
        self.compiling = Compiling()
        event.register("numba:compile", self.compiling)

    def spent(self):
        return cpu_seconds() - self.compiling.seconds

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_call(self, item):
        before = self.spent()
        outcome = yield
        cost = self.spent() - before
        item.user_properties.append(("cpu", cost))
        if (
            self.is_limited
            and outcome.excinfo is None
            and cost > LIMIT
            and not any(item.get_closest_marker(mark) for mark in DEAR)
        ):
            outcome.force_exception(
                pytest.fail.Exception(f"{cost:.1f} CPU s without a mark of {', '.join(DEAR)}")
            )

    def pytest_runtest_logreport(self, report):
        if report.when == "call":
            self.costs[report.nodeid] = dict(report.user_properties).get("cpu", 0.0)

    def pytest_terminal_summary(self, terminalreporter):
        terminalreporter.section(f"ten dearest of {sum(self.costs.values()):.0f} CPU s in calls")
        for name in sorted(self.costs, key=self.costs.get, reverse=True)[:10]:
            terminalreporter.write_line(f"{self.costs[name]:6.1f} s {name}")
