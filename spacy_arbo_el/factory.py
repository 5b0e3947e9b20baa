"""The factory behind ``nlp.add_pipe("arbo_linker")``, with its complete default config."""

from collections.abc import Callable
from typing import Any

from spacy.language import Language
from thinc.api import Config, Model

from .base.errors import Warnings
from .base.extras import import_transformers
from .config_sources import DEFAULT_CONFIG
from .discovery.grouping import Discovery
from .find.finders import ArboNames, made_for
from .linker import ArboLinker
from .linking.coverage import CoverageSetting
from .mentions.annotations import Overwrite
from .mentions.reader import MentionSettings
from .ranking.decisions import Inference
from .ranking.ranking import Reranker
from .retrieval.settings import RetrieverSettings
from .training.objective import TrainingObjective

# spaCy imports the factories of spacy-transformers too, with all that transformers imports.
import_transformers()

SCORE_WEIGHTS = {
    "nel_micro_f": 1.0,
    "nel_micro_p": None,
    "nel_micro_r": None,
    "nel_score": None,
    "arbo_acc": 0.0,
    "arbo_balanced_acc": 0.0,
    "arbo_recall_at_1": 0.0,
    "arbo_recall_at_8": None,
    "arbo_recall_at_64": 0.0,
    "arbo_nil_p": None,
    "arbo_nil_r": None,
    "arbo_nil_f": None,
}


@Language.factory(
    "arbo_linker",
    assigns=["token.ent_kb_id", "span._.arbo", "doc.spans"],
    requires=["doc.ents"],
    default_config=Config().from_disk(DEFAULT_CONFIG)["arbo_linker"],
    default_score_weights=SCORE_WEIGHTS,
)
def make_arbo_linker(
    nlp: Language,
    name: str,
    model: Model,
    mentions: MentionSettings,
    retriever: RetrieverSettings,
    reranker: Reranker,
    inference: Inference,
    discovery: Discovery | None,
    objective: TrainingObjective,
    scorer: Callable | None,
    threshold: float | dict[str, float],
    coverage: CoverageSetting,
    overwrite: Overwrite,
    use_gold_ents: bool,
    extension: str,
    calibration: dict[str, list[float]] | None,
) -> ArboLinker:
    """Build an ``ArboLinker``, which explains the settings."""
    settings: dict[str, Any] = dict(locals())
    del settings["nlp"]
    for pipe_name, pipe in nlp.components:
        if isinstance(pipe, ArboLinker) and pipe.cfg["extension"] == extension:
            Warnings.W544.warn(name=name, other=pipe_name, extension=extension)
    linker = ArboLinker(nlp.vocab, **settings)
    linker.cfg.belong_to(linker, nlp)
    made_for.add(nlp)
    return linker


@Language.factory(
    "arbo_names",
    assigns=["doc.ents", "doc.spans"],
    default_config={
        "linker": None,
        "overwrite": False,
        "forms": "near",
        "top_terms": False,
    },
)
def make_arbo_names(
    nlp: Language,
    name: str,
    linker: str | None,
    overwrite: bool,
    forms: str,
    top_terms: bool,
) -> ArboNames:
    """Build the component ``ArboNames``, which explains the settings."""
    return ArboNames.of(
        nlp, linker, overwrite=overwrite, forms=forms, top_terms=top_terms
    )
