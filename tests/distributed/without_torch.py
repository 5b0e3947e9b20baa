"""Link in shards in a process in which torch is not installed.

    python -m tests.distributed.without_torch MODEL CORPUS OUTPUT, prints what was imported as JSON

It links each document for itself into OUTPUT/each, and all in one graph into OUTPUT/graph.
"""

import importlib.metadata
import json
import sys

from ..linker.without_torch import HIDDEN, hide


def main() -> None:
    hide()
    version = importlib.metadata.version

    def version_without_hidden(name: str) -> str:
        if name in HIDDEN:
            raise importlib.metadata.PackageNotFoundError(name)
        return version(name)

    importlib.metadata.version = version_without_hidden
    from spacy_arbo_el import Job, link_in_shards
    from spacy_arbo_el.distributed.on_ray import RaySettings, prepare

    prepare(RaySettings())
    model, corpus, output = sys.argv[1:]
    for name, one_graph in (("each", False), ("graph", True)):
        settings = {"one_graph": one_graph, "format": "jsonl", "size": 5}
        job = Job.of(model, corpus, f"{output}/{name}", **settings)
        list(link_in_shards(job))
    loaded = [name for name in HIDDEN if name in sys.modules]
    json.dump({"loaded": loaded, "versions": sorted(job.versions)}, sys.stdout)


if __name__ == "__main__":
    main()
