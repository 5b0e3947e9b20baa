"""Commands in this process, as a user gives them."""

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
