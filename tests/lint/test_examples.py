"""The examples are short, and their README shows their sections of a config."""

import pytest

from ..project.test_examples import ENCODER, EXAMPLES, RERANKER


@pytest.mark.parametrize(
    ("name", "lines"), [("custom_reranker", 45), ("custom_encoder", 60), ("serve", 20)]
)
def test_example_is_short(name, lines):
    assert len((EXAMPLES / f"{name}.py").read_text(encoding="utf8").splitlines()) < lines


@pytest.mark.parametrize("section", [ENCODER, RERANKER.format(bonus=0.5)])
def test_readme_shows_the_section_of_the_config(section):
    assert section.strip() in (EXAMPLES / "README.md").read_text(encoding="utf8")
