"""Raw texts with names of a small dictionary, and what is found in them."""

import json

import spacy
from spacy.tokens import DocBin

from spacy_arbo_el.corpora.docbin import read_docs
from spacy_arbo_el.kb.entity import Entity
from spacy_arbo_el.kb.importers import write_entities_jsonl

ENTITIES = [
    Entity("flu", "influenza", aliases=["grippe", "flu virus"], types=["Disease"]),
    Entity("cold", "common cold", aliases=["rhinitis"], types=["Disease"]),
    Entity("asthma", "asthma", aliases=["reactive airway"]),
    Entity("gout", "gout", aliases=["podagra"]),
    Entity("x", "rhinitis"),
]
NAMES = ["influenza", "grippe", "common cold", "asthma", "podagra", "gout", "rhinitis", "fever"]


def write_dictionary(path):
    write_entities_jsonl(ENTITIES, path)
    return path


def write_texts(folder):
    """Files of each kind that is cut into shards, and one that is not."""
    lines = [f"Case {n} had {NAMES[n % 8]}. Then {NAMES[n * n % 7]} came." for n in range(40)]
    (folder / "a.txt").write_text("\n".join(lines[:12] + ["", *lines[12:17]]), encoding="utf8")
    records = [
        {"id": f"j{n}", "text": text} if n % 3 else {"text": text}
        for n, text in enumerate(lines[17:28])
    ]
    (folder / "b.jsonl").write_text("".join(json.dumps(r) + "\n" for r in records))
    nlp = spacy.blank("en")
    docs = [nlp(text) for text in lines[28:36]]
    for number, doc in enumerate(docs):
        doc.user_data["doc_id"] = f"s{number}"
    DocBin(docs=docs, store_user_data=True).to_disk(folder / "c.spacy")
    rows = "".join(f"{text}\n" for text in lines[36:])
    (folder / "d.csv").write_text("text\n" + rows)
    return folder


def contents(path):
    """The ids, texts and mentions of a .spacy file."""
    return [
        (doc.user_data["doc_id"], doc.text, [(e.start, e.end, e.kb_id_) for e in doc.ents])
        for doc in read_docs(path, spacy.blank("en").vocab)
    ]
