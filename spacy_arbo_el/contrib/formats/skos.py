"""Thesauri in SKOS, such as ESCO, and ontologies in OWL. It needs rdflib."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from ...kb.entity import Entity
from ...kb.importers.common import ImportReport
from ...records.formats import BY_START, certainty
from ...records.lines import OPENERS, PathLike, check_exists, line_error, plain_name
from ...records.source import at_line
from .errors import FormatMessages
from .obo import ids_of_xrefs, replace_ids

# The ends of names that no other format has.
SUFFIXES = (".ttl", ".rdf", ".owl", ".nt", ".jsonld")
OBO = "http://www.geneontology.org/formats/oboInOwl#"
IAO = "http://purl.obolibrary.org/obo/IAO_"

# Texts by language, in order.
Texts = dict[str, list[str]]


@dataclass(frozen=True)
class SkosReader:
    """Reads the concepts of a SKOS file or the classes of an OWL file.

    A file is Turtle, RDF/XML, N-Triples or JSON-LD.

    The title is the preferred label, or ``rdfs:label``. Aliases are its other labels, of SKOS-XL
    too, and exact synonyms, in all languages that are asked for. The description is the
    definition. Each has single blanks as its white space. Concepts without a label in these
    languages are left out, and so are deprecated ones. The id of one that a single concept replaces
    leads to that, and alternative ids of OBO lead to their class.

    Raises ValueError where the file is not valid, or rdflib is not installed.

    languages: The languages of labels, the preferred one first. "en" is "en-GB" too.
    xrefs: Beginnings of URIs, or prefixes such as MESH, of the exact and close matches, and of the
        cross-references of OBO, that lead to their concept as further ids.
    """

    languages: tuple[str, ...] = ("en",)
    xrefs: tuple[str, ...] = ()

    @staticmethod
    def sniff(name: str, start: bytes) -> float:
        """Know files by their name."""
        return BY_START if certainty(name, start, SUFFIXES) else 0.0

    def read(self, path: PathLike, report: ImportReport) -> Iterator[Entity]:
        """Yield the concepts.

        report: Gets the number of concepts left out, and the ids that lead to others.
        """
        try:
            from rdflib import OWL, RDF, SKOS, URIRef
        except ImportError:
            raise FormatMessages.E107() from None
        thesaurus = _Thesaurus(_graph(path), self.languages)
        kinds = (SKOS.Concept, OWL.Class)
        concepts = {
            concept
            for kind in kinds
            for concept in thesaurus.graph.subjects(RDF.type, kind)
        }
        concepts -= {
            OWL.Thing,
            OWL.Nothing,
        }  # the class of all things, and that of none
        for concept in sorted(
            (concept for concept in concepts if isinstance(concept, URIRef)), key=str
        ):
            further = thesaurus.ids(concept, thesaurus.further_ids)
            if thesaurus.is_deprecated(concept):
                report.skip("deprecated")
                with at_line(path, 1):
                    replace_ids(
                        report,
                        [str(concept), *further],
                        thesaurus.ids(concept, thesaurus.replaced),
                    )
                continue
            names = thesaurus.names(concept)
            description = thesaurus.description(concept)
            if not names:
                report.skip(f"no label in {', '.join(self.languages)}")
                continue
            with at_line(path, 1):
                entity = report.entity([str(concept), *further], names, description)
            report.note_xrefs(
                ids_of_xrefs(thesaurus.ids(concept, thesaurus.matches), self.xrefs),
                entity.id,
            )
            yield entity


def _graph(path: PathLike) -> Any:
    from rdflib import Graph
    from rdflib.util import guess_format

    path = check_exists(path)
    graph = Graph()
    try:
        with OPENERS.get(path.suffix.lower(), open)(path, "rb") as file:
            graph.parse(file, format=guess_format(plain_name(path)) or "turtle")
    except Exception as error:  # of the parsers of rdflib, which share no class
        raise line_error(path, 1, f"no valid SKOS: {error}.") from None
    return graph


class _Thesaurus:
    """Labels and texts of the concepts of a graph, in some languages."""

    def __init__(self, graph: Any, languages: tuple[str, ...]) -> None:
        from rdflib import DCTERMS, OWL, RDF, RDFS, SKOS, Namespace

        obo = Namespace(OBO)
        iao = Namespace(IAO)
        xl = Namespace("http://www.w3.org/2008/05/skos-xl#")
        self.graph = graph
        self.languages = tuple(language.lower() for language in languages)
        # Predicates of names, the preferred ones first; and those of a resource's text.
        self._names = (
            (SKOS.prefLabel, xl.prefLabel, RDFS.label),
            (SKOS.altLabel, xl.altLabel, obo.hasExactSynonym),
            (SKOS.hiddenLabel, xl.hiddenLabel),
        )
        self._texts = (xl.literalForm, RDF.value)
        self._definitions = (SKOS.definition, iao["0000115"])
        self._deprecated = OWL.deprecated
        self.replaced = (DCTERMS.isReplacedBy, iao["0100001"])
        self.further_ids = (obo.hasAlternativeId,)
        self.matches = (SKOS.exactMatch, SKOS.closeMatch, obo.hasDbXref)

    def is_deprecated(self, concept: Any) -> bool:
        values = self.graph.objects(concept, self._deprecated)
        return any(str(value).lower() in ("true", "1") for value in values)

    def ids(self, concept: Any, kinds: Iterable[Any]) -> list[str]:
        """What a concept leads to by predicates of these kinds."""
        values = (
            value for kind in kinds for value in self.graph.objects(concept, kind)
        )
        return sorted(map(str, values))

    def names(self, concept: Any) -> list[str]:
        """The names in the languages asked for; preferred ones first, in the first language."""
        by_kind = [self._by_language(concept, kinds) for kinds in self._names]
        # The preferred labels of all languages would come before the other ones of the first.
        ordered = [texts[language] for language in self.languages for texts in by_kind]
        preferred = [
            by_kind[0][language] for language in self.languages if by_kind[0][language]
        ][:1]
        return list(
            dict.fromkeys(name for names in (*preferred, *ordered) for name in names)
        )

    def description(self, concept: Any) -> str:
        """The definition in the first language that has one."""
        texts = self._by_language(concept, self._definitions)
        return " ".join(
            next(
                (texts[language] for language in self.languages if texts[language]), ()
            )
        )

    def _by_language(self, concept: Any, kinds: Iterable[Any]) -> Texts:
        """Texts by the language asked for: by their kind, then those without a tag of a region."""
        from rdflib import Literal

        texts_of: dict[str, list[tuple[int, bool, str]]] = defaultdict(list)
        values = (
            (number, value)
            for number, kind in enumerate(kinds)
            for value in self.graph.objects(concept, kind)
        )
        for number, value in values:
            # A label or a definition may be a resource that has the text.
            is_text = isinstance(value, Literal)
            literals = [value] if is_text else self._texts_of(value)
            for text in literals:
                plain = " ".join(str(text).split())
                if not plain:
                    continue
                tag = (getattr(text, "language", None) or self.languages[0]).lower()
                for language in self.languages:
                    if tag == language or tag.startswith(f"{language}-"):
                        texts_of[language].append((number, tag != language, plain))
        return defaultdict(
            list,
            {
                language: [text for *_, text in sorted(texts)]
                for language, texts in texts_of.items()
            },
        )

    def _texts_of(self, resource: Any) -> list[Any]:
        from rdflib import Literal

        values = (
            value
            for kind in self._texts
            for value in self.graph.objects(resource, kind)
        )
        return [value for value in values if isinstance(value, Literal)]
