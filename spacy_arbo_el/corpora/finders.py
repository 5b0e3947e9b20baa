"""Finding the mentions of documents that have none."""

import weakref
from itertools import dropwhile
from typing import TYPE_CHECKING, Any, Callable, Container, Iterable, Iterator, Optional, Tuple

import spacy
from spacy.language import Language
from spacy.tokens import Doc, Span

from ..errors import Errors
from ..mentions.getters import same_tokens, set_mentions
from ..storage.revision import RevisionCache
from .names import Dictionary, NameFinder

if TYPE_CHECKING:
    from ..linker import ArboLinker

Finder = Callable[[Iterable[Doc]], Iterable[Doc]]


class ArboNames:
    """A component that finds names of the linker's entities.

    It stands before the linker, and follows its knowledge base: what ``set_kb`` and edits change is
    found in the next document. So two lines link raw text::

        nlp.add_pipe("arbo_names")
        nlp.add_pipe("arbo_linker").set_kb("entities.jsonl")

    Names are found over line breaks and in any case, but for short ones and capitals, with other
    dashes and apostrophes, in the plural, and without spaces. Mentions are put where the linker
    takes them from. Their label is the first type of the entity.

    linker: The name of the linker; by default the first one after it.
    overwrite: Whether mentions of earlier components are replaced. Otherwise they stay, and names
        that overlap with one are left out.
    """

    def __init__(
        self,
        stop_words: Container[str],
        find_linker: Callable[["ArboNames"], "ArboLinker"],
        overwrite: bool = False,
    ) -> None:
        self.stop_words = stop_words
        self.overwrite = overwrite
        self._find_linker = find_linker
        self._built = RevisionCache()

    @classmethod
    def of(
        cls, nlp: Language, linker: Optional[str] = None, overwrite: bool = False
    ) -> "ArboNames":
        """Get the component of a pipeline. ``linker`` and ``overwrite`` are as for the class."""
        of_nlp = weakref.ref(nlp)

        def find(names: "ArboNames") -> "ArboLinker":
            return _linker_after(names, of_nlp(), linker)

        return cls(nlp.Defaults.stop_words, find, overwrite)

    def __call__(self, doc: Doc) -> Doc:
        linker = self._find_linker(self)
        getter = linker.mentions.getter
        return NameFinder(self._dictionary(linker), getter, self.overwrite).find(doc)

    def __reduce__(self) -> Tuple[Callable[..., "ArboNames"], Tuple[Any, ...]]:
        # For nlp.pipe(n_process=2). The linker is pickled once, with the same pipeline.
        return _names_of_linker, (self.stop_words, self._find_linker(self), self.overwrite)

    def _dictionary(self, linker: "ArboLinker") -> Dictionary:
        kb = linker.kb
        with kb.guard.reading():
            return self._built.get(
                "dictionary",
                (kb, kb.edits),
                lambda: Dictionary.of(linker.vocab, self.stop_words, kb.entities),
            )


def _names_of_linker(
    stop_words: Container[str], linker: "ArboLinker", overwrite: bool
) -> ArboNames:
    return ArboNames(stop_words, lambda names: linker, overwrite)


def _linker_after(names: ArboNames, nlp: Optional[Language], wanted: Optional[str]) -> "ArboLinker":
    """Find the linker by name, or the first one behind."""
    from ..linker import ArboLinker

    components = [] if nlp is None else nlp.components
    for name, pipe in dropwhile(lambda one: not wanted and one[1] is not names, components):
        if isinstance(pipe, ArboLinker) and wanted in (None, name):
            return pipe
    raise ValueError(Errors.E511.format(wanted=wanted or "arbo_linker"))


def make_finder(nlp: Language, linker: "ArboLinker", find: str) -> Optional[Finder]:
    """A function that finds the mentions of documents. None where these have their own.

    nlp: The pipeline of the linker.
    find: "" for the documents' own, "pipeline" for the components before the linker, "names" for
        the names of the knowledge base, or another pipeline: a folder or an installed package.
    """
    if not find:
        return None
    if find == "pipeline":
        return _finder_of_pipeline(nlp, linker)
    if find == "names":
        return NameFinder.build(nlp, linker.kb.entities, linker.mentions.getter)
    return _finder_of_other(nlp, linker, find)


def _finder_of_pipeline(nlp: Language, linker: "ArboLinker") -> Finder:
    pipes = [pipe for _, pipe in nlp.pipeline]
    names = nlp.pipe_names[: pipes.index(linker)]
    if not names:
        raise ValueError(Errors.E791.format(names=", ".join(nlp.pipe_names)))

    def find(docs: Iterable[Doc]) -> Iterable[Doc]:
        with nlp.select_pipes(enable=names):
            yield from nlp.pipe(docs)

    return find


def _finder_of_other(nlp: Language, linker: "ArboLinker", name: str) -> Finder:
    other, getter = spacy.load(name), linker.mentions.getter

    def find(docs: Iterable[Doc]) -> Iterator[Doc]:
        pairs = ((doc.text, doc.user_data.get("doc_id", "")) for doc in docs)
        for found, doc_id in other.pipe(pairs, as_tuples=True):
            doc = same_tokens(found, nlp.vocab)
            if doc_id:
                doc.user_data["doc_id"] = doc_id
            spans = found.spans.get(getter.spans_key or "", found.ents)
            copies = [Span(doc, span.start, span.end, label=span.label_) for span in spans]
            set_mentions(doc, copies, getter)
            yield doc

    return find
