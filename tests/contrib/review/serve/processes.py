"""``arbo serve`` as a process, also as a container runs it."""

import os
import select
import signal
import subprocess
import sys

import httpx
from thinc.api import require_cpu
from typer.main import get_command

from spacy_arbo_el.cli import arbo_cli

from ....threads import PATIENCE
from .world import free_port

TOKEN = "0123456789abcdef"
NOBODY = "65534"
# Nothing can be written but in an empty temporary folder.
READ_ONLY = 'mount -o remount,bind,ro / && mount -t tmpfs -o mode=1777 none "$0" && exec "$@"'
# Files of the tests may be another user's: reading is allowed whatever their modes.
USER = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--no-new-privs"]
USER += ["--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search"]


def confined(command, temporary):
    """The command as examples/Dockerfile runs it, without a container. It needs root."""
    return ["unshare", "--mount", "sh", "-c", READ_ONLY, str(temporary), *USER, *command]


def can_confine():
    """Whether this machine lets us run a command so."""
    try:
        return subprocess.run(confined(["true"], "/mnt"), capture_output=True).returncode == 0
    except OSError:
        return False


class ForkedServe:
    """``arbo serve`` in a forked process, which starts faster than a new one.

    Has what tests need of ``subprocess.Popen``.
    """

    def __init__(self, *arguments, **environment):
        reading, writing = os.pipe()
        self.pid = os.fork()
        if not self.pid:  # pragma: no cover - another process
            code = 1
            try:
                os.environ.update(environment)
                # There is no CUDA in a forked process.
                require_cpu()
                os.dup2(writing, 1)
                sys.stdout = os.fdopen(1, "w", buffering=1, encoding="utf8", closefd=False)
                get_command(arbo_cli).main(["serve", *map(str, arguments)])
            except SystemExit as end:
                code = end.code or 0
            finally:
                sys.stdout.flush()
                os._exit(code)
        os.close(writing)
        self.stdout = os.fdopen(reading, encoding="utf8")

    def send_signal(self, how):
        os.kill(self.pid, how)

    def communicate(self, timeout):
        """What it prints until its end."""
        is_over = select.select([self.stdout], [], [], timeout)[0]
        assert is_over, f"waited for {timeout:.0f} s: the end of arbo serve, or what it says of it"
        printed = self.stdout.read()
        self.returncode = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return printed, None


def stop(process, how):
    """RETURNS: What it has printed since, on one line, and its status."""
    process.send_signal(how)
    printed = process.communicate(timeout=PATIENCE)[0]
    # A line is broken where it is longer than the terminal is wide.
    return " ".join(printed.split()), process.returncode


class Served:
    """A server of a pipeline, and a client with its token.

    options: Of the command. temporary: An empty folder, which makes it ``confined``.
    """

    def __init__(self, model, *options, temporary=None):
        port = str(free_port())
        arguments = [str(model), "--port", port, *options]
        if temporary is None:
            self.process = ForkedServe(*arguments, ARBO_TOKEN=TOKEN)
        else:
            command = [sys.executable, "-m", "spacy", "arbo", "serve", *arguments]
            own = {**os.environ, "ARBO_TOKEN": TOKEN, "HOME": "/", "TMPDIR": str(temporary)}
            command = confined(command, temporary)
            self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=own)
        self.address = f"http://127.0.0.1:{port}"
        self.printed = next((line for line in self.process.stdout if line.startswith("http")), "")
        assert self.printed, "the server has not started"
        self.client = self.new_client()

    def new_client(self, **settings):
        """A program that knows the token."""
        headers = {"Authorization": f"Bearer {TOKEN}"}
        transport = httpx.HTTPTransport(retries=10)
        settings = {"base_url": self.address, "headers": headers, "timeout": PATIENCE, **settings}
        return httpx.Client(transport=transport, **settings)

    def link(self, texts, client=None):
        """The ids of the mentions of each text."""
        body = {"documents": [{"text": text} for text in texts]}
        answer = (client or self.client).post("/link", json=body)
        assert answer.status_code == 200, answer.text
        return [[one["kb_id"] for one in each["mentions"]] for each in answer.json()["documents"]]

    def stop(self, how=signal.SIGTERM):
        self.client.close()
        return stop(self.process, how)
