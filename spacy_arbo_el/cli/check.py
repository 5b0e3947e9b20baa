"""The command ``arbo check``: problems of data before training."""

from pathlib import Path
from typing import TYPE_CHECKING

from spacy.cli._util import Arg, Opt
from wasabi import msg

from ._util import errors_for_people, visible
from .arguments import LANG, check_annotated

if TYPE_CHECKING:
    from ..evaluation.data_check import Finding
    from ..evaluation.statistics import Statistics


def check_command(
    # fmt: off
    data: Path = Arg(..., help="Annotated .spacy file to train on, or a folder of them"),
    kb_path: Path = Arg(..., metavar="KB", help="Folder of a knowledge base, or file of entities"),
    dev: Path | None = Opt(None, "--dev", help="Annotated .spacy file to evaluate on"),
    spans_key: str = Opt("", "--spans-key", help="Group of doc.spans; by default, doc.ents"),
    lang: str = LANG,
    # fmt: on
) -> None:
    """Find problems in a corpus and a KB.

    Prints statistics, problems with examples and advice, and a config and an encoder that suit the
    data. Nothing is changed or trained.

    \b
    Example:
      python -m spacy arbo check train.spacy kb --dev dev.spacy
    """
    import spacy

    from ..corpora.docbin import read_docs
    from ..evaluation.data_check import check_corpus, check_kb, recommend, survey_kb
    from ..evaluation.seen import Seen
    from ..evaluation.statistics import corpus_statistics, read_gold
    from ..kb.loaders import load_kb
    from ..mentions.getters import EntSpans, GroupSpans
    from .init_config import check_language

    getter = GroupSpans(spans_key) if spans_key else EntSpans()
    with errors_for_people():
        check_language(lang)
        for path in (data, *([dev] if dev else [])):
            check_annotated(path)
        nlp = spacy.blank(lang)
        kb = load_kb(kb_path, nlp.vocab)
        train = read_gold(read_docs(data, nlp.vocab), getter, nlp.tokenizer)
        held_out = read_gold(read_docs(dev, nlp.vocab), getter, nlp.tokenizer) if dev else None
        survey = survey_kb(kb)
        columns = {"train": corpus_statistics(train, kb)}
        if held_out is not None:
            seen = Seen.of(kb, [mention.record for mention in train.mentions])
            columns["dev"] = corpus_statistics(held_out, kb, seen)
        findings = [*check_corpus(train, kb, held_out), *check_kb(kb, survey)]
        config, encoder = recommend(train, survey)
    _print_statistics(columns)
    for finding in findings:
        _print_finding(finding)
    msg.info(visible(f"Config: {config}"))
    msg.info(visible(f"Encoder: {encoder}"))


def _print_statistics(columns: "dict[str, Statistics]") -> None:
    names = dict.fromkeys(name for column in columns.values() for name in column)
    rows = [(name, *(_cell(column.get(name)) for column in columns.values())) for name in names]
    msg.table(rows, header=("", *columns), aligns=("l", *"rr"[: len(columns)]), max_col=60)


def _cell(value: "float | None") -> str:
    if value is None:
        return "–"
    return f"{value:.1%}" if isinstance(value, float) else f"{value:,}"


def _print_finding(finding: "Finding") -> None:
    if not finding.count:
        msg.good(f"No {finding.what}")
        return
    msg.warn(f"{finding.count:,} of {finding.total:,} {finding.what}")
    for example in finding.examples:
        print(visible(f"    {example}"))
    print(f"  → {finding.advice}")
