"""Names of removed parts: a config that names one gets an error that says what replaced it.

Each is listed in the entry points of ``setup.cfg`` under the name it had.
"""

from inspect import Parameter, Signature
from typing import Any, Callable

from .errors import Errors


def removed(name: str, instead: str, *settings: str) -> Callable[..., Any]:
    """A registered function that raises an error.

    name: The registered name, without ``spacy-arbo-el.``.
    instead: What to do instead, one or more sentences.
    settings: The names of the settings it had, which a config may still give.
    """

    def build(**values: Any) -> Any:
        raise ValueError(Errors.E990.format(name=name, instead=instead))

    parameters = [Parameter(s, Parameter.KEYWORD_ONLY, default=None) for s in settings]
    build.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    return build


IVF = removed(
    "IVF.v1",
    'Use FaissIndex.v1 with factory = "IVF2048,PQ96x4fs", search = "nprobe=32" and rescore = 4.0: '
    "n_lists (by default about twice the square root of the number of vectors), codes and "
    'n_probes (by default one list in 64). In place of codes = "pq4" stands PQ with a quarter of '
    'the width of the vectors and x4fs, of "pq8" PQ with an eighth, of "sq8" SQ8, of "sq4" SQ4, '
    'of "float16" SQfp16, of "float32" Flat.',
    *("n_lists", "n_probes", "codes", "rescore_factor"),
)
HNSW = removed(
    "HNSW.v1",
    'Use FaissIndex.v1 with factory = "HNSW32", search = "efSearch=96" and rescore = 2.0: n_links '
    'and ef_search. With codes = "sq8", factory is "HNSW32,SQ8".',
    *("n_links", "ef_construction", "ef_search", "codes", "rescore_factor"),
)
PROJECTION = removed("Projection.v1", "Use the encoder inside of it.", "encoder", "width")
TRIPLET = removed("Triplet.v1", "Use CrossEntropy.v1.", "margin")
MARGIN = removed(
    "Margin.v1",
    "Use the inference procedure inside of it, such as Clustering.v1.",
    "inference",
    "min_difference",
)
STRING_LOOKUP = removed(
    "StringLookup.v1",
    "Remove the section retriever.lookup: mentions that the encoder cannot read have the entities "
    "of their exact name as candidates without it.",
    *("n_exact", "n_fuzzy", "min_similarity"),
)
INTERPOLATED_ADAM = removed(
    "InterpolatedAdam.v1",
    "Use Adam.v1 with use_averages = false, and start_share = 0.5 in Calibrate.v1 of "
    "training.before_to_disk.",
    *("learn_rate", "start_share", "beta1", "beta2", "eps", "L2", "grad_clip"),
    *("L2_is_weight_decay", "use_averages"),
)
_SCORER = "Remove mention_scorer: edges between mentions have the similarity of their vectors."
MENTION_PAIRS = removed("MentionPairs.v1", _SCORER, "n_scored", "window")
NEAREST_PAIRS = removed("NearestPairs.v1", _SCORER, "n_right", "n_wrong", "n_searched")
