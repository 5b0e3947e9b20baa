"""The documentation says what the code does."""

import importlib.util
import re
from pathlib import Path

ROOT = Path(__file__).parent.parent


def test_the_picture_of_the_graph_is_what_its_script_draws():
    script = ROOT / "docs" / "graph_example.py"
    spec = importlib.util.spec_from_file_location("graph_example", script)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    drawn = script.with_suffix(".svg").read_text(encoding="utf8")
    assert module.picture() == drawn, "Run: python docs/graph_example.py"


def test_the_examples_on_the_graph_give_what_their_comments_say():
    text = (ROOT / "docs" / "graph.md").read_text(encoding="utf8")
    code = "\n".join(re.findall(r"```python\n(.*?)```", text, re.S))
    names = {}
    exec(code, names)
    promised = re.findall(r"^(\w+)\.(\w+) +# (\[.*\])", code, re.M)
    assert len(promised) == 5
    for name, field, value in promised:
        assert getattr(names[name], field).tolist() == eval(value)
