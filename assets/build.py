"""Turn the marked-up texts in ``source/`` into train.jsonl, dev.jsonl and test.jsonl.

    python assets/build.py           # write the three files next to this script
    python assets/build.py --stats   # write them and count what is in them
    python assets/build.py --check   # write nothing; fail where a file isn't up to date

README.md describes the markup. Only the standard library is needed.
"""

import argparse
import json
import os
import re
import sys
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

ASSETS = Path(__file__).resolve().parent
SPLITS = ("train", "dev", "test")
NIL = "NIL"
MENTION = re.compile(r"\[\[([^\[\]|]+)\|([^\[\]|]+)\]\]")

Record = dict[str, Any]


def read_jsonl(path: Path) -> list[Record]:
    return [
        json.loads(line)
        for line in path.read_text(encoding="utf8").split("\n")
        if line
    ]


def read_entities(assets: Path = ASSETS) -> dict[str, Record]:
    """All entities by id: those of the KB ("E…") and the new ones ("N…").

    Raises ValueError where an id occurs twice or an entity has no type.
    """
    entities: dict[str, Record] = {}
    for name in ("entities.jsonl", "entities_new.jsonl"):
        for entity in read_jsonl(assets / name):
            if entity["id"] in entities:
                raise ValueError(f"{name}: the id {entity['id']!r} occurs twice.")
            if not entity.get("types"):
                raise ValueError(
                    f"{name}: {entity['id']} needs a type, it becomes the label."
                )
            entities[entity["id"]] = entity
    return entities


def is_new(entity_id: str) -> bool:
    return entity_id.startswith("N")


def parse(source: str, entities: dict[str, Record], where: str = "") -> list[Record]:
    """The documents of one source file. Raises ValueError that names the document and problem."""
    docs = []
    for block in re.split(r"\n\s*\n", source.strip()):
        head, _, body = block.partition("\n")
        if not head.startswith("## ") or not body.strip():
            raise ValueError(
                f"{where}: expected '## name' and a text below it, got {head!r}."
            )
        name = head[3:].strip()
        docs.append(
            parse_document(name, " ".join(body.split()), entities, f"{where}: {name}")
        )
    return docs


def parse_document(
    name: str, marked: str, entities: dict[str, Record], where: str
) -> Record:
    text, mentions, done = "", [], 0
    for match in MENTION.finditer(marked):
        surface, entity_id = match.groups()
        if entity_id not in entities:
            raise ValueError(
                f"{where}: no entity has the id {entity_id!r} ({surface!r})."
            )
        if surface != surface.strip():
            raise ValueError(f"{where}: {surface!r} begins or ends with a space.")
        text += marked[done : match.start()]
        mention = {
            "start": len(text),
            "end": len(text) + len(surface),
            "label": entities[entity_id]["types"][0],
            "kb_id": NIL if is_new(entity_id) else entity_id,
        }
        if is_new(entity_id):
            mention["cluster"] = entity_id
        mentions.append(mention)
        text += surface
        done = match.end()
    text += marked[done:]
    if not mentions:
        raise ValueError(f"{where}: no mention. Mark them as [[surface|E001]].")
    if re.search(r"[\[\]|]", text):
        raise ValueError(
            f"{where}: a bracket or bar is left over, so a mention is malformed."
        )
    return {"id": name, "text": text, "mentions": mentions}


def build(assets: Path = ASSETS) -> dict[str, list[Record]]:
    """All documents by split. Raises ValueError where two have the same name or text."""
    entities = read_entities(assets)
    splits: dict[str, list[Record]] = {}
    seen: set[str] = set()
    for split in SPLITS:
        path = assets / "source" / f"{split}.txt"
        splits[split] = parse(path.read_text(encoding="utf8"), entities, path.name)
        for doc in splits[split]:
            for value in (doc["id"], doc["text"]):
                if value in seen:
                    raise ValueError(
                        f"{path.name}: {doc['id']} occurs twice (name or text)."
                    )
                seen.add(value)
    return splits


def to_jsonl(docs: list[Record]) -> str:
    return "".join(json.dumps(doc, ensure_ascii=False) + "\n" for doc in docs)


def write(path: Path, content: str) -> None:
    """Write all or nothing."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        temporary.write_bytes(content.encode("utf8"))
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def names_of(entity: Record) -> set[str]:
    return {name.casefold() for name in (entity["title"], *entity["aliases"])}


def stats(splits: dict[str, list[Record]], entities: dict[str, Record]) -> str:
    kb = {id_: entity for id_, entity in entities.items() if not is_new(id_)}
    lines = [
        f"{'':8}{'documents':>10}{'mentions':>10}{'NIL':>6}{'KB ids':>8}{'new':>6}{'types':>7}"
    ]
    linked: dict[str, Counter] = {}
    senses: dict[str, set[str]] = defaultdict(set)
    unlisted: set[str] = set()
    total: Counter = Counter()
    for split, docs in splits.items():
        linked[split] = Counter()
        new: Counter = Counter()
        types: set[str] = set()
        for doc in docs:
            for mention in doc["mentions"]:
                id_ = mention.get("cluster", mention["kb_id"])
                (new if is_new(id_) else linked[split])[id_] += 1
                types.add(mention["label"])
                surface = doc["text"][mention["start"] : mention["end"]].casefold()
                senses[surface].add(id_)
                if surface not in names_of(entities[id_]):
                    unlisted.add(f"{surface} ({id_})")
        count, nil = sum(linked[split].values()) + sum(new.values()), sum(new.values())
        total.update(docs=len(docs), mentions=count, nil=nil)
        lines.append(
            f"{split:8}{len(docs):>10}{count:>10}{nil:>6}"
            f"{len(linked[split]):>8}{len(new):>6}{len(types):>7}"
        )
    lines.append(
        f"{'all':8}{total['docs']:>10}{total['mentions']:>10}{total['nil']:>6}"
    )
    named: dict[str, set[str]] = defaultdict(set)
    for id_, entity in kb.items():
        for name in names_of(entity):
            named[name].add(id_)
    unseen = sorted(set(linked["dev"] + linked["test"]) - set(linked["train"]))
    unused = sorted(set(kb) - {id_ for counts in linked.values() for id_ in counts})
    by_type = Counter(entity["types"][0] for entity in kb.values())
    lines += [
        "",
        f"entities in the KB: {len(kb)}, left out: {len(entities) - len(kb)}",
        "types: " + ", ".join(f"{type_} {n}" for type_, n in by_type.most_common()),
        f"names shared by several entities of the KB: {sum(len(v) > 1 for v in named.values())}",
        "surface forms that mean several entities in the texts: "
        f"{sum(len(v) > 1 for v in senses.values())}",
        f"first seen after train ({len(unseen)}): {' '.join(unseen)}",
        f"never mentioned ({len(unused)}): {' '.join(unused)}",
        f"surface forms that are no name of their entity ({len(unlisted)}): "
        + ", ".join(sorted(unlisted)),
    ]
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(
        description="Build the demo data from source/*.txt."
    )
    parser.add_argument(
        "--stats", action="store_true", help="count what is in the data"
    )
    parser.add_argument(
        "--check", action="store_true", help="only compare, write nothing"
    )
    args = parser.parse_args()
    try:
        splits = build()
    except ValueError as err:
        print(f"✘ {err}", file=sys.stderr)
        return 1
    stale = []
    for split, docs in splits.items():
        path = ASSETS / f"{split}.jsonl"
        if not args.check:
            write(path, to_jsonl(docs))
        elif not path.exists() or path.read_bytes() != to_jsonl(docs).encode("utf8"):
            stale.append(path.name)
    if args.stats:
        print(stats(splits, read_entities()))
    if stale:
        print(
            f"✘ Not up to date: {', '.join(stale)}. Run this without --check.",
            file=sys.stderr,
        )
    return int(bool(stale))


if __name__ == "__main__":
    sys.exit(main())
