"""Link with a saved pipeline, also in shards, in a process in which torch is not installed.

    python -m tests.contrib.scale.without_torch MODEL CORPUS OUTPUT, prints the links as JSON

It links each document for itself into OUTPUT/each, and all in one graph into OUTPUT/graph.

Thinc imports torch wherever it is installed. So the import of torch, and of what needs it, fails
here as it does where it isn't.
"""

import importlib.metadata
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
    version = importlib.metadata.version

    def version_without_hidden(name: str) -> str:
        if name in HIDDEN:
            raise importlib.metadata.PackageNotFoundError(name)
        return version(name)

    importlib.metadata.version = version_without_hidden
    model, corpus, output = sys.argv[1:]
    import spacy

    from spacy_arbo_el import links_to_dicts
    from spacy_arbo_el.contrib.scale.job import Job
    from spacy_arbo_el.contrib.scale.on_ray import RaySettings, prepare
    from spacy_arbo_el.contrib.scale.runs import link_in_shards
    from spacy_arbo_el.corpora.read import read_documents

    nlp = spacy.load(model)
    links = links_to_dicts(nlp.pipe(read_documents(corpus, nlp)))
    # Nor does exact search need FAISS.
    loaded = [name for name in (*HIDDEN, "faiss") if name in sys.modules]
    prepare(RaySettings())
    for name, one_graph in (("each", False), ("graph", True)):
        settings = {"one_graph": one_graph, "format": "jsonl", "size": 5}
        job = Job.of(model, corpus, f"{output}/{name}", **settings)
        list(link_in_shards(job))
    loaded += [name for name in HIDDEN if name in sys.modules]
    answer = {"links": links, "loaded": loaded, "versions": sorted(job.versions)}
    json.dump(answer, sys.stdout)


if __name__ == "__main__":
    main()
