"""The documentation and the help agree with the code: examples, commands, recipes, links."""

import ast
import csv
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import srsly
import typer
from spacy.util import import_file, load_model_from_config
from thinc.api import Config

import spacy_arbo_el
from spacy_arbo_el import ArboKB, ArboLinker, Entity, Link, NewEntities, find_linker
from spacy_arbo_el.base.errors import Errors, Warnings
from spacy_arbo_el.cli import arbo_cli
from spacy_arbo_el.config_sources import read_partial

from ..commands import run
from ..linker.conftest import build
from ..linker.world import unlinked_doc

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    [
        *ROOT.glob("*.md"),
        *ROOT.glob("docs/*.md"),
        *(ROOT / folder / "README.md" for folder in ("assets", "examples", "experiments", "tests")),
    ]
)
SUFFIXES = [str(page.relative_to(ROOT)) for page in PAGES]
each_page = pytest.mark.parametrize("page", PAGES, ids=SUFFIXES)


def read(page):
    return page.read_text(encoding="utf8")


README = read(ROOT / "README.md")
LINK_CELLS = ("document", "text", "kb_id", "title", "score")


def blocks(page, language):
    return re.findall(rf"```{language}\n(.*?)```", read(page), re.S)


def test_each_code_stands_for_one_message():
    sources = "\n".join(map(read, (ROOT / "spacy_arbo_el").rglob("errors.py")))
    codes = re.findall(r"^    ([EW]\d+) = ", sources, re.M)
    assert len(codes) > 100
    assert sorted(codes) == sorted(set(codes))


def test_examples_on_the_graph_give_what_their_comments_say():
    each = blocks(ROOT / "docs" / "graph.md", "python")
    code = "\n".join(block for block in each if "graph." in block)
    names = {}
    exec(code, names)
    promised = re.findall(r"^([\w.]+) +# (\[.*\])", code, re.M)
    assert len(promised) == 4
    for name, value in promised:
        assert eval(name, names).tolist() == eval(value)


def test_promises_name_tests_that_exist():
    sources = "\n".join(map(read, (ROOT / "tests").rglob("test_*.py")))
    pages = map(read, (ROOT / "SECURITY.md", ROOT / "docs" / "service.md"))
    named = re.findall(r"`(test_\w+)`", "\n".join(pages))
    assert len(named) >= 3
    for name in named:
        assert f"def {name}(" in sources, name


@each_page
def test_links_lead_to_existing_files_and_headings(page):
    for target, anchor in re.findall(r"\]\((?!https?:)([^)#]*)#?([^)]*)\)", read(page)):
        path = page.parent / target if target else page
        assert path.exists(), target
        if anchor:
            headings = re.findall(r"^#+ (.+)$", read(path), re.M)
            slugs = {
                re.sub(r"\s+", "-", re.sub(r"[^\w\s-]", "", one).strip().lower())
                for one in headings
            }
            assert anchor in slugs, (target, anchor)


@each_page
def test_python_code_uses_existing_names(page):
    for code in blocks(page, "python"):
        ast.parse(code)
        for method in re.findall(r"\blinker\.(\w+)", code):
            assert hasattr(ArboLinker, method), method
        for method in re.findall(r"\bnew_entities\.(\w+)", code):
            assert hasattr(NewEntities, method) or hasattr(NewEntities(), method), method
        for names in re.findall(r"^from spacy_arbo_el import (.+)$", code, re.M):
            assert all(hasattr(spacy_arbo_el, name) for name in names.split(", ")), names
    for name in re.findall(r"`spacy_arbo_el\.(\w+)", read(page)):
        assert hasattr(spacy_arbo_el, name) or (ROOT / "spacy_arbo_el" / name).exists(), name


@each_page
def test_sections_of_configs_are_valid(page):
    for name in ("custom_reranker", "custom_encoder"):
        import_file(name, ROOT / "examples" / f"{name}.py")
    nlp = {"lang": "en", "pipeline": ["arbo_linker"]}
    base = Config({"nlp": nlp, "components": {"arbo_linker": {"factory": "arbo_linker"}}})
    for text in blocks(page, "ini"):
        components = read_partial(text).get("components", {})
        if "arbo_linker" in components:
            own = Config({"components": {"arbo_linker": components["arbo_linker"]}})
            load_model_from_config(base.merge(own), auto_fill=True)


@each_page
def test_commands_and_their_options_exist(page):
    for line in re.findall(r"python -m spacy arbo ([a-z][^`\n]*)", read(page)):
        command = typer.main.get_command(arbo_cli)
        words = line.split("#")[0].split()
        while hasattr(command, "commands"):
            assert words[0] in command.commands, line
            command = command.commands[words.pop(0)]
        options = {option for parameter in command.params for option in parameter.opts}
        given = {word for word in words if re.fullmatch("--?[a-z-]+", word)}
        # Options with a dot are settings of the config.
        assert given <= options, (line, given - options)


def test_the_table_of_a_link_has_all_that_it_has():
    section = read(ROOT / "docs" / "linking.md").split("## `Span._.arbo`")[1].split("\n## ")[0]
    public = {name for name in (*vars(Link), *Link.__annotations__) if not name.startswith("_")}
    # What stores a link on its Doc is for the package alone.
    public -= {"to_data", "from_data"}
    assert {name.strip("()") for name in re.findall(r"^\| `([^`]+)`", section, re.M)} == public


NOT_RUN = re.compile(r"<!-- not run: .+ -->\n```python\n.*?```\n", re.S)
RUNNING = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


# Ids of entities in examples, which look like codes of errors.
DEMO_IDS = {f"E{number:03}" for number in range(1, 130)}


def discovery_examples():
    """What docs/discovery.md takes as given: a pipeline, documents, and ids of new entities."""
    nlp = build([Entity("E003", "Oslo", "capital of Norway")], train=[], threshold=0.999)
    counts = {"Zorblax": 6, "Quimbly": 5, "the Fentrop river": 4, "Mardle-7": 3}

    def docs():
        marked = [f"Report {i} is on [{name}|x]." for name in counts for i in range(counts[name])]
        return [unlinked_doc(nlp, text) for text in marked]

    found = find_linker(nlp).corpus.discover(docs())
    ids = {found[key].name: key for key in found.ids}
    assert set(ids) == set(counts)
    a, b, c, d = (ids[name] for name in counts)
    given = {"docs": docs(), "more_docs": docs(), "texts": ["Report 9."]}
    return {"nlp": nlp, **given, "a": a, "b": b, "c": c, "d": d}


@pytest.mark.slow
@pytest.mark.parametrize("page", RUNNING, ids=[str(page.relative_to(ROOT)) for page in RUNNING])
def test_python_examples_run_from_top_to_bottom(page, tmp_path, monkeypatch):
    """In one namespace, in an empty folder. `<!-- not run: why -->` leaves the next block out."""
    monkeypatch.chdir(tmp_path)
    code = "\n".join(re.findall(r"```python\n(.*?)```", NOT_RUN.sub("", read(page)), re.S))
    names = discovery_examples() if page.name == "discovery.md" else {}
    exec(compile(code, f"<code of {page.name}>", "exec"), names)


def test_entry_for_the_universe_is_complete_and_its_example_runs(capsys):
    entry = srsly.read_json(ROOT / "docs" / "universe.json")
    required = {"id", "title", "slogan", "description", "pip", "code_example", "author", "category"}
    assert required <= set(entry)
    exec("\n".join(entry["code_example"]), {})
    assert "myocardial infarct D009203" in capsys.readouterr().out


def test_readme_example_prints_what_the_readme_shows(capsys):
    exec("\n".join(blocks(ROOT / "README.md", "python")), {})
    printed = capsys.readouterr().out.split()
    shown = blocks(ROOT / "README.md", "text")[0].split()
    assert len(printed) == len(shown)
    for word, shown_word in zip(printed, shown):
        # Probabilities differ a little between CPUs.
        same = (
            abs(float(word) - float(shown_word)) < 0.1
            if re.fullmatch(r"\d\.\d+", shown_word)
            else word == shown_word
        )
        assert same, (word, shown_word)


def test_the_readmes_first_command_gives_the_table_that_it_shows(tmp_path):
    jobs = ROOT / "examples" / "jobs"
    assert blocks(ROOT / "README.md", "csv") == [read(jobs / "firms.csv")]
    run("link", jobs / "firms.csv", jobs / "news", "--output", tmp_path / "links.csv")
    shown = re.findall(r"^\| (\w+\.txt) \| (.+?) \| (.+?) \| (.+?) \| ([\d.]+) \|", README, re.M)
    with (tmp_path / "links.csv").open(encoding="utf8", newline="") as file:
        rows = [tuple(row[key] for key in LINK_CELLS) for row in csv.DictReader(file)]
    assert [row[:-1] for row in rows] == [row[:-1] for row in shown]
    assert [float(row[-1]) for row in rows] == pytest.approx(
        [float(row[-1]) for row in shown], abs=0.1
    )


def test_every_page_is_in_the_navigation():
    navigation = read(ROOT / "mkdocs.yml")
    pages = sorted((ROOT / "docs").glob("*.md"))
    assert len(pages) == 17
    for page in pages:
        assert f": docs/{page.name}\n" in navigation, page.name
        assert f"(docs/{page.name})" in README, page.name


def test_error_codes_on_pages_exist():
    for page in PAGES:
        for code in re.findall(r"\b[EW][0-7]\d\d\b", read(page)):
            assert hasattr(Warnings if code[0] == "W" else Errors, code) or code in DEMO_IDS, code


def test_python_api_has_every_public_name():
    assert all(hasattr(spacy_arbo_el, name) for name in spacy_arbo_el.__all__)
    page = read(ROOT / "docs" / "reference.md")
    listed = {place.rsplit(".", 1)[1] for place in re.findall(r"^::: (\S+)", page, re.M)}
    assert listed == set(spacy_arbo_el.__all__) - {"__version__"}


@pytest.mark.slow
def test_site_builds_without_a_warning(tmp_path):
    pytest.importorskip("mkdocs")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-q", "-d", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "ArboLinker" in read(tmp_path / "docs" / "reference" / "index.html")


def packages_in_order():
    table = read(ROOT / "ARCHITECTURE.md").split("## The packages")[1].split("Outside")[0]
    return re.findall(r"^\| `(\w+)/`", table, re.M)


def test_architecture_names_all_packages():
    folders = {path.parent.name for path in (ROOT / "spacy_arbo_el").glob("*/__init__.py")}
    assert set(packages_in_order()) == folders


@pytest.mark.slow
def test_inference_procedure_of_the_architecture_links():
    names = {}
    exec("\n".join(blocks(ROOT / "ARCHITECTURE.md", "python")), names)
    nlp = build()
    text = "[Mercury|planet] is a planet. The probe circles the planet [Mercury|planet] at dawn."
    find_linker(nlp).inference = names["OneSensePerDocument"]()
    first, second = nlp(unlinked_doc(nlp, text)).ents
    assert first.kb_id_ == "planet"
    assert second.kb_id_ == "planet"
    assert first._.arbo.score == second._.arbo.score
    assert {len(first._.arbo.evidence), len(second._.arbo.evidence)} <= {2, 3, 4}
    assert find_linker(nlp).corpus.link([nlp.make_doc("Nothing.")])


def commands(group=None, path=()):
    group = group or typer.main.get_command(arbo_cli)
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, (*path, name))
        else:
            yield " ".join((*path, name)), command


COMMANDS = dict(commands())


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
        assert words[0] == "", line
        assert len(words) == 2, line
        given = set(re.findall(r"(?<!\S)--?[a-z][a-z-]*(?!\S)", words[1]))
        assert given <= options, (line, given - options)
        values = re.sub(r"(?<!\S)--?[a-z.-]+ (\"[^\"]*\"|\S+)", "", words[1]).split()
        assert len(values) >= required, line


def test_commands_that_load_a_pipeline_import_code():
    for name, command in COMMANDS.items():
        loads = {"model", "models", "config"} & {parameter.name for parameter in command.params}
        if loads and name != "new list":
            assert any("--code" in parameter.opts for parameter in command.params), name


DATA = ROOT / "tests" / "data" / "recipes"
PAGE = (ROOT / "docs" / "knowledge_base.md").read_text(encoding="utf8")
LINES = PAGE.partition("Recipes for")[2].partition("```\n")[2].partition("```")[0].splitlines()
READER = re.search(r"```python\n(.*?mesh.*?)```", PAGE, re.S)[1]
RECIPES = [line.split()[6:] for line in LINES if line.startswith("python -m spacy arbo kb")]


@pytest.mark.parametrize("arguments", RECIPES, ids=[command[0] for command in RECIPES])
def test_recipes(arguments, tmp_path, monkeypatch):
    source = arguments[0]
    if source == "META":
        pytest.skip("read in test_golden_files.py")
    if source.endswith(".ttl"):
        pytest.importorskip("rdflib")
    monkeypatch.chdir(tmp_path)
    shutil.copytree(DATA, tmp_path, dirs_exist_ok=True)
    Path("readers.py").write_text(READER)
    Path("experiments").mkdir()
    shutil.copy(ROOT / "experiments" / "readers.py", "experiments")
    for line in LINES:
        if line.startswith("cut "):
            subprocess.run(line, shell=True, check=True)
    options = [argument.strip('"') for argument in arguments]
    run("kb", "build", *options)
    kb = ArboKB.for_reading(tmp_path / "kb")
    expected = json.loads((DATA / "expected.json").read_text("utf8"))
    assert {entity.id: entity.names for entity in kb} == expected[source]
