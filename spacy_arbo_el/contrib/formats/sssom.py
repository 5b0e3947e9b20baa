"""Tables of mappings: links as SSSOM, and names of entities from SSSOM and from SSSLM."""

import csv
import io
import re
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from spacy.tokens import Doc

from ...corpora.links import doc_record
from ...kb.entity import NIL, Entity
from ...kb.importers.common import ImportReport
from ...kb.importers.tables import TableReader, open_table
from ...mentions.getters import SpanGetter
from ...records.cells import cell
from ...records.formats import certainty
from ...records.lines import PathLike
from ...storage.files import replacing
from .errors import FormatMessages

# Mappings between entities that may share names.
SAME = ("skos:exactMatch", "owl:equivalentClass", "owl:sameAs")
MODIFIER = "predicate_modifier"
# The column that only literal mappings have, and those that are read of them.
CURIE = "curie"
OF_LITERALS = {"id": CURIE, "title": "name", "aliases": "text"}
OF_MAPPINGS = {"id": "subject_id", "title": "subject_label", "aliases": "object_label"}
HEADER = re.compile(rb"(?:#[^\n]*\n)*(?:[^\n]*\t)?(?:subject_id|curie)\t")
# The columns of links. Links follow from names and from contexts.
COLUMNS = (
    *("subject_label", "subject_type", "predicate_id", "object_id", "object_label"),
    *("mapping_justification", "confidence", "mapping_tool", "comment"),
)
FIXED = {
    "subject_type": "rdfs literal",
    "predicate_id": "skos:exactMatch",
    "mapping_justification": "semapv:CompositeMatching",
    "mapping_tool": "spacy_arbo_el",
}
METADATA = """#mapping_set_id: https://w3id.org/sssom/mappings/{id}
#license: https://w3id.org/sssom/license/unspecified
"""


@dataclass(frozen=True)
class SssomReader:
    """Reads names from mappings in SSSOM, or from literal mappings in SSSLM, in a table.

    In SSSOM, the entities are the subjects. The label of what they are mapped to as the same is an
    alias, and its id leads to the subject. In SSSLM, an entity has a row for each of its names.

    skip_bad: Whether invalid lines are counted and left out.
    """

    skip_bad: bool = False

    sniff = staticmethod(partial(certainty, suffixes=(".sssom.tsv",), pattern=HEADER))

    def read(self, path: PathLike, report: ImportReport) -> Iterator[Entity]:
        """Yield the entities. report: Gets the ids that lead to them, and what was left out."""
        header = open_table(path, "\t").header
        is_literal = CURIE in header
        column_of = OF_LITERALS if is_literal else OF_MAPPINGS
        columns = {key: name for key, name in column_of.items() if name in header}
        # The only value of a modifier, "Not", says that the mapping does not hold.
        where = {"predicate_id": SAME, MODIFIER: ""}
        if MODIFIER not in header:
            del where[MODIFIER]
        reader = TableReader(
            columns,
            {} if is_literal else where,
            xrefs=() if is_literal else ("object_id",),
            delimiter="\t",
            skip_bad=self.skip_bad,
        )
        yield from reader.read(path, report)


def write_sssom(
    docs: Iterable[Doc],
    path: Path,
    get_spans: SpanGetter,
    extension: str,
    prefix: str = "",
) -> int:
    """Write links as literal mappings of SSSOM, all or none of them; NIL is left out.

    prefix: That of ids which have none.
    RETURNS: The number of documents.
    """
    count = 0
    with replacing(path) as file:
        text = io.TextIOWrapper(file, encoding="utf8", newline="", write_through=True)
        text.write(METADATA.format(id=uuid.uuid5(uuid.NAMESPACE_URL, path.name)))
        rows = csv.DictWriter(text, COLUMNS, delimiter="\t", lineterminator="\n")
        rows.writeheader()
        for doc in docs:
            record = doc_record(doc, str(count), get_spans, extension)
            for mention in record["mentions"]:
                if mention["kb_id"] not in (None, NIL):
                    place = f"{record['id']}, characters {mention['start']} to {mention['end']}"
                    row = {
                        "subject_label": cell(mention["text"]),
                        "object_id": curie(mention["kb_id"], prefix),
                        "object_label": cell(mention["title"]),
                        "confidence": f"{mention['score']:.4f}",
                        "comment": cell(place),
                    }
                    rows.writerow({**FIXED, **row})
            count += 1
        text.detach()
    return count


def curie(entity_id: str, prefix: str) -> str:
    """An id with its prefix, or with this one. Raises ValueError where there is none."""
    if ":" in entity_id:
        return entity_id
    if not prefix:
        raise FormatMessages.E109(id=entity_id)
    return f"{prefix}:{entity_id}"
