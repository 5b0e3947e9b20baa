"""Entities from what people have: dicts, or the rows of a data frame."""

import math
from typing import Any, Dict, Iterable, Iterator, Mapping, Union

from ..errors import Errors
from .entity import Entity
from .importers.jsonl import entity_of, problem_of

LISTS = ("aliases", "types")

Records = Union[Entity, Mapping[str, Any], Iterable[Union[Entity, Mapping[str, Any]]]]


def entities_from(source: Any) -> Iterator[Entity]:
    """The entities of one record or many.

    source: An ``Entity``, a dict with the fields of one, a data frame with a row for each, or an
        iterable of entities and dicts. Values of dicts may be None or NaN, which count as left out;
        a single string counts as a list of one; a number as an id becomes a string. Other keys go
        to ``meta``.

    ValueError where a record is no entity, with its number from 1.
    """
    if isinstance(source, (Entity, Mapping)):
        source = [source]
    elif hasattr(source, "to_dict") and hasattr(source, "columns"):
        source = source.to_dict("records")
    for number, record in enumerate(source, 1):
        if isinstance(record, Entity):
            yield record
        elif isinstance(record, Mapping):
            yield _entity_from(record, number)
        else:
            problem = f"it is a {type(record).__name__}, not an Entity or a dict"
            raise ValueError(Errors.E041.format(number=number, problem=problem))


def _entity_from(record: Mapping[str, Any], number: int) -> Entity:
    values: Dict[str, Any] = {
        str(key): value for key, value in record.items() if not _is_missing(value)
    }
    if isinstance(values.get("id"), int) and not isinstance(values["id"], bool):
        values["id"] = str(values["id"])
    for key in LISTS:
        if isinstance(values.get(key), str):
            values[key] = [values[key]]
        elif key in values and not isinstance(values[key], list):
            values[key] = list(values[key]) if hasattr(values[key], "__iter__") else values[key]
    problem = problem_of(values)
    if problem:
        raise ValueError(Errors.E041.format(number=number, problem=problem.rstrip(".")))
    return entity_of(values)


def _is_missing(value: Any) -> bool:
    """Whether a value stands for none: None, NaN, or pandas' NA."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, float) and math.isnan(value)
