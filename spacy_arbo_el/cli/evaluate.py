"""``arbo evaluate`` and ``arbo compare``."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, Dict, List, Optional

from spacy.cli._util import Arg, Opt
from wasabi import msg

from ..errors import Errors
from ._util import errors_for_people
from .arguments import CODE, DATA, open_model
from .needs import check_needs

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.training import Example

    from ..evaluation.reliability import Reliability

FOLDS = Opt(
    0, "--folds", help="Cross-validation: calibrate on the other parts of the data; 0 for none"
)


def evaluate_command(
    # fmt: off
    models: List[Path] = Arg(..., help="One or more pipelines"),
    data: Path = DATA,
    output: Optional[Path] = Opt(None, "--output", "-o", help="JSON file for the scores"),
    folds: int = FOLDS,
    tune: str = Opt(
        "",
        "--tune",
        help="With --folds: choose the threshold on the other parts too, by a score: arbo_acc, "
        "arbo_nil_f or nel_micro_f",
    ),
    drop: float = Opt(
        0.0,
        "--drop",
        help="Share of the data's entities to remove from the KB; their mentions are NIL",
    ),
    seed: int = Opt(0, "--seed", help="Determines which entities are removed"),
    labels: Optional[Path] = Opt(
        None,
        "--labels",
        help="The only entities to link to: a file with an id per line, or entities as JSONL, "
        "which may be new ones. Mentions of others are NIL",
    ),
    baselines: bool = Opt(
        False, "--baselines", help="Rows for TF-IDF, alias tables and BM25 (see below) as well"
    ),
    train: Optional[Path] = Opt(
        None,
        "--train",
        help="Training mentions of the alias tables; by default the first pipeline's exemplars",
    ),
    by_frequency: bool = Opt(
        False, "--by-frequency", help="Accuracy by the number of exemplars of an entity as well"
    ),
    plots: Optional[Path] = Opt(
        None, "--plots", help="Folder for figures of recall@k and of reliability; needs matplotlib"
    ),
    oracle: str = Opt(
        "",
        "--oracle",
        help="Only score cross-encoders, on candidates with the gold entity: of the pipeline "
        "(self), or the first 16 of several (union)",
    ),
    union: List[Path] = Opt([], "--with", help="Further pipelines of a union; may be repeated"),
    limit: int = Opt(0, "--limit", help="Maximum number of documents; 0 for no limit"),
    gpu_id: int = Opt(-1, "--gpu-id", "-g", help="GPU, or -1 for the CPU"),
    code: Optional[Path] = CODE,
    # fmt: on
) -> None:
    """Score pipelines on annotated documents.

    Their mentions are given. Scores are the accuracy on seen and unseen entities, recall@k and NIL.

    Baselines search the knowledge base of the first pipeline by the mention's text alone: TF-IDF of
    characters over all names, a table of the training mentions (and of their words), and BM25 over
    titles.

    \b
    Example:
      python -m spacy arbo evaluate out/model-best dev.spacy --output scores.json
      python -m spacy arbo evaluate out/model-best dev.spacy --baselines
      python -m spacy arbo evaluate untrained out/model-best dev.spacy --folds 5
      python -m spacy arbo evaluate out/model-best dev.spacy --folds 5 --tune arbo_acc
      python -m spacy arbo evaluate out/model-best dev.spacy --folds 5 --plots figures
      python -m spacy arbo evaluate out/model-best dev.spacy --labels ids.txt
      python -m spacy arbo evaluate out/model-best dev.spacy --by-frequency
      python -m spacy arbo evaluate reranked/model-last dev.spacy --oracle self
      python -m spacy arbo evaluate reranked/model-last dev.spacy --oracle union --with other
    """
    import srsly
    from rich.console import Console
    from spacy.cli._util import setup_gpu
    from spacy.training import Example

    from ..corpora.reader import MentionCorpus, unlinked
    from ..evaluation.frequency import entity_counts, frequency_table, scores_by_frequency
    from ..evaluation.holdout import remove_entities, restrict_entities, with_removed_as_nil
    from ..evaluation.plots import check_plots
    from ..evaluation.reliability import Reliability, reliability_of_links
    from ..evaluation.report import CONFIGURED, as_table, inference_outcomes, score_rows
    from ..io import write_file
    from ..linker import find_linker
    from ..mentions.labels import check_some_annotated

    setup_gpu(gpu_id)
    with errors_for_people():
        if not baselines:
            why = "its mentions are for the alias tables"
            check_needs({"--train": train is not None}, "--baselines", why)
    if oracle or union:
        others = {
            "--output": output is not None,
            "--folds": folds != 0,
            "--tune": bool(tune),
            "--drop": drop != 0.0,
            "--labels": labels is not None,
            "--baselines": baselines,
            "--by-frequency": by_frequency,
            "--plots": plots is not None,
        }
        with errors_for_people():
            why = "an oracle only prints the scores of cross-encoders"
            check_needs(others, "no --oracle", why)
            _print_oracle(models, data, oracle, union, limit)
        return
    n_labels = 0
    rows: Dict[str, Dict[str, Any]] = {}
    frequencies: Dict[str, Dict[str, Dict[str, float]]] = {}
    reliabilities: Dict[str, Reliability] = {}
    with errors_for_people():
        if plots is not None:
            check_plots()
        names = [model.name for model in models]
        for model in models:
            label = model.name if names.count(model.name) == 1 else str(model)
            nlp = open_model(model, data)
            examples = list(MentionCorpus(data, limit=limit)(nlp))
            linker = find_linker(nlp)
            docs = [example.reference for example in examples]
            check_some_annotated(docs, linker.mentions.getter, data)
            if labels is not None:
                n_labels = restrict_entities(linker, labels)
            if drop:
                remove_entities(linker, docs, drop, seed)
            if drop or labels is not None:
                docs = with_removed_as_nil(docs, linker.kb)
                examples = [Example(unlinked(doc), doc) for doc in docs]
            if baselines and not rows:
                rows.update(_baseline_rows(nlp, examples, train))
            results = inference_outcomes(nlp, examples, folds, tune)
            for name, scores in score_rows(nlp, results).items():
                rows[f"{label}: {name}"] = scores
            if by_frequency:
                counts = entity_counts(linker.exemplars.records, linker.kb)
                for name, outcomes in results.items():
                    frequencies[f"{label}: {name}"] = scores_by_frequency(outcomes, counts)
            reliabilities[label] = reliability_of_links(results[CONFIGURED])
            rows[f"{label}: {CONFIGURED}"]["arbo_calibration_error"] = reliabilities[label].error
    title = f"Links on given mentions, {data}"
    title += _calibration(folds)
    title += f", threshold by {tune}" if tune else ""
    title += f", {n_labels} labels" if labels is not None else ""
    title += f", {drop:.0%} of the entities dropped" if drop else ""
    Console(width=130).print(as_table(rows, title))
    for label, reliability in reliabilities.items():
        msg.info(f"{label}: {CONFIGURED}, expected calibration error {reliability.error:.3f}")
    if by_frequency:
        Console(width=130).print(frequency_table(frequencies))
        for name, bands in frequencies.items():
            rows[name]["arbo_by_frequency"] = bands
    if output is not None:
        write_file(output, srsly.json_dumps(rows, indent=2).encode("utf8"))
        msg.good(f"{output}: scores")
    if plots is not None:
        _write_plots(plots, rows, reliabilities)
        msg.good(f"{plots}: recall.png and reliability.png")


def _print_oracle(
    models: List[Path], data: Path, oracle: str, union: List[Path], limit: int
) -> None:
    """Print the scores of cross-encoders on their own candidates, and on those of an oracle."""
    from rich.console import Console

    from ..corpora.reader import MentionCorpus
    from ..evaluation.cross_encoder import (
        UNION,
        OracleCandidates,
        as_oracle_table,
        oracle_scores,
    )
    from ..linker import find_linker

    if oracle not in ("self", "union") or (oracle == "union") != bool(union):
        raise ValueError(Errors.E882.format(value=oracle))
    rows = {}
    for model in models:
        nlp = open_model(model, data)
        linker = find_linker(nlp)
        docs = [example.reference for example in MentionCorpus(data, limit=limit)(nlp)]
        own = OracleCandidates.retrieve(linker, docs, UNION)
        rows[f"{model}: its first {UNION} candidates"] = oracle_scores(linker, own, docs)
        if oracle == "self":
            given = own.with_gold()
        else:
            others = [find_linker(open_model(other)) for other in union]
            given = own.united(
                [OracleCandidates.retrieve(o, docs, UNION).within(o.kb, linker.kb) for o in others]
            )
        rows[f"{model}: {oracle}"] = oracle_scores(linker, given, docs)
    Console(width=130).print(as_oracle_table(rows, f"By the scores of cross-encoders, {data}"))


def _write_plots(
    folder: Path, rows: Dict[str, Dict[str, Any]], reliabilities: "Dict[str, Reliability]"
) -> None:
    from ..evaluation.plots import plot_recall, plot_reliability, save_figure

    folder.mkdir(parents=True, exist_ok=True)
    save_figure(plot_recall(rows), folder / "recall.png")
    save_figure(plot_reliability(reliabilities), folder / "reliability.png")


def _calibration(folds: int) -> str:
    """What titles say of the calibration."""
    return f", calibrated on the other parts of {folds}" if folds >= 2 else ""


def _baseline_rows(
    nlp: "Language", examples: "List[Example]", train: Optional[Path]
) -> Dict[str, Dict[str, Any]]:
    from ..corpora.reader import read_docs
    from ..evaluation.baselines import baseline_scores, has_bm25
    from ..linker import find_linker

    if not has_bm25():
        msg.info("No BM25, which needs: pip install 'spacy_arbo_el[baselines]'")
    docs = None if train is None else list(read_docs(train, nlp.vocab))
    scores = baseline_scores(find_linker(nlp), examples, docs)
    if "alias table" not in scores:
        msg.info("No alias tables, which need exemplars, or training mentions: --train")
    return {f"baseline: {name}": row for name, row in scores.items()}


def compare_command(
    # fmt: off
    models: List[Path] = Arg(..., help="Pipelines, one per row"),
    data: Path = DATA,
    output: Optional[Path] = Opt(None, "--output", "-o", help="Markdown file for the tables"),
    folds: int = FOLDS,
    corpus: bool = Opt(False, "--corpus", help="Link all documents in one graph, as in the paper"),
    one_curve: bool = Opt(
        False, "--one-curve", help="One scale for all kinds of edges, as in the paper"
    ),
    limit: int = Opt(0, "--limit", help="Maximum number of documents; 0 for no limit"),
    gpu_id: int = Opt(-1, "--gpu-id", "-g", help="GPU, or -1 for the CPU"),
    code: Optional[Path] = CODE,
    # fmt: on
) -> None:
    """Compare pipelines in two tables.

    The first has recall@1 to recall@64. The second has the accuracy of independent, undirected and
    directed inference on seen and unseen entities, with and without exemplars.

    \b
    Example:
      python -m spacy arbo compare out/model-best other/model-best dev.spacy --output tables.md
      python -m spacy arbo compare out/model-best dev.spacy --corpus --one-curve
    """
    from spacy.cli._util import setup_gpu

    from ..corpora.reader import MentionCorpus
    from ..evaluation.comparison import as_markdown, compare_procedures
    from ..io import write_file

    setup_gpu(gpu_id)
    results = {}
    with errors_for_people():
        for model in models:
            nlp = open_model(model, data)
            # training/ncbi/in_batch/model-best is called in_batch.
            name = model.parent.name if model.name.startswith("model-") else model.name
            examples = list(MentionCorpus(data, limit=limit)(nlp))
            results[name] = compare_procedures(
                nlp, examples, folds=folds, corpus=corpus, one_curve=one_curve
            )
    title = data.stem
    title += _calibration(folds)
    title += ", in one graph" if corpus else ""
    title += ", one curve" if one_curve else ""
    tables = as_markdown(results, title)
    print(tables)
    if output is not None:
        write_file(output, tables.encode("utf8"))
        msg.good(f"{output}: tables")
