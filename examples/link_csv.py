"""Link the texts of a CSV file to the entities of another one. Nothing is trained.

    python examples/link_csv.py entities.csv texts.csv links.csv

entities.csv has the columns id and title, and may have description, aliases and types (separated
by "|") and frequency.
texts.csv has a column text, and may have a column id. Mentions are the names of the entities.
links.csv gets one line per mention.
"""

import csv
import sys
from collections.abc import Iterator
from pathlib import Path

import spacy
from spacy.language import Language

COLUMNS = ("document", "start", "end", "text", "kb_id", "title", "score")


def read(path: str) -> list[dict[str, str]]:
    with Path(path).open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


def pipeline(entities: str) -> Language:
    """A pipeline that finds the names of entities, and links them."""
    nlp = spacy.blank("en")
    ruler = nlp.add_pipe("entity_ruler", config={"phrase_matcher_attr": "LOWER"})
    linker = nlp.add_pipe("arbo_linker")
    linker.set_kb(entities)
    names = {name for entity in linker.kb for name in entity.names}
    ruler.add_patterns([{"label": "ENTITY", "pattern": name} for name in sorted(names)])
    return nlp


def links(nlp: Language, rows: list[dict[str, str]]) -> Iterator[dict[str, object]]:
    """One dict per mention."""
    kb = nlp.get_pipe("arbo_linker").kb
    numbered = [(row["text"], row.get("id") or str(number)) for number, row in enumerate(rows, 1)]
    for doc, name in nlp.pipe(numbered, as_tuples=True):
        for ent in doc.ents:
            title = "" if ent.kb_id_ == "NIL" else kb[ent.kb_id_].title
            place = (name, ent.start_char, ent.end_char, ent.text)
            yield dict(zip(COLUMNS, (*place, ent.kb_id_, title, ent._.arbo.score)))


def main(entities: str, texts: str, output: str) -> None:
    nlp = pipeline(entities)
    with Path(output).open("w", encoding="utf8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        writer.writerows(links(nlp, read(texts)))


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])
