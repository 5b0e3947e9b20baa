"""The MEDIC disease dictionary, in the three formats in which it is distributed."""

import json
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any, Dict, Iterator, List, Optional, Tuple

from ...io import PathLike, check_exists, is_storable, line_error, read_lines
from ..entity import Entity
from .concepts import read_equivalents, strip_prefix
from .jsonl import check_new, is_strings
from .lines import at_line
from .report import ImportReport

DISEASE = ("Disease",)


def read_medic_half(
    folder: PathLike, report: Optional[ImportReport] = None, *, unnamed: bool = True
) -> Iterator[Entity]:
    """Yield the concepts of the BioCoM paper's dictionary, in the order of ``concept_map.json``.

    The title is the first name of a concept, the aliases are the others. ``meta["ids"]`` has the
    equivalent ids.

    Raises ValueError with file, line and problem at an invalid line.

    folder: Contains ``disease_down_half.tsv`` and ``concept_map.json``.
    report: Not used.
    unnamed: Whether to yield concepts without names. The dictionary has half of MEDIC's names, and
        about one concept in six has lost all of them. Such a concept has its id as title and
        ``meta["unnamed"]``: it has no names and no text. A labelled mention may lead to it.
    """
    folder = check_exists(folder)
    equivalents = read_equivalents(folder)
    names = _names_by_concept(folder / "disease_down_half.tsv", equivalents)
    for concept, ids in equivalents.items():
        if concept in names:
            yield _disease(concept, names[concept], ids)
        elif unnamed:
            yield _disease(concept, [concept], ids, unnamed=True)


def read_medic_2012(path: PathLike, report: Optional[ImportReport] = None) -> Iterator[Entity]:
    """Yield the entities of a MEDIC dictionary whose lines are ``id[|id…]||name[|synonym…]``.

    The first id is that of the entity. ``meta["ids"]`` has all ids.

    Raises ValueError with file, line and problem at an invalid line, and where two entities have
    the same id.
    """
    lines_of: Dict[str, int] = {}
    for number, line in read_lines(path):
        if not line.strip():
            continue
        before, _, after = line.partition("||")
        ids, names = _parts(before), _parts(after)
        if not ids or not names:
            raise line_error(path, number, "expected 'id[|id…]||name[|synonym…]'.")
        check_new(ids[0], number, lines_of, path)
        with at_line(path, number):
            disease = _disease(ids[0], names, tuple(ids))
        yield disease


def _parts(text: str) -> List[str]:
    return [part.strip() for part in text.split("|") if part.strip()]


def _disease(id_: str, names: List[str], ids: Tuple[str, ...], unnamed: bool = False) -> Entity:
    title, *aliases = dict.fromkeys(names)
    meta: Dict[str, Any] = {"ids": list(ids)}
    if unnamed:
        meta["unnamed"] = True
    return Entity(id=id_, title=title, aliases=tuple(aliases), types=DISEASE, meta=meta)


def _names_by_concept(path: Path, equivalents: Dict[str, Tuple[str, ...]]) -> Dict[str, List[str]]:
    concept_of = {id_: concept for concept, ids in equivalents.items() for id_ in ids}
    names: Dict[str, List[str]] = defaultdict(list)
    for number, line in read_lines(path):
        if not line.strip():
            continue
        name, ids = _medic_line(line, path, number)
        for id_ in ids:
            if id_ not in concept_of:
                problem = f"the id {id_!r} of {name!r} isn't in concept_map.json."
                raise line_error(path, number, problem)
        for concept in dict.fromkeys(concept_of[id_] for id_ in ids):
            names[concept].append(name)
    return names


def _medic_line(line: str, path: Path, number: int) -> Tuple[str, List[str]]:
    try:
        name, ids = json.loads(line)
        if is_storable(name) and name.strip() and ids and is_strings(ids):
            return name.strip(), ids
    except (ValueError, TypeError, RecursionError):
        pass
    raise line_error(path, number, 'expected a JSON array ["name", ["id", …]].')


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


def read_medic_tsv(path: PathLike, report: Optional[ImportReport] = None) -> Iterator[Entity]:
    """Yield the entities of CTD's MEDIC file (``CTD_diseases.tsv``).

    The columns are ``CTD_FIELDS``, with ``|`` between several values. Lines that begin with ``#``
    are comments. The prefixes "MESH:" and "OMIM:" are removed from ids. Alternative ids lead to the
    entity.

    Raises ValueError with file, line and problem at an invalid line.

    path: The file.
    report: Gets the alternative ids.
    """
    report = report or ImportReport()
    lines_of: Dict[str, int] = {}
    for number, line in read_lines(path):
        if not line.strip() or line.startswith("#"):
            continue
        values = line.split("\t")
        if len(values) < len(CTD_FIELDS):
            problem = f"expected {len(CTD_FIELDS)} columns separated by tabs, got {len(values)}."
            raise line_error(path, number, problem)
        row = dict(zip(CTD_FIELDS, values))
        ids = [strip_prefix(row["DiseaseID"]), *map(strip_prefix, _parts(row["AltDiseaseIDs"]))]
        if not ids[0] or not row["DiseaseName"].strip():
            raise line_error(path, number, "'DiseaseName' and 'DiseaseID' must not be empty.")
        check_new(ids[0], number, lines_of, path)
        names = [row["DiseaseName"].strip(), *_parts(row["Synonyms"])]
        with at_line(path, number):
            report.redirect(ids[1:], ids[0])
            entity = _disease(ids[0], names, tuple(ids))
            meta = {**entity.meta, "tree": _parts(row["TreeNumbers"])}
            entity = replace(entity, description=row["Definition"].strip(), meta=meta)
        yield entity
