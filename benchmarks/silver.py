"""What links without labels: one factor at a time.

    python benchmarks/silver.py silver.cfg corpus/silver.spacy corpus/silver_dev.spacy \
        kb/medic_hidden kb/medic_half corpus/ncbi_dev.spacy corpus/bc5cdr_dev.spacy \
        [--corpus "one entity a sentence=corpus/silver_one.spacy"] [--encoder "synonyms=encoder"]

A row is an untrained pipeline with silver mentions as exemplars. Reranker and probabilities are
fitted on the dev set of hidden names, and then it has the whole knowledge base. Printed is its
accuracy on the gold mentions of each corpus. Rows differ in one thing: normalization, contexts, the
reranker, how many mentions of a name there are, and what options add.

The second row is the first pipeline with reranker and probabilities fitted on gold mentions: on the
other folds of the corpus.
"""

import argparse
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Dict, Iterator, List, Optional, Sequence, Tuple

import numpy as np
import spacy
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training.initialize import init_nlp
from spacy.util import load_config

from spacy_arbo_el.corpora.names import key_of
from spacy_arbo_el.corpora.parts import write_parts
from spacy_arbo_el.corpora.reader import create_mention_corpus, read_docs
from spacy_arbo_el.corpora.silver import choose
from spacy_arbo_el.evaluation.calibrate import calibrate_pipeline
from spacy_arbo_el.evaluation.report import CONFIGURED, compare_inference
from spacy_arbo_el.kb.knowledge_base import ArboKB
from spacy_arbo_el.linker import find_linker

NORMALIZER = "components.arbo_linker.mentions.normalizer"
RERANKER = "components.arbo_linker.reranker"
NO_RERANKER = {"@misc": "spacy-arbo-el.BestEvidence.v1"}
PER_NAME = (1, 5, 10)
FOLDS = 5


def keep(docs: Sequence[Doc], kept: Sequence[Sequence[bool]]) -> List[Doc]:
    """The documents with some of their mentions; those without are left out."""
    for doc, chosen in zip(docs, kept):
        doc.ents = [span for span, is_kept in zip(doc.ents, chosen) if is_kept]
    return [doc for doc in docs if doc.ents]


def at_most(docs: Sequence[Doc], per_name: int) -> List[Doc]:
    """The documents with at most so many mentions of each name, by chance."""
    names = [key_of(span.text) for doc in docs for span in doc.ents]
    _, numbers = np.unique(names, return_inverse=True)
    ends = np.cumsum([len(doc.ents) for doc in docs])
    return keep(docs, np.split(choose(numbers, per_name, seed=0), ends[:-1]))


def known(docs: Sequence[Doc], kb: Path, dev: Sequence[Doc]) -> List[Doc]:
    """Mentions of names that the knowledge base has, in documents that are not in dev."""
    in_dev = {doc.user_data["doc_id"] for doc in dev}
    docs = [doc for doc in docs if doc.user_data["doc_id"] not in in_dev]
    names = {key_of(name) for entity in ArboKB.for_reading(kb).entities for name in entity.names}
    return keep(docs, [[key_of(span.text) in names for span in doc.ents] for doc in docs])


def without_mentions(docs: Sequence[Doc]) -> List[Doc]:
    """A document without a mention: no exemplars."""
    docs[0].ents = []
    return [docs[0]]


@contextmanager
def written(docs: Sequence[Doc]) -> Iterator[Path]:
    """The documents in a file."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "train.spacy"
        write_parts(docs, path)
        yield path


class Table:
    """Rows of accuracies.

    options: Those of the command.
    """

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.vocab = spacy.blank("en").vocab
        self.dev = list(read_docs(options.dev, self.vocab))
        corpora = " | ".join(path.stem for path in options.scored)
        print(f"| | {corpora} |\n|---|{'---|' * len(options.scored)}")

    def read(self, path: Optional[Path] = None) -> List[Doc]:
        """A corpus of silver mentions, by default that of the command."""
        return list(read_docs(path or self.options.train, self.vocab))

    def row(
        self,
        name: str,
        docs: Sequence[Doc],
        changes: Optional[Dict[str, Any]] = None,
        encoder: Optional[Path] = None,
    ) -> Language:
        """Print the row of a pipeline, which is returned.

        docs: Its exemplars.
        changes: Sections that differ from the config.
        encoder: Of the pipeline, instead of the config's.
        """
        with written(docs) as path:
            nlp = self.pipeline(path, changes or {}, encoder)
        calibrate_pipeline(nlp, self.dev)
        linker = find_linker(nlp)
        linker.set_kb(self.options.kb, reencode=True)
        linker.refresh()
        self.score(name, nlp)
        return nlp

    def score(self, name: str, nlp: Language, folds: int = 0) -> None:
        """Print the accuracies of a pipeline.

        folds: Fit on gold mentions in so many folds instead of hidden names; 0 for hidden names.
        """
        accuracies = []
        for scored in self.options.scored:
            examples = list(create_mention_corpus(scored)(nlp))
            scores = compare_inference(nlp, examples, folds=folds)[CONFIGURED]
            accuracies.append(f"{scores['arbo_acc']:.4f}")
        print(f"| {name} | {' | '.join(accuracies)} |", flush=True)

    def pipeline(self, train: Path, changes: Dict[str, Any], encoder: Optional[Path]) -> Language:
        """The untrained pipeline of the config."""
        paths = {"train": train, "dev": train, "kb": self.options.hidden}
        if encoder is not None:
            paths["encoder"] = encoder
        settings = {f"paths.{name}": str(path) for name, path in paths.items()}
        overrides = {**settings, **changes}
        return init_nlp(load_config(self.options.config, overrides=overrides, interpolate=False))


def named(text: str) -> Tuple[str, Path]:
    """NAME=PATH."""
    name, _, path = text.partition("=")
    return name, Path(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("config", "train", "dev", "hidden", "kb"):
        parser.add_argument(name, type=Path)
    parser.add_argument("scored", type=Path, nargs="+")
    parser.add_argument("--corpus", type=named, action="append", default=[])
    parser.add_argument("--encoder", type=named, action="append", default=[])
    options = parser.parse_args()
    table = Table(options)
    untrained = table.row("untrained", table.read())
    table.score("fitted on gold mentions", untrained, folds=FOLDS)
    table.row("no normalization", table.read(), {NORMALIZER: None})
    table.row("no contexts", without_mentions(table.read()))
    table.row("no reranker", table.read(), {RERANKER: NO_RERANKER})
    for count in PER_NAME:
        table.row(f"at most {count} of a name", at_most(table.read(), count))
    for name, path in options.corpus:
        table.row(name, known(table.read(path), options.hidden, table.dev))
    for name, path in options.encoder:
        table.row(name, table.read(), encoder=path)


if __name__ == "__main__":
    main()
