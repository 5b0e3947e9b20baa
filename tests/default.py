"""The default pipeline over a list of diseases, as users have it."""

import spacy

from spacy_arbo_el import Entity

from .cases import cases

ORGANS = dict(cases("organs"))
CONDITIONS = dict(cases("conditions"))
# Two entities of one name, which their descriptions tell apart.
NAMESAKES = [
    Entity("cold:illness", "cold", "A viral infection of the nose with cough and sneezing."),
    Entity("cold:weather", "cold", "A low temperature of the air in winter."),
]
TEXT = (
    "Chronic renal failure (CRF) was found. Her CRF followed kidney infection, not liver cancer. "
    "The gastric haemorrhage stopped; Zorblax did not help. He had a cardiac infarction."
)
MENTIONS = ["CRF followed", "kidney infection", "liver cancer", "gastric haemorrhage", "Zorblax"]
MENTIONS += ["cardiac infarction"]


def entities():
    """302 entities: diseases of organs, each with its name in Latin, every second described."""
    diseases = [
        Entity(
            f"{organ}:{condition}",
            f"{organ} {condition}",
            f"A {condition} of the {organ}." if number % 2 else "",
            [f"{ORGANS[organ]} {CONDITIONS[condition]}", f"{ORGANS[organ]} {condition}"],
        )
        for number, (organ, condition) in enumerate((o, c) for o in ORGANS for c in CONDITIONS)
    ]
    return [*diseases, *NAMESAKES]


def default_pipeline():
    """What ``nlp.add_pipe("arbo_linker")`` gives, with vectors of all entities."""
    nlp = spacy.blank("en")
    nlp.add_pipe("arbo_linker").set_kb(entities())
    list(nlp.pipe([marked(nlp)]))
    return nlp


def marked(nlp, text=TEXT, mentions=MENTIONS):
    """A text with mentions as entities. What follows an abbreviation is not part of it."""
    doc, spans = nlp.make_doc(text), []
    for mention in mentions:
        start = text.index(mention)
        end = start + len(mention.replace("CRF followed", "CRF"))
        spans.append(doc.char_span(start, end, "DISEASE"))
    doc.ents = spans
    return doc


def links_in(doc):
    """The links of a document with their candidates, as plain values that can be compared."""
    return [(ent.text, ent.kb_id_, ent._.arbo.to_data()) for ent in doc.ents]
