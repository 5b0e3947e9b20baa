"""The label sets of VERBALIZED's experiments: Wikipedia titles of ZELDA's splits and of FB15k.

    python wikipedia_labels.py DATA_DIR OUT

``OUT/entities.jsonl`` has all labels: the titles that the splits link to, and the articles of
FB15k-237's Wikidata with their descriptions and alternative names. ``OUT/<split>.txt`` has the
titles of a split, one per line, and ``OUT/splits.txt`` those of all splits: files for
``labels.py``.

The entities are in an order by hash. With those of the splits first, a linker that takes the first
of equal names would be right more often than it knows.
"""

import sys
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

from readers import Fb15k, ZeldaTitles

from spacy_arbo_el.kb.entity import Entity
from spacy_arbo_el.kb.importers import write_entities_jsonl
from spacy_arbo_el.storage.files import write_file

SPLITS = ("tweeki", "reddit-posts", "wned-wiki")


def main(data: Path, out: Path) -> None:
    out.mkdir(parents=True, exist_ok=True)
    labels: dict[str, Entity] = {}
    titles: dict[str, None] = {}
    for split in SPLITS:
        entities = {
            one.id: one
            for one in ZeldaTitles().read(data / "zelda" / f"test_{split}.jsonl")
        }
        write_file(
            out / f"{split}.txt",
            "".join(f"{one}\n" for one in entities).encode("utf8"),
        )
        titles.update(dict.fromkeys(entities))
        labels = {**entities, **labels}
    write_file(
        out / "splits.txt", "".join(f"{one}\n" for one in titles).encode("utf8")
    )
    for entity in Fb15k().read(data / "wikidata_fb15k" / "entity2wikidata.json"):
        # The last of its ids is the title of its article, where it has one.
        if len(entity.meta["ids"]) > 2:
            title = entity.meta["ids"][-1]
            labels[title] = replace(entity, id=title, title=title, meta={})
    shuffled = sorted(
        labels.values(), key=lambda one: sha256(one.id.encode()).digest()
    )
    count = write_entities_jsonl(shuffled, out / "entities.jsonl")
    print(
        f"{count} labels, {len(titles)} of the splits, {sum(map(has_description, labels.values()))}"
        " with a description"
    )


def has_description(entity: Entity) -> bool:
    return bool(entity.description)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
