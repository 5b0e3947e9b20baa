"""Link a column of a CSV file as OpenRefine does: ask a service, take what matches.

    python -m spacy arbo serve training/demo/model-best        # prints the address
    python examples/reconcile.py ADDRESS places.csv name linked.csv

Other columns that are called like properties of the service, such as description, are evidence.
linked.csv has more columns: id and title of the match, and the candidates if there is none.
Works with every service that speaks the Reconciliation API 0.2.
"""

import csv
import json
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from urllib.request import urlopen

BATCH = 10
CANDIDATES = 3


def ask(address: str, **fields: Any) -> Any:
    """The answer to a GET, or to a POST where there are fields."""
    form = {name: json.dumps(value) for name, value in fields.items()}
    with urlopen(address, urlencode(form).encode() if form else None) as answer:
        return json.load(answer)


def properties(manifest: dict[str, Any]) -> list[str]:
    """The ids of the properties that the service has."""
    place = manifest.get("extend", {}).get("propose_properties")
    if not place:
        return []
    found = ask(place["service_url"] + place["service_path"] + "?type=")
    return [one["id"] for one in found["properties"]]


def query(row: dict[str, str], column: str, known: list[str]) -> dict[str, Any]:
    evidence = [
        {"pid": name, "v": row[name]}
        for name in known
        if row.get(name) and name != column
    ]
    more = {"properties": evidence} if evidence else {}
    return {"query": row[column], "limit": CANDIDATES, **more}


def linked(
    address: str, rows: list[dict[str, str]], column: str
) -> Iterator[dict[str, str]]:
    """Rows with what matches them; a row without a text stays as it is."""
    manifest = ask(address)
    assert "0.2" in manifest["versions"], (
        f"{manifest['name']} has another version of the API"
    )
    known, rest = properties(manifest), iter(rows)
    while batch := list(islice(rest, BATCH)):
        queries = {
            str(number): query(row, column, known)
            for number, row in enumerate(batch)
            if row[column].strip()
        }
        answer = ask(address, queries=queries)
        for number, row in enumerate(batch):
            found = answer.get(str(number), {"result": []})["result"]
            match = next(
                (one for one in found if one["match"]), {"id": "", "name": ""}
            )
            others = (
                [] if match["id"] else [f"{one['id']} {one['name']}" for one in found]
            )
            yield {
                **row,
                "kb_id": match["id"],
                "title": match["name"],
                "candidates": "|".join(others),
            }


def main(address: str, texts: str, column: str, output: str) -> None:
    with Path(texts).open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    done = list(linked(address, rows, column))
    with Path(output).open("w", encoding="utf8", newline="") as file:
        writer = csv.DictWriter(file, list(done[0]) if done else [column])
        writer.writeheader()
        writer.writerows(done)
    print(f"{sum(bool(row['kb_id']) for row in done)} of {len(done)} rows match")


if __name__ == "__main__":
    if len(sys.argv) != 5:
        sys.exit(__doc__)
    main(*sys.argv[1:])
