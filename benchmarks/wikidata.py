"""Import a made dump of Wikidata, redirect, open and search it: times and memory.

    python benchmarks/wikidata.py [--items 1000000] [--folder FOLDER] [--output FILE]

A line is an item as in ``latest-all.json.gz``: labels, descriptions and aliases in three languages
and ``mul``, claims with ranks and data types, sitelinks. One in a hundred is a property, one in
fifty a class, one in thirty has no English name. Several items share a label, as in Wikidata. Each
step runs in a separate process, whose peak memory counts; the import is the command of the docs.
"""

import argparse
import gzip
import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import srsly

CLASSES = 200
PLACES = (
    "Alba",
    "Brenn",
    "Corvo",
    "Dorne",
    "Elm",
    "Fjord",
    "Gran",
    "Hollow",
    "Isar",
    "Juno",
)
ENDS = (
    "ville",
    "stad",
    "burg",
    "port",
    "field",
    "ton",
    "mouth",
    "ham",
    "dale",
    "wick",
)
KINDS = (
    "city",
    "river",
    "mountain",
    "album",
    "painter",
    "footballer",
    "asteroid",
    "village",
)
# Made redirects: every so many items, the next one leads to it.
EVERY = 1000


def claim(kind: str, target: int, rank: str = "normal") -> dict[str, Any]:
    value = {"entity-type": "item", "numeric-id": target, "id": f"Q{target}"}
    snak = {
        "snaktype": "value",
        "property": kind,
        "datavalue": {"value": value, "type": "wikibase-entityid"},
        "datatype": "wikibase-item",
    }
    return {"mainsnak": snak, "type": "statement", "id": f"Q{target}$x", "rank": rank}


def texts(values: dict[str, str]) -> dict[str, Any]:
    return {code: {"language": code, "value": value} for code, value in values.items()}


def item(number: int, rng: random.Random) -> dict[str, Any]:
    """An item or property in the shape of the dump."""
    if number % 100 == 99:
        labels = texts({"en": f"property {number}"})
        return {
            "type": "property",
            "id": f"P{number}",
            "datatype": "string",
            "labels": labels,
        }
    kind = rng.choice(KINDS)
    place = rng.choice(PLACES) + rng.choice(ENDS)
    name = f"{place} {number}" if rng.random() < 0.8 else place
    claims = {
        "P31": [claim("P31", rng.randrange(CLASSES)), claim("P31", 5, "deprecated")]
    }
    if number < CLASSES or number % 50 == 0:
        name, claims["P279"] = (
            f"{kind} of kind {number}",
            [claim("P279", rng.randrange(CLASSES))],
        )
    codes = ("de", "fr") if number % 30 == 7 else ("en", "de", "fr")
    aliases = {
        code: [{"language": code, "value": f"{name} ({code})"}] for code in codes
    }
    labels = texts(
        dict.fromkeys(codes, name) | ({"mul": place} if number % 5 == 0 else {})
    )
    links = {
        f"wiki{i}": {"site": f"wiki{i}", "title": name}
        for i in range(rng.randrange(12))
    }
    return {
        "type": "item",
        "id": f"Q{number}",
        "labels": labels,
        "descriptions": texts(
            dict.fromkeys(codes, f"{kind} in the district of {place}")
        ),
        "aliases": aliases if number % 3 else [],
        "claims": claims,
        "sitelinks": links,
        "lastrevid": number,
        "modified": "2026-01-01T00:00:00Z",
    }


def write(path: Path, items: int) -> None:
    rng = random.Random(0)
    with gzip.open(path, "wt", compresslevel=1, encoding="utf8") as file:
        file.write("[\n")
        for number in range(items):
            file.write(
                json.dumps(item(number, rng)) + (",\n" if number + 1 < items else "\n")
            )
        file.write("]\n")


def redirects(items: int) -> Iterator[tuple[str, str]]:
    return ((f"R{number}", f"Q{number}") for number in range(0, items, EVERY))


def use(folder: Path, items: int) -> dict[str, float]:
    """Redirect, open, and look names up."""
    from spacy_arbo_el.kb.knowledge_base import ArboKB

    start = time.perf_counter()
    with ArboKB.open(folder) as kb:
        kb.redirect(dict(redirects(items)))
    redirected = time.perf_counter()
    kb = ArboKB.for_reading(folder)
    assert kb.get("R0").id == "Q0"
    opened = time.perf_counter()
    shared = [
        len(kb.get_alias_candidates(place + end)) for place in PLACES for end in ENDS
    ]
    return {
        "entities": len(kb),
        "redirect, s": redirected - start,
        "open and first entity, s": opened - redirected,
        "namesakes of a name": max(shared),
        "100 names, s": time.perf_counter() - opened,
        "peak MB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--items", type=int, default=1_000_000)
    parser.add_argument(
        "--folder", type=Path, default=Path(tempfile.gettempdir()) / "arbo-wikidata"
    )
    parser.add_argument("--output", type=Path)
    parser.add_argument("--use", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    dump, folder = args.folder / "dump.json.gz", args.folder / "kb"
    if args.use:
        print(json.dumps(use(folder, args.items)))
        return
    args.folder.mkdir(parents=True, exist_ok=True)
    write(dump, args.items)
    start = time.perf_counter()
    command = [
        sys.executable,
        "-m",
        "spacy",
        "arbo",
        "kb",
        "build",
        str(dump),
        str(folder),
    ]
    command += [
        "--format",
        "wikidata",
        "--option",
        "type_names=true",
        "--dtype",
        "float16",
    ]
    subprocess.run([*command, "--replace"], check=True)
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    result: dict[str, Any] = {
        "items": args.items,
        "dump, MB": dump.stat().st_size / 1e6,
        "import, s": time.perf_counter() - start,
        "import, peak MB": children.ru_maxrss / 1024,
        "kb, MB": sum(file.stat().st_size for file in folder.iterdir()) / 1e6,
    }
    again = [sys.executable, __file__, "--use", "--items", str(args.items)]
    again += ["--folder", str(args.folder)]
    done = subprocess.run(again, check=True, capture_output=True, text=True)
    result |= json.loads(done.stdout.splitlines()[-1])
    print(json.dumps(result, indent=1))
    if args.output:
        srsly.write_json(args.output, result)


if __name__ == "__main__":
    main()
