"""Finding the mentions of documents that have none."""

from typing import TYPE_CHECKING, Callable, Iterable, Iterator, Optional

import spacy
from spacy.language import Language
from spacy.tokens import Doc, Span

from ..errors import Errors
from ..mentions.getters import set_mentions
from .names import NameFinder

if TYPE_CHECKING:
    from ..linker import ArboLinker

Finder = Callable[[Iterable[Doc]], Iterable[Doc]]


def make_finder(nlp: Language, linker: "ArboLinker", find: str) -> Optional[Finder]:
    """A function that finds the mentions of documents; None where these have their own.

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
            words = [token.text for token in found]
            spaces = [bool(token.whitespace_) for token in found]
            doc = Doc(nlp.vocab, words=words, spaces=spaces)
            if doc_id:
                doc.user_data["doc_id"] = doc_id
            spans = found.spans.get(getter.spans_key or "", found.ents)
            copies = [Span(doc, span.start, span.end, label=span.label_) for span in spans]
            set_mentions(doc, copies, getter)
            yield doc

    return find
