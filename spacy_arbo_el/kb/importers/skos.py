"""Thesauri in SKOS, such as ESCO: Turtle or RDF/XML. It needs rdflib."""

from collections import defaultdict
from typing import Any, Dict, Iterable, Iterator, List, Optional, Tuple

from ...errors import ArboError, Errors
from ...formats import entity_formats
from ...storage.lines import PathLike, check_exists, line_error
from ..entity import Entity
from .common import ImportReport


@entity_formats("skos")
def read_skos(
    path: PathLike,
    report: Optional[ImportReport] = None,
    *,
    languages: Tuple[str, ...] = ("en",),
) -> Iterator[Entity]:
    """Yield the concepts of a SKOS file, by their addresses.

    Aliases are the alternative and hidden labels, the description is the definition. Concepts
    without a preferred label in one of the languages are left out.

    Raises ValueError where the file is not valid, or rdflib is not installed.

    path: The file.
    report: Gets the number of concepts left out.
    languages: The languages of labels. The first one that a concept has counts.
    """
    try:
        from rdflib import RDF, SKOS, Graph
    except ImportError:
        raise ArboError(Errors.E107) from None
    report = report or ImportReport()
    graph = Graph()
    try:
        graph.parse(str(check_exists(path)))
    except FileNotFoundError:
        raise
    except Exception as error:  # of the parsers of rdflib, which share no class
        raise line_error(path, 1, f"no valid SKOS: {error}.") from None
    for concept in sorted(set(graph.subjects(RDF.type, SKOS.Concept)), key=str):
        titles, alternative, hidden, about = (
            _by_language(graph.objects(concept, kind), languages)
            for kind in (SKOS.prefLabel, SKOS.altLabel, SKOS.hiddenLabel, SKOS.definition)
        )
        language = next((one for one in languages if one in titles), None)
        if language is None:
            report.skip(f"no preferred label in {', '.join(languages)}")
            continue
        names = [name for labels in (titles, alternative, hidden) for name in labels[language]]
        title, *aliases = dict.fromkeys(names)
        yield Entity(str(concept), title, " ".join(about[language]), tuple(aliases))


def _by_language(values: Iterable[Any], languages: Tuple[str, ...]) -> Dict[str, List[str]]:
    """Texts by their language, sorted. Those without one count as of the first language."""
    texts: Dict[str, List[str]] = defaultdict(list)
    for value in values:
        texts[getattr(value, "language", None) or languages[0]].append(str(value))
    return defaultdict(list, {language: sorted(some) for language, some in texts.items()})
