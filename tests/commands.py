"""Commands in this process, as a user gives them."""

import io
import runpy
import sys
from contextlib import redirect_stdout

import pytest
from typer.testing import CliRunner

from spacy_arbo_el.cli import arbo_cli


def output(*arguments, code=0, **settings):
    """What ``arbo`` prints. code: The exit status that it must have."""
    result = CliRunner().invoke(arbo_cli, [str(argument) for argument in arguments], **settings)
    assert result.exit_code == code, (result.output, result.exception)
    return result.output


def run(*arguments, code=0, **settings):
    """As ``output``, on one line."""
    return " ".join(output(*arguments, code=code, **settings).split())


def run_script(path, *arguments):
    """What a script prints, run with its folder among the paths of imports."""
    printed = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(printed):
        patch.syspath_prepend(path.parent)
        patch.setattr(sys, "argv", [str(path), *arguments])
        runpy.run_path(str(path), run_name="__main__")
    return printed.getvalue()
