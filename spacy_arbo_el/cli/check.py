"""The command ``arbo check``: problems of data before training."""

from pathlib import Path
from typing import TYPE_CHECKING

from spacy.cli._util import Arg, Opt
from wasabi import msg

from ._util import user_errors, visible
from .arguments import LANG, check_annotated, check_needs, is_list

if TYPE_CHECKING:
    from ..evaluation.data_check import Finding
    from ..kb.knowledge_base import ArboKB


def check_command(
    # fmt: off
    data: Path = Arg(
        ...,
        help="List of entities; or annotated .spacy to train on, or a folder of them",
    ),
    kb_path: Path | None = Arg(
        None, metavar="[KB]", help="Folder of a KB, or file of entities"
    ),
    dev: Path | None = Opt(None, "--dev", help="Annotated .spacy file to evaluate on"),
    spans_key: str = Opt(
        "", "--spans-key", help="Group of doc.spans; by default, doc.ents"
    ),
    lang: str = LANG,
    write: Path | None = Opt(
        None, "--write", help="Copy of the list, with aliases that it lacks"
    ),
    # fmt: on
) -> None:
    """Find problems in a list, or in a corpus.

    Of a list alone it says what linking to it lacks. Of a corpus and a KB it prints problems
    with examples and advice, and a config and an encoder that suit the data. The list and
    the corpus stay as they are.

    \b
    Example:
      python -m spacy arbo check entities.csv --write with_short_names.csv
      python -m spacy arbo check train.spacy kb --dev dev.spacy
    """
    with user_errors():
        if kb_path is None:
            _check_list(data, lang, write)
        else:
            check_needs(
                {"--write": write is not None}, "a list alone", "no corpus is written"
            )
            _check_corpus(data, kb_path, dev, spans_key, lang)


def _check_corpus(
    data: Path, kb_path: Path, dev: Path | None, spans_key: str, lang: str
) -> None:
    import spacy

    from ..corpora.docbin import read_docs
    from ..evaluation.data_check import check_corpus, check_kb, recommend, survey_kb
    from ..evaluation.gold import read_gold
    from ..kb.loaders import load_kb
    from ..mentions.getters import EntSpans, GroupSpans
    from .init import check_language

    getter = GroupSpans(spans_key) if spans_key else EntSpans()
    check_language(lang)
    for path in (data, *([dev] if dev else [])):
        check_annotated(path)
    nlp = spacy.blank(lang)
    kb = load_kb(kb_path, nlp.vocab)
    train = read_gold(read_docs(data, nlp.vocab), getter, nlp.tokenizer)
    held_out = (
        read_gold(read_docs(dev, nlp.vocab), getter, nlp.tokenizer) if dev else None
    )
    survey = survey_kb(kb)
    findings = [*check_corpus(train, kb, held_out), *check_kb(kb, survey)]
    config, encoder = recommend(train, survey)
    msg.info(
        visible(
            f"{data}: {train.n_documents:,} documents, {len(train.mentions):,} mentions"
        )
    )
    _print_findings(findings)
    msg.info(visible(f"Config: {config}"))
    msg.info(visible(f"Encoder: {encoder}"))


def _check_list(path: Path, lang: str, write: Path | None) -> None:
    import spacy

    from ..base.bundled import english_words
    from ..base.errors import Errors
    from ..evaluation.data_check import check_kb, survey_kb
    from ..evaluation.list_check import check_list
    from ..kb.loaders import load_kb
    from .init import check_language

    check_language(lang)
    if not is_list(path):
        raise Errors.E799(path=path)
    if write is not None and write.exists():
        check_needs(
            {"--write": write.samefile(path)},
            "another file",
            "the list stays as it is",
        )
    nlp = spacy.blank(lang)
    kb = load_kb(path, nlp.vocab)
    of_list, aliases = check_list(kb, nlp.Defaults.stop_words, english_words())
    msg.info(
        visible(f"{path}: {len(kb):,} entities, {kb.entities.count_names():,} names")
    )
    _print_findings([*of_list, *check_kb(kb, survey_kb(kb))])
    if write is not None:
        _write_list(kb, aliases, write)


def _write_list(kb: "ArboKB", aliases: dict[str, list[str]], path: Path) -> None:
    from ..kb.export import write_list

    kb.update(
        [
            {"id": key, "aliases": [*kb.get(key).aliases, *names]}
            for key, names in aliases.items()
        ]
    )
    write_list(kb, path)
    n_aliases = sum(map(len, aliases.values()))
    msg.good(
        visible(f"{path}: {n_aliases:,} aliases added to {len(aliases):,} entities")
    )


def _print_findings(findings: "list[Finding]") -> None:
    for finding in findings:
        if finding.count:
            of_total = f" of {finding.total:,}" if finding.total else ""
            msg.warn(f"{finding.count:,}{of_total} {finding.what}")
            for example in finding.examples:
                print(visible(f"    {example}"))
            print(f"  → {finding.advice}")
    if absent := [finding.what for finding in findings if not finding.count]:
        msg.good(f"Not found: {'; '.join(absent)}")
