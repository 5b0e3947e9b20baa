"""Finding the mentions of documents that have none."""

import weakref
from collections.abc import Callable, Container, Iterable, Iterator
from itertools import dropwhile
from typing import Any

import spacy
from spacy.language import Language
from spacy.tokens import Doc, Span
from spacy.vocab import Vocab

from ..base.errors import Errors, Warnings
from ..base.log import warn_once
from ..base.settings import check_choice
from ..linker import ArboLinker
from ..mentions.getters import (
    FOUND_AS,
    SpanGetter,
    find_mentions,
    same_tokens,
    set_mentions,
)
from ..mentions.record import document_id
from ..storage.locks import RevisionCache
from .dictionary import Dictionary
from .near_names import NearNames

# How names are found: also in another form, or in their own spelling only.
FORMS = ("near", "exact")
Finder = Callable[[Iterable[Doc]], Iterable[Doc]]
# The pipelines that linkers and finders were made for. spaCy shares a component that was sourced
# between two of them, and tells it of neither.
made_for: "weakref.WeakSet[Language]" = weakref.WeakSet()


class ArboNames:
    """A component that finds names of the linker's entities.

    It stands before the linker, and follows its knowledge base: what ``set_kb`` and edits
    change, those of another program in its folder too, is found in the next document. So two lines
    link raw text::

        nlp.add_pipe("arbo_names")
        nlp.add_pipe("arbo_linker").set_kb("entities.jsonl")

    Names are found over line breaks and in any case, but for short ones and capitals, with other
    dashes and apostrophes, in the plural, and without spaces. ``forms = "near"`` also finds words
    in another order or number, misspelled ones, abbreviations that the text defines, and names
    without their legal form. Whether one is an entity of the list in its place is decided by the
    linker. Mentions are put where the linker takes them from. Their label is the first type of the
    entity.

    A component that was sourced follows the linker of the pipeline that it is used in. Where that
    one was sourced too, it is the linker of the pipeline that both come from.

    linker: The name of the linker; by default the first one after it.
    overwrite: Whether mentions of earlier components are replaced. Otherwise they stay, and names
        that overlap with one are left out.
    forms: "near", or "exact" for names in their own spelling only.
    top_terms: Whether what nearly all entities are, such as "disease", is found too.
    """

    def __init__(
        self,
        stop_words: Container[str],
        find_linker: Callable[["ArboNames", Vocab | None], ArboLinker],
        overwrite: bool = False,
        forms: str = "near",
        top_terms: bool = False,
    ) -> None:
        check_choice("arbo_names.forms", forms, FORMS)
        self.forms = forms
        self.top_terms = top_terms
        self.stop_words = stop_words
        self.overwrite = overwrite
        self._find_linker = find_linker
        self._built = RevisionCache()

    @classmethod
    def of(
        cls,
        nlp: Language,
        linker: str | None = None,
        **settings: Any,
    ) -> "ArboNames":
        """Get the component of a pipeline. The settings are those of the class."""
        made_for.add(nlp)
        pipeline_ref = weakref.ref(nlp)
        of_own: ArboLinker | None = None

        def find(names: "ArboNames", vocab: Vocab | None) -> ArboLinker:
            nonlocal of_own
            here = pipeline_ref()
            pipelines = (here, *made_for)
            nlp = next(
                (pipeline for pipeline in pipelines if _is_in(names, pipeline, vocab)),
                here,
            )
            if nlp is None and of_own is not None:
                return of_own
            next_linker = _linker_after(names, nlp, linker)
            if nlp is here:
                of_own = next_linker
            return next_linker

        return cls(nlp.Defaults.stop_words, find, **settings)

    def __call__(self, doc: Doc) -> Doc:
        linker = self._find_linker(self, doc.vocab)
        if (
            not linker.kb.guard.is_reading
        ):  # by a thread that is linking, whose entities stay
            linker.kb.reload_if_changed()
        if not len(linker.kb):
            warn_once(Warnings.W548.format(name=linker.name))
        return mark_names(
            doc, self._finder(linker), linker.mentions.getter, self.overwrite
        )

    def __reduce__(self) -> tuple[Callable[..., "ArboNames"], tuple[Any, ...]]:
        # For nlp.pipe(n_process=2). The linker is pickled once, with the same pipeline.
        linker = self._find_linker(self, None)
        settings = (
            self.stop_words,
            linker,
            self.overwrite,
            self.forms,
            self.top_terms,
        )
        return _names_of_linker, settings

    def _finder(self, linker: ArboLinker) -> Dictionary | NearNames:
        kb = linker.kb
        kind = NearNames if self.forms == "near" else Dictionary
        with kb.guard.reading():
            return self._built.get(
                "names",
                (kb, kb.edits),
                lambda: kind.of(
                    linker.vocab, self.stop_words, kb.entities, self.top_terms
                ),
            )


def _names_of_linker(
    stop_words: Container[str], linker: ArboLinker, *settings: Any
) -> ArboNames:
    return ArboNames(stop_words, lambda names, vocab: linker, *settings)


def _is_in(names: ArboNames, nlp: Language | None, vocab: Vocab | None) -> bool:
    """Return whether a pipeline has a component. vocab: That of its documents, if known."""
    if nlp is None or vocab not in (None, nlp.vocab):
        return False
    return any(pipe is names for _, pipe in nlp.components)


def _linker_after(
    names: ArboNames, nlp: Language | None, linker_name: str | None
) -> ArboLinker:
    components = [] if nlp is None else nlp.components
    linkers = [
        (name, pipe) for name, pipe in components if isinstance(pipe, ArboLinker)
    ]
    named = [pipe for name, pipe in linkers if name == linker_name]
    behind = dropwhile(lambda named_pipe: named_pipe[1] is not names, components)
    after = [pipe for _, pipe in behind if isinstance(pipe, ArboLinker)]
    # A linker that was renamed is the only one.
    matching = named or after[: 1 if not linker_name or len(after) == 1 else 0]
    if matching:
        return matching[0]
    raise Errors.E511(wanted=linker_name or "arbo_linker")


def mark_names(
    doc: Doc,
    finder: Dictionary | NearNames,
    getter: SpanGetter,
    overwrite: bool = True,
) -> Doc:
    """Set the names of a document as its mentions.

    The label of a mention is the first type of the first entity of that name.

    getter: Where mentions are put.
    overwrite: Whether mentions that are there are replaced. Otherwise names that overlap with
        one are left out.
    """
    spans = []
    for start, end, name, read_as in finder.hits(doc):
        spans.append(Span(doc, start, end, label=finder.names[name].label))
        if read_as != spans[-1]._.get(FOUND_AS):
            spans[-1]._.set(FOUND_AS, read_as)
    if not overwrite:
        key = getter.spans_key
        earlier_spans = list(doc.ents if key is None else doc.spans.get(key, ()))
        taken = {token.i for span in earlier_spans for token in span}
        free = (
            span for span in spans if taken.isdisjoint(range(span.start, span.end))
        )
        spans = [*earlier_spans, *free]
    set_mentions(doc, spans, getter)
    return doc


def make_finder(nlp: Language, linker: ArboLinker, find: str) -> Finder | None:
    """A function that finds the mentions of documents. None where these have their own.

    find: "" for the documents' own, and names where a document has none, if the pipeline has
        ``arbo_names``; "pipeline" for the components before the linker, "names" for the names of
        the knowledge base, or another pipeline: a folder or an installed package.
    """
    if not find:
        return _finder_of_missing(nlp, linker)
    if find == "pipeline":
        return _finder_of_pipeline(nlp, linker)
    if find == "names":
        names = _names_of_linker(nlp.Defaults.stop_words, linker, True)
        return lambda docs: map(names, docs)
    return _finder_of_other(nlp, linker, find)


def _finder_of_missing(nlp: Language, linker: ArboLinker) -> Finder | None:
    """A function that finds names in the documents without mentions, by ``arbo_names``.

    None where the pipeline does not have it before the linker.
    """
    pipes = [pipe for _, pipe in nlp.pipeline]
    names = [
        pipe for pipe in pipes[: pipes.index(linker)] if isinstance(pipe, ArboNames)
    ]
    getter = linker.mentions.getter

    def find(docs: Iterable[Doc]) -> Iterator[Doc]:
        return (doc if find_mentions(doc, getter) else names[0](doc) for doc in docs)

    return find if names else None


def _finder_of_pipeline(nlp: Language, linker: ArboLinker) -> Finder:
    pipes = [pipe for _, pipe in nlp.pipeline]
    names = nlp.pipe_names[: pipes.index(linker)]
    if not names:
        raise Errors.E791(names=", ".join(nlp.pipe_names))

    def find(docs: Iterable[Doc]) -> Iterable[Doc]:
        with nlp.select_pipes(enable=names):
            yield from nlp.pipe(docs)

    return find


def _finder_of_other(nlp: Language, linker: ArboLinker, name: str) -> Finder:
    finder_pipeline = spacy.load(name)
    getter = linker.mentions.getter

    def find(docs: Iterable[Doc]) -> Iterator[Doc]:
        pairs = ((doc.text, document_id(doc)) for doc in docs)
        for parsed, doc_id in finder_pipeline.pipe(pairs, as_tuples=True):
            doc = same_tokens(parsed, nlp.vocab)
            if doc_id:
                doc.user_data["doc_id"] = doc_id
            spans = parsed.spans.get(getter.spans_key or "", parsed.ents)
            copies = [
                Span(doc, span.start, span.end, label=span.label_) for span in spans
            ]
            set_mentions(doc, copies, getter)
            yield doc

    return find
