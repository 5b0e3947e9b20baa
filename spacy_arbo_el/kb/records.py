"""Entities from what people have: dicts, or the rows of a data frame."""

from typing import Any, Iterable, Iterator, Mapping, Union

from ..errors import Errors
from .entity import Entity
from .importers.fields import RecordReader
from .importers.jsonl import entity_of, problem_of

Records = Union[Entity, Mapping[str, Any], Iterable[Union[Entity, Mapping[str, Any]]]]


def entities_from(source: Any) -> Iterator[Entity]:
    """The entities of one record or many.

    source: An ``Entity``, a dict with the fields of one, a data frame with a row for each, or an
        iterable of entities and dicts. Values of dicts may be None or NaN, which count as left out;
        a single string counts as a list of one; a number as an id becomes a string. Usual other
        names of fields, such as "name" and "synonyms", are read too. Other keys go to ``meta``; a
        warning says where names are missing.

    ValueError where a record is no entity, with its number from 1.
    """
    if isinstance(source, (Entity, Mapping)):
        source = [source]
    elif hasattr(source, "to_dict") and hasattr(source, "columns"):
        source = source.to_dict("records")
    reader = RecordReader()
    for number, record in enumerate(source, 1):
        if isinstance(record, Entity):
            yield record
        elif isinstance(record, Mapping):
            values = reader.read(record)
            problem = problem_of(values)
            if problem:
                raise ValueError(Errors.E041.format(number=number, problem=problem.rstrip(".")))
            yield entity_of(values)
        else:
            problem = f"it is a {type(record).__name__}, not an Entity or a dict"
            raise ValueError(Errors.E041.format(number=number, problem=problem))
    reader.warn()
