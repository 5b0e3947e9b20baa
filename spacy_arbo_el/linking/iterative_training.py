"""Training with links in the text, so that linking can make use of them (VERBALIZED, §4.2)."""

from dataclasses import dataclass

from spacy.util import registry

from ..settings import check_count, check_part, check_share


# paper: VERBALIZED
@registry.misc("spacy-arbo-el.WrittenLinks.v1")
@dataclass(frozen=True)
class WrittenLinks:
    """Write the links of some mentions into the text that the others are trained in.

    This is VERBALIZED's iterative training (§4.2, §A.1). Links are gold ones at first, some of them
    wrong, and later those that the encoder predicts with the largest similarity. Use it with
    iterative prediction::

        [components.arbo_linker.inference]
        @misc = "spacy-arbo-el.IterativePrediction.v1"

        [components.arbo_linker.inference.inference]
        @misc = "spacy-arbo-el.Independent.v1"

        [components.arbo_linker.inference.training]
        @misc = "spacy-arbo-el.WrittenLinks.v1"
        share = 0.3

    A mention whose link is written in is left out of the loss. Mentions that are alone in their
    document are trained in the text as it is.

    share: The share of a document's mentions that are written in, above 0 and below 1.
    corrupted: The share of gold links that are replaced by a random entity, from 0 to 1.
    predicted_after: The number of mentions trained on, after which predicted links are written in.
    """

    share: float = 0.3
    corrupted: float = 0.1
    predicted_after: int = 30000

    def __post_init__(self) -> None:
        check_part("inference.training.share", self.share)
        check_share("inference.training.corrupted", self.corrupted)
        check_count("inference.training.predicted_after", self.predicted_after)
