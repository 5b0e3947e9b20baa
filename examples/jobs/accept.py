"""Accept a new entity in the table of ``arbo new list``: python accept.py TABLE NAME ID."""

import csv
import sys
from pathlib import Path


def main(table: str, name: str, entity_id: str) -> None:
    path = Path(table)
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        if row["name"] == name:
            row.update(decision="accept", kb_id=entity_id)
    with path.open("w", encoding="utf8", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main(*sys.argv[1:])
