"""The MEDIC disease dictionary of the Comparative Toxicogenomics Database (CTD)."""

from typing import Iterator, List, Optional

from ...formats import entity_formats
from ...storage.lines import PathLike, line_error, read_lines
from ..entity import Entity
from .common import Entries, ImportReport

# NCBI Disease writes "OMIM:104300" and PubTator Central "MESH:D000544". The dictionary's ids have
# no prefix.
PREFIXES = ("OMIM:", "MESH:")
# The columns of a CTD vocabulary, by the names in its comments.
CTD_FIELDS = (
    "DiseaseName",
    "DiseaseID",
    "AltDiseaseIDs",
    "Definition",
    "ParentIDs",
    "TreeNumbers",
    "ParentTreeNumbers",
    "Synonyms",
)


@entity_formats("medic")
def read_medic_tsv(path: PathLike, report: Optional[ImportReport] = None) -> Iterator[Entity]:
    """Yield the entities of CTD's MEDIC file (``CTD_diseases.tsv``).

    The columns are ``CTD_FIELDS``, with ``|`` between several values. Lines that begin with ``#``
    are comments. The prefixes "MESH:" and "OMIM:" are removed from ids. Alternative ids lead to the
    entity.

    Raises ValueError with file, line and problem at an invalid line.

    path: The file.
    report: Gets the alternative ids.
    """
    entries = Entries(path, report)
    for number, line in read_lines(path):
        if not line.strip() or line.startswith("#"):
            continue
        values = line.split("\t")
        if len(values) < len(CTD_FIELDS):
            problem = f"expected {len(CTD_FIELDS)} columns separated by tabs, got {len(values)}."
            raise line_error(path, number, problem)
        row = dict(zip(CTD_FIELDS, map(str.strip, values)))
        ids = [strip_prefix(row["DiseaseID"]), *map(strip_prefix, _parts(row["AltDiseaseIDs"]))]
        if not ids[0] or not row["DiseaseName"]:
            raise line_error(path, number, "'DiseaseName' and 'DiseaseID' must not be empty.")
        entries.check_new(ids[0], number)
        names = [row["DiseaseName"], *_parts(row["Synonyms"])]
        meta = {"ids": ids, "tree": _parts(row["TreeNumbers"])}
        yield entries.entity(number, ids, names, row["Definition"], ["Disease"], meta=meta)


def strip_prefix(id_: str) -> str:
    """Strip whitespace and the prefix "OMIM:" or "MESH:"."""
    id_ = id_.strip()
    for prefix in PREFIXES:
        if id_.upper().startswith(prefix):
            return id_[len(prefix) :].strip()
    return id_


def _parts(text: str) -> List[str]:
    return [part.strip() for part in text.split("|") if part.strip()]
