"""Encoders: texts -> vectors.

To generate text with a second model, which no encoder does, transformers imports scikit-learn, and
that pandas: a second, and 160 MB. They are left out until such a model is used.
"""

import importlib.util
import sys
from collections.abc import Sequence
from typing import Any, Optional

_GENERATION = "transformers.generation.candidate_generator"


def _roc_curve(*values: Any, **settings: Any) -> Any:
    from sklearn.metrics import roc_curve

    return roc_curve(*values, **settings)


class _WithoutSklearn:
    """Finds the one module that imports scikit-learn, and has it import that later."""

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: Any = None) -> Any:
        if name != _GENERATION:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        settings = sys.modules.get("transformers.utils.import_utils")
        has_sklearn = getattr(settings, "_sklearn_available", False)
        if spec is None or spec.loader is None or not has_sklearn:
            return spec
        run = spec.loader.exec_module

        def exec_module(module: Any) -> None:
            settings._sklearn_available = False  # type: ignore[union-attr]
            try:
                run(module)
            finally:
                settings._sklearn_available = True  # type: ignore[union-attr]
            module.roc_curve = _roc_curve

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


if _GENERATION not in sys.modules:
    sys.meta_path.insert(0, _WithoutSklearn())
