"""Add a trained linker to a pipeline that finds its own entities.

    python examples/existing_app.py training/demo/model-best

The pipeline of the app has an entity ruler; it could also have an NER. It gets the linker,
processes documents in two processes, is saved and loaded again, and gives the same links.
"""

import sys
import tempfile

import spacy


def existing_app(linker_pipeline):
    """A pipeline that finds mentions by itself: here, all names of the knowledge base."""
    nlp = spacy.blank("en")
    ruler = nlp.add_pipe("entity_ruler", config={"phrase_matcher_attr": "LOWER"})
    kb = linker_pipeline.get_pipe("arbo_linker").kb
    labels = {
        name: (entity.types or ("ENTITY",))[0]
        for entity in kb
        for name in entity.names
    }
    ruler.add_patterns(
        [{"label": label, "pattern": name} for name, label in labels.items()]
    )
    return nlp


def links(docs):
    return [
        [(ent.text, ent.kb_id_, ent._.arbo.score) for ent in doc.ents] for doc in docs
    ]


def main(model: str) -> None:
    trained = spacy.load(model)
    kb = trained.get_pipe("arbo_linker").kb
    texts = [
        f"Yesterday {entity.title} was in the news again." for entity in list(kb)[:20]
    ]
    nlp = existing_app(trained)
    nlp.add_pipe("arbo_linker", source=trained)
    print("pipeline:", nlp.pipe_names)
    docs = list(nlp.pipe(texts, n_process=2, batch_size=4))
    for doc in docs[:5]:
        for ent in doc.ents:
            print(f"  {ent.text} [{ent.label_}] -> {ent._.arbo.path}")
    with tempfile.TemporaryDirectory() as folder:
        nlp.to_disk(folder)
        reloaded = list(spacy.load(folder).pipe(texts))
    assert links(reloaded) == links(docs), "the reloaded pipeline links differently"
    print(f"{sum(map(len, links(docs)))} links, the same after saving and loading")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
