"""The core stands without the papers."""

from pathlib import Path

import spacy_arbo_el

PACKAGE = Path(spacy_arbo_el.__file__).parent


def test_no_other_package_imports_the_papers():
    files = [path for path in PACKAGE.rglob("*.py") if path.parent.name != "papers"]
    lines = [line for path in files for line in path.read_text(encoding="utf8").splitlines()]
    imports = [line for line in lines if line.lstrip().startswith(("from ", "import "))]
    assert imports and not [line for line in imports if ".papers" in line]


def test_each_paper_says_in_ten_lines_what_it_has():
    for path in sorted(PACKAGE.glob("papers/*.py")):
        lines = path.read_text(encoding="utf8").splitlines()
        end = next(i for i, line in enumerate(lines) if line.endswith('"""'))
        assert lines[0].startswith('"""') and end <= 10, path.name
