"""Removed parts and settings. A config that has one gets an error that says what replaced it.

Each part is listed in the entry points of ``setup.cfg`` under the name it had. Of removed settings
confection says no more than that they are unexpected, before any function of ours is called.
"""

from inspect import Parameter, Signature
from typing import Any, Callable, Dict, Iterator, Tuple

from thinc.api import Config

from .errors import ArboError, Errors

# The dotted name of a section with a dot at its end, the section, and the name of the setting
Removed = Tuple[str, Dict[str, Any], str]


def removed(name: str, instead: str, *settings: str) -> Callable[..., Any]:
    """A registered function that raises an error.

    name: The registered name, without ``spacy-arbo-el.``.
    instead: What to do instead, one or more sentences.
    settings: The names of the settings it had, which a config may still give.
    """

    def build(**values: Any) -> Any:
        raise ArboError(Errors.E990.format(name=name, instead=instead))

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
KB_WITH_ONTOLOGIES = removed(
    "KBWithOntologies.v1", "Use KBFromPath.v1, which reads OBO files too.", "path", "ontologies"
)
PROJECTION = removed("Projection.v1", "Use the encoder inside of it.", "encoder", "width")
TRIPLET = removed("Triplet.v1", "Use CrossEntropy.v1.", "margin")
MARGIN = removed(
    "Margin.v1",
    "Use the inference procedure inside of it, such as Clustering.v1.",
    "inference",
    "min_difference",
)
_LOOKUP = "Mentions that the encoder cannot read have the entities of their exact name anyhow."
STRING_LOOKUP = removed("StringLookup.v1", _LOOKUP, "n_exact", "n_fuzzy", "min_similarity")
INTERPOLATED_ADAM = removed(
    "InterpolatedAdam.v1",
    "Use Adam.v1 with use_averages = false, and start_share = 0.5 in Calibrate.v1 of "
    "training.before_to_disk.",
    *("learn_rate", "start_share", "beta1", "beta2", "eps", "L2", "grad_clip"),
    *("L2_is_weight_decay", "use_averages"),
)
_SCORER = "Edges between mentions have the similarity of their vectors."
MENTION_PAIRS = removed("MentionPairs.v1", _SCORER, "n_scored", "window")
NEAREST_PAIRS = removed("NearestPairs.v1", _SCORER, "n_right", "n_wrong", "n_searched")
_MENTIONS = 'Use ArborescencePositives.v1 with mentions = "{}".'
NEAREST_MENTION = removed("Arborescence1NNPositives.v1", _MENTIONS.format("nearest"), "with_entity")
RANDOM_MENTION = removed("Arborescence1RandPositives.v1", _MENTIONS.format("random"), "with_entity")

SETTINGS: Dict[str, str] = {
    "mention_scorer": _SCORER,
    "lookup": _LOOKUP,
    "max_exemplars": "All exemplars of an entity are searched.",
    "definition": "With description = true, the description follows each name.",
    "qualifier": "With description = true, the description tells entities of one name apart.",
    "least_similar": "Synonyms are drawn at random.",
    "layers": "A transformer has all its layers.",
    "title": "A window has the text around the mention alone.",
    "same_type": "Negatives are of all types.",
    "set_size": "A candidate is read with the mention alone.",
    "folds": "experiments/cross_fitting.py trains on folds.",
    "fold_steps": "experiments/cross_fitting.py trains on folds.",
}


def drop_removed(config: Config, place: object) -> Config:
    """Remove obsolete settings without effect from a config. Such as null.

    Raises ValueError where it has others, with what replaced each of them.

    config: A whole config, which is changed.
    place: Where it is from.
    """
    found = list(_removed_in(config))
    texts = [
        f"{prefix}{name}: {SETTINGS[name]}"
        for prefix, section, name in found
        if section[name] not in (None, 0, False, 1 if name == "set_size" else None)
    ]
    if texts:
        raise ArboError(Errors.E991.format(place=place, settings=" ".join(texts)))
    for _, section, name in found:
        del section[name]
    return config


def _removed_in(section: Dict[str, Any], prefix: str = "") -> Iterator[Removed]:
    """The removed settings of this package's parts."""
    parts = [section.get("factory"), *(value for key, value in section.items() if key[0] == "@")]
    is_ours = any(str(part).startswith(("arbo_linker", "spacy-arbo-el.")) for part in parts)
    for key, value in section.items():
        if key in SETTINGS and is_ours:
            yield prefix, section, key
        elif isinstance(value, dict):
            yield from _removed_in(value, f"{prefix}{key}.")
