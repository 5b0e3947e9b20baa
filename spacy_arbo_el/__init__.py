"""Trainable entity linking and entity discovery for spaCy.

The public names are imported when they are first used, so that ``import spacy_arbo_el`` takes no
longer than ``import spacy``. It makes ``span._.arbo`` available: linked documents can be read
without a linker. For a linker with another ``extension``, call ``register_extension`` with it.
"""

from importlib import import_module
from typing import Any

from spacy.tokens import Span

from .mentions.annotations import DEFAULT_EXTENSION, register_extension

__version__ = "0.1.0"

_NAMES = {
    "ArboError": "base.errors",
    "ArboKB": "kb.knowledge_base",
    "ArboLinker": "linker",
    "Calibration": "base.calibration",
    "Candidate": "mentions.annotations",
    "Decisions": "ranking.decisions",
    "Entity": "kb.entity",
    "Evidence": "mentions.annotations",
    "Explanation": "mentions.explanation",
    "Link": "mentions.annotations",
    "LinkingStages": "linking.stages",
    "MentionBatch": "mentions.record",
    "MentionRecord": "mentions.record",
    "Neighbours": "retrieval.neighbours",
    "NewEntities": "discovery.new_entities",
    "NewEntity": "discovery.entities",
    "Ranking": "ranking.ranking",
    "RankingContext": "ranking.ranking",
    "SpanInputs": "encoders.inputs",
    "TopK": "base.arrays",
    "candidates_to_dicts": "show.frames",
    "draw_arborescence": "show.arborescence",
    "edit_pipeline": "pipelines",
    "find_linker": "linker",
    "links_to_dicts": "show.frames",
    "load_pipeline": "pipelines",
    "render_evidence": "show.html",
    "save_pipeline": "pipelines",
    "to_displacy": "show.html",
}
__all__ = ["__version__", "register_extension", *_NAMES]

# The name may belong to another package; the linker says so where it wants it.
if not Span.has_extension(DEFAULT_EXTENSION):
    register_extension(DEFAULT_EXTENSION)


def __getattr__(name: str) -> Any:
    if name not in _NAMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_NAMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
