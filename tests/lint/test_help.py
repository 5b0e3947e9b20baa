"""Help: short first sentences, an example for every command, and short functions."""

import re

import pytest
import typer

from spacy_arbo_el.cli import arbo_cli


def commands(group=None, path=()):
    group = group or typer.main.get_command(arbo_cli)
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, (*path, name))
        else:
            yield " ".join((*path, name)), command


COMMANDS = dict(commands())


@pytest.mark.parametrize("name", COMMANDS)
def test_first_sentence_of_the_help_fits_on_a_line(name):
    first, _, rest = COMMANDS[name].help.partition("\n")
    assert first.endswith(".") and len(first) < 50, first
    assert ". " not in first and (not rest or rest.startswith("\n"))


@pytest.mark.parametrize("name", COMMANDS)
def test_help_has_an_example_with_existing_options(name):
    command = COMMANDS[name]
    _, example = command.help.replace("\\\n", " ").split("\b\nExample:\n")
    lines = example.strip().split("\n")
    assert lines
    options = {option for parameter in command.params for option in parameter.opts}
    required = sum(p.param_type_name == "argument" and p.required for p in command.params)
    for line in lines:
        words = line.strip().split(f"python -m spacy arbo {name} ")
        assert words[0] == "" and len(words) == 2, line
        given = set(re.findall(r"(?<!\S)--?[a-z][a-z-]*(?!\S)", words[1]))
        assert given <= options, (line, given - options)
        values = re.sub(r"(?<!\S)--?[a-z.-]+ (\"[^\"]*\"|\S+)", "", words[1]).split()
        assert len(values) >= required, line


def test_order_is_model_then_data_and_the_result_is_called_output():
    for name, command in COMMANDS.items():
        arguments = [p.name for p in command.params if p.param_type_name == "argument"]
        if {"model", "models"} & set(arguments) and "path" not in arguments:
            assert arguments[0] in ("model", "models"), name
        opts = {option for parameter in command.params for option in parameter.opts}
        assert "--out" not in opts and ("-o" not in opts or "--output" in opts), name


def test_commands_that_load_a_pipeline_import_code():
    for name, command in COMMANDS.items():
        loads = {"model", "models", "config"} & {parameter.name for parameter in command.params}
        if loads and name != "new list":
            assert any("--code" in parameter.opts for parameter in command.params), name
