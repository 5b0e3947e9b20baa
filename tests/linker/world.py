"""A small knowledge base and corpus with real ambiguity, for tests of the whole component."""

import json
import re

import spacy
from spacy.tokens import Doc, Span
from spacy.training import Example

from spacy_arbo_el import Entity
from spacy_arbo_el.corpora.docbin import write_docbin
from spacy_arbo_el.kb.importers import write_entities_jsonl

from ..cases import cases

ENTITIES = [Entity(*row) for row in cases("world_entities")]
TRAIN, DEV = cases("world_train"), cases("world_dev")


def parse(marked):
    """ "a [b|x]" -> "a b" and [(2, 3, "x")]."""
    text, mentions = "", []
    for part in re.split(r"(\[[^\]]*\])", marked):
        if part.startswith("["):
            surface, kb_id = part[1:-1].split("|", 1)
            mentions.append((len(text), len(text) + len(surface), kb_id))
            text += surface
        else:
            text += part
    return text, mentions


def annotated(nlp, marked, key="", label="THING"):
    """A Doc with gold mentions in ``doc.ents``, or in a span group."""
    text, mentions = parse(marked)
    doc = nlp.make_doc(text)
    spans = []
    for start, end, kb_id in mentions:
        found = doc.char_span(start, end)
        assert found is not None, f"{text[start:end]!r} cuts a token"
        spans.append(Span(doc, found.start, found.end, label=label, kb_id=kb_id))
    if key:
        doc.spans[key] = spans
    else:
        doc.ents = spans
    return doc


def docs_of(nlp, texts=TRAIN):
    """Marked texts as documents with gold mentions."""
    return [annotated(nlp, text) for text in texts]


def without_links(doc, key=""):
    """A copy with the same mentions and without links."""
    copy = Doc(doc.vocab, words=[t.text for t in doc], spaces=[bool(t.whitespace_) for t in doc])
    old = doc.spans[key] if key else doc.ents
    spans = [Span(copy, s.start, s.end, label=s.label) for s in old]
    if key:
        copy.spans[key] = spans
    else:
        copy.ents = spans
    return copy


def unlinked_doc(nlp, marked, **settings):
    """A marked text as a document with mentions and without links."""
    return without_links(annotated(nlp, marked, **settings))


def unlinked_docs(nlp, texts=(*DEV, *TRAIN)):
    """Marked texts as documents with mentions and without links."""
    return [unlinked_doc(nlp, text) for text in texts]


def links_of(docs):
    """The links of documents as values that can be compared."""
    return [[(ent.kb_id_, ent._.arbo) for ent in doc.ents] for doc in docs]


def examples(nlp, marked, key=""):
    docs = [annotated(nlp, text, key) for text in marked]
    return [Example(without_links(doc, key), doc) for doc in docs]


def as_jsonl(texts):
    """Marked texts as lines of documents with mentions."""
    lines = []
    for number, marked in enumerate(texts):
        text, mentions = parse(marked)
        spans = [{"start": s, "end": e, "label": "THING", "kb_id": i} for s, e, i in mentions]
        lines.append(json.dumps({"id": str(number), "text": text, "mentions": spans}))
    return "\n".join(lines) + "\n"


def write_corpus(folder):
    """Writes corpus and knowledge base to files. RETURNS: Overrides for a config's ``paths``."""
    nlp = spacy.blank("xx")
    write_docbin([annotated(nlp, text) for text in TRAIN], folder / "train.spacy")
    write_docbin([annotated(nlp, text) for text in DEV], folder / "dev.spacy")
    write_entities_jsonl(ENTITIES, folder / "kb.jsonl")
    names = {"train": "train.spacy", "dev": "dev.spacy", "kb": "kb.jsonl"}
    return {f"paths.{name}": str(folder / file) for name, file in names.items()}
