"""The best model: the latest of those that differ by chance only."""

import pytest

from spacy_arbo_el.runs.evaluation import ERROR, is_chosen


def chosen(scores, error=0.02):
    """The number of the last model that was taken as the best."""
    evaluations = [(score, {ERROR: error} if error else {}) for score in scores]
    return max(i for i in range(len(scores)) if is_chosen(evaluations[: i + 1]))


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        ([0.80, 0.82, 0.81, 0.805], 3),
        ([0.80, 0.90, 0.88, 0.80], 2),
        ([0.90, 0.85, 0.84], 0),
        # The best of all counts: small losses do not add up.
        ([0.90, 0.88, 0.86, 0.84], 1),
    ],
)
def test_the_latest_within_chance_is_chosen(scores, expected):
    assert chosen(scores) == expected


def test_without_known_errors_the_highest_score_is_chosen_and_the_later_of_equal_ones():
    assert chosen([0.8, 0.9, 0.89], error=0.0) == 1
    assert chosen([0.8, 0.9, 0.9], error=0.0) == 2
