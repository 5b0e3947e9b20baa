"""Plugin: the ten tests that cost most CPU seconds. It reports them; no test fails by its time."""

import os

import pytest
from numba.core import event


def cpu_seconds() -> float:
    """Of this process and of those it has waited for."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


class Compiling(event.Listener):
    """CPU seconds in which Numba compiled, which the first caller of a function pays."""

    def __init__(self):
        self.seconds = 0.0
        self.starts = []

    def on_start(self, event):
        self.starts.append(cpu_seconds())

    def on_end(self, event):
        start = self.starts.pop()
        # What is compiled within is counted with what needs it.
        if not self.starts:
            self.seconds += cpu_seconds() - start


class Costs:
    """Prints the ten tests whose calls took most CPU seconds, and the sum of all.

    Fixtures, which tests share, are not counted, nor is compiling.
    """

    def __init__(self):
        self.costs = {}
        self.compiling = Compiling()
        event.register("numba:compile", self.compiling)

    def spent(self):
        return cpu_seconds() - self.compiling.seconds

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_call(self, item):
        before = self.spent()
        yield
        item.user_properties.append(("cpu", self.spent() - before))

    def pytest_runtest_logreport(self, report):
        if report.when == "call":
            self.costs[report.nodeid] = dict(report.user_properties).get("cpu", 0.0)

    def pytest_terminal_summary(self, terminalreporter):
        terminalreporter.section(f"ten dearest of {sum(self.costs.values()):.0f} CPU s in calls")
        for name in sorted(self.costs, key=self.costs.get, reverse=True)[:10]:
            terminalreporter.write_line(f"{self.costs[name]:6.1f} s {name}")
