"""What pyproject.toml promises of Python agrees with what the installed requirements need."""

import re
import sys
from pathlib import Path

import spacy
import srsly
from packaging.specifiers import SpecifierSet
from spacy.cli.package import generate_readme

from spacy_arbo_el.runs.evaluation import describe

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[2]


def project():
    return tomllib.loads((ROOT / "pyproject.toml").read_text("utf8"))


def promised():
    """The versions of Python among the classifiers."""
    classifiers = "\n".join(project()["project"]["classifiers"])
    versions = re.findall(r"Python :: (3\.\d+)$", classifiers, re.M)
    assert versions
    return versions


def test_classifiers_are_the_versions_that_can_be_installed():
    allowed = SpecifierSet(project()["project"]["requires-python"])
    assert [f"3.{n}" for n in range(6, 20) if f"3.{n}.0" in allowed] == promised()


def test_all_files_of_the_package_are_in_the_wheel():
    package = ROOT / "spacy_arbo_el"
    patterns = project()["tool"]["setuptools"]["package-data"]["spacy_arbo_el"]
    packed = {path for pattern in patterns for path in package.glob(pattern)}
    for path in package.rglob("*.*"):
        if path.is_file() and path.suffix != ".py" and path.parent.name != "__pycache__":
            assert path in packed


def test_workflows_run_the_same_commands_as_people():
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text("utf8"), re.M))
    workflows = ROOT / ".github" / "workflows"
    texts = [path.read_text("utf8") for path in workflows.glob("*.yml")]
    used = set(re.findall(r"run: make (\w+)", "\n".join(texts)))
    assert used >= {"test", "lint", "demo", "dist"}
    assert used <= targets
    tested = srsly.read_yaml(workflows / "test.yml")["jobs"]["test"]
    assert tested["strategy"]["matrix"]["python"] == promised()


def test_the_model_card_says_what_the_scores_are_of():
    nlp = spacy.blank("en")
    describe(nlp)
    nlp.meta["performance"] = {"arbo_acc": 0.875}
    card = generate_readme(nlp.meta)
    assert "Links mentions" in card
    assert "87.50" in card
    assert "fitted on other parts" in card
    nlp.meta["description"] = "Mine."
    describe(nlp)
    assert nlp.meta["description"] == "Mine.", "what people have written stays"
