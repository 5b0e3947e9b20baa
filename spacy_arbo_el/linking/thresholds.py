"""The probability that a link must have, one for all mentions or by label."""

from collections.abc import Mapping
from typing import Any, cast

import numpy as np

from ..base.errors import Errors

# In values by label, stands for the labels that are not among them.
OTHER_LABELS = "*"
# A probability, or probabilities by label, with ``OTHER_LABELS`` for the labels not among them.
ThresholdSetting = float | Mapping[str, float]


class LabelThresholds(float):
    """Thresholds by label. As a number, it is that of all other labels.

    by_label: The others.
    """

    by_label: Mapping[str, float]

    @classmethod
    def of(cls, table: Mapping[str, float]) -> "LabelThresholds":
        """Thresholds of a valid table."""
        thresholds = cls(table[OTHER_LABELS])
        thresholds.by_label = {
            key: threshold for key, threshold in table.items() if key != OTHER_LABELS
        }
        return thresholds

    def __reduce__(self) -> Any:
        return LabelThresholds.of, ({**self.by_label, OTHER_LABELS: float(self)},)


def check_threshold(value: Any) -> ThresholdSetting:
    """The setting with plain floats. ValueError unless it is a probability or a table of them."""
    if not isinstance(value, Mapping):
        return _probability(value)
    if OTHER_LABELS not in value:
        raise Errors.E407(value=dict(value))
    return {str(label): _probability(threshold) for label, threshold in value.items()}


def threshold_of(setting: ThresholdSetting) -> float:
    """The threshold of a valid setting; ``LabelThresholds`` for a table."""
    return LabelThresholds.of(setting) if isinstance(setting, Mapping) else setting


def threshold_for(threshold: float, label: str) -> float:
    """The threshold of mentions of a label."""
    if isinstance(threshold, LabelThresholds):
        return threshold.by_label.get(label, float(threshold))
    return threshold


def least_threshold(threshold: float) -> float:
    """The lowest threshold of all labels."""
    thresholds = (
        threshold.by_label.values() if isinstance(threshold, LabelThresholds) else ()
    )
    return min(float(threshold), *thresholds) if thresholds else float(threshold)


def shown_threshold(threshold: float) -> str:
    """A threshold to read, such as "0.3" or "0.3, Disease 0.5"."""
    thresholds = (
        threshold.by_label.items() if isinstance(threshold, LabelThresholds) else ()
    )
    return ", ".join(
        [
            f"{float(threshold):g}",
            *(f"{label} {label_threshold:g}" for label, label_threshold in thresholds),
        ]
    )


def _probability(value: Any) -> float:
    is_number = isinstance(value, (int, float, np.number)) and not isinstance(
        value, bool
    )
    if not is_number or not 0.0 <= value <= 1.0:
        raise Errors.E402(value=value)
    return float(cast(float, value))
