"""Link with a saved pipeline in a process in which torch is not installed.

    python -m tests.linker.without_torch MODEL < texts, prints the links as JSON

Thinc imports torch wherever it is installed. So the import of torch, and of what needs it, fails
here as it does where it isn't.
"""

import json
import sys
from importlib.metadata import EntryPoint

HIDDEN = ("torch", "transformers", "spacy_transformers", "cupy")


class Hidden:
    """An importer before all others that finds no torch."""

    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in HIDDEN:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def hide() -> None:
    sys.meta_path.insert(0, Hidden())
    load = EntryPoint.load
    # The entry points of a package that is not installed aren't there either.
    EntryPoint.load = lambda point: None if point.value.split(".")[0] in HIDDEN else load(point)


def main() -> None:
    hide()
    import spacy

    nlp = spacy.load(sys.argv[1])
    answer = []
    for text, spans in json.load(sys.stdin):
        doc = nlp.make_doc(text)
        doc.ents = [doc.char_span(start, end, label="THING") for start, end in spans]
        doc = nlp.get_pipe("arbo_linker")(doc)
        answer.append([(ent.kb_id_, round(ent._.arbo.score, 4)) for ent in doc.ents])
    # Nor does exact search need FAISS.
    loaded = [name for name in (*HIDDEN, "faiss") if name in sys.modules]
    json.dump({"links": answer, "loaded": loaded}, sys.stdout)


if __name__ == "__main__":
    main()
