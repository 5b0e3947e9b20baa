"""Numbers that may differ by label: the threshold of a link, and the coverage of a list."""

from collections.abc import Mapping
from typing import Any, cast

from ..base.errors import Errors
from ..base.settings import is_number

# In values by label, stands for the labels that are not among them.
OTHER_LABELS = "*"
# A probability, or probabilities by label, with ``OTHER_LABELS`` for the labels not among them.
ThresholdSetting = float | Mapping[str, float]


class ByLabel(float):
    """A number for each label. As a number, it is that of the labels not in ``by_label``."""

    by_label: Mapping[str, float]

    def __new__(cls, setting: ThresholdSetting, default: float = 0.0) -> "ByLabel":
        """A number, or a table. default: That of other labels, where the table has none."""
        if isinstance(setting, ByLabel):
            return setting
        table = dict(setting) if isinstance(setting, Mapping) else {}
        number = table.pop(OTHER_LABELS, default) if table else setting
        numbers = super().__new__(cls, cast(float, number))
        numbers.by_label = table
        return numbers

    def __reduce__(self) -> Any:
        return ByLabel, (self.table,)

    @property
    def table(self) -> dict[str, float]:
        """All numbers by label."""
        return {OTHER_LABELS: float(self), **self.by_label}

    def of(self, label: str) -> float:
        """The number of a label."""
        return self.by_label.get(label, float(self))

    def __str__(self) -> str:
        """To read, such as "0.3" or "0.3, Disease 0.5"."""
        labels = (f"{label} {number:g}" for label, number in self.by_label.items())
        return ", ".join([f"{float(self):g}", *labels])


def check_threshold(value: Any) -> ThresholdSetting:
    """The setting with plain floats. ValueError unless it is a probability or a table of them."""
    if isinstance(value, ByLabel) and value.by_label:
        value = value.table
    if not isinstance(value, Mapping):
        return _probability(value)
    if OTHER_LABELS not in value:
        raise Errors.E407(value=dict(value))
    return {str(label): _probability(threshold) for label, threshold in value.items()}


def _probability(value: Any) -> float:
    if not is_number(value) or not 0.0 <= value <= 1.0:
        raise Errors.E402(value=value)
    return float(value)
