"""Documents of names that the small world's knowledge base lacks."""

import random

from ..linker.world import unlinked_doc

NEW = [
    "The [Zorblat|x] landed on the roof.",
    "They sold [Quimby's fizzle|y] in the shop.",
    "A green [Zorblat|x] landed on the roof again.",
    "We drank [Quimby's fizzle|y] in the shop, and [Quimby's fizzle|y] at home.",
    "Every [Zorblat|x] landed on the roof & left.",
    "The town of [Ulmenau|z] has a bridge over the [Amazon|river].",
    "In [Ulmenau|z], the town with a bridge, a green [Zorblat|x] landed.",
]


def docs_of(nlp, texts=NEW):
    return [unlinked_doc(nlp, text) for text in texts]


def clusters(docs):
    return [ent._.arbo.cluster for doc in docs for ent in doc.ents if ent._.arbo.is_nil]


def many(count, seed=0):
    """A corpus of invented names, each in a few sentences, in random order."""
    rng = random.Random(seed)
    letters = "bdfgklmnprstvz"
    names = [
        "".join(rng.choice(letters) + rng.choice("aeiou") for _ in range(4)) for _ in range(12)
    ]
    frames = ["We saw [{}|x] in the morning.", "Nobody has heard of [{}|x].", "[{}|x] was closed."]
    return [rng.choice(frames).format(rng.choice(names).title()) for _ in range(count)]
