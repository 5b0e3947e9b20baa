"""What a command imports before it works."""

import subprocess
import sys

HEAVY = {"transformers", "spacy_transformers", "faiss", "numba", "sklearn", "scipy", "rich"}


def test_help_imports_nothing_heavy_beyond_spacy():
    code = (
        "import sys, spacy.cli\n"
        "before = set(sys.modules)\n"
        "import spacy_arbo_el.cli\n"
        "import typer; typer.main.get_command(spacy_arbo_el.cli.arbo_cli)\n"
        "print(*(set(sys.modules) - before))"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    imported = result.stdout.split()
    commands = ("spacy_arbo_el.cli", "spacy_arbo_el.contrib")
    others = [module for module in imported if not module.startswith(commands)]
    assert 0 < len(others) < 30, others
    assert not HEAVY & {module.split(".")[0] for module in imported}
    of_add_ons = [module for module in imported if module.startswith("spacy_arbo_el.contrib.")]
    # The folders themselves are imported with what is in them.
    inner = [one for one in of_add_ons if one.count(".") > 2 and not one.endswith(".errors")]
    assert not [one for one in inner if ".commands" not in one]
    assert "spacy_arbo_el.linker" not in imported
