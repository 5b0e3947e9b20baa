"""Optimizers beside those of thinc."""

from typing import Any, List, Tuple, Union

from spacy.util import registry
from thinc.api import Optimizer
from thinc.types import FloatsXd, Generator

from ..settings import check_share


class InterpolatedAdam(Optimizer):
    """Adam whose averages lie between the present weights and those that training began with.

    Training uses the present weights; scores and saved pipelines the averages, as with those of
    thinc's optimizers.

    start_share: The share of the weights that training began with.
    settings: Those of ``Optimizer``.
    """

    def __init__(self, start_share: float, **settings: Any) -> None:
        check_share("training.optimizer.start_share", start_share)
        super().__init__(use_averages=True, **settings)
        self.start_share = start_share

    def __call__(
        self,
        key: Tuple[int, str],
        weights: FloatsXd,
        gradient: FloatsXd,
        *,
        lr_scale: float = 1.0,
    ) -> Tuple[FloatsXd, FloatsXd]:
        before = weights.copy()
        # Thinc's own averages decay. They are kept here: checkpoints contain them.
        averages, self.averages = self.averages or {}, None
        try:
            weights, gradient = super().__call__(key, weights, gradient, lr_scale=lr_scale)
        finally:
            self.averages = averages
        change = weights - before
        change *= 1.0 - self.start_share
        mean = averages.setdefault(key, before)
        mean += change
        return weights, gradient


@registry.optimizers("spacy-arbo-el.InterpolatedAdam.v1")
def build_interpolated_adam(
    learn_rate: Union[float, List[float], Generator] = 0.00005,
    *,
    start_share: float = 0.5,
    beta1: Union[float, List[float], Generator] = 0.9,
    beta2: Union[float, List[float], Generator] = 0.999,
    eps: Union[float, List[float], Generator] = 1e-8,
    L2: Union[float, List[float], Generator] = 0.01,
    grad_clip: Union[float, List[float], Generator] = 1.0,
    L2_is_weight_decay: bool = True,
    use_averages: bool = True,
) -> Optimizer:
    """Adam, after which weights are interpolated with those that training began with.

    Training on few or on noisy mentions makes a pretrained encoder better at what it sees, and
    worse at the rest. Between the two, it is often better at both (WiSE-FT; Wortsman et al. 2022,
    §3). It applies to all components of the pipeline, and spoils weights that begin at random, such
    as a projection or a new entity recognizer. The knowledge base is encoded once more at each
    evaluation::

        [training.optimizer]
        @optimizers = "spacy-arbo-el.InterpolatedAdam.v1"
        start_share = 0.5

    Instead of ``Adam.v1``, ``--training.optimizer.@optimizers spacy-arbo-el.InterpolatedAdam.v1``
    is enough.

    learn_rate: The learning rate.
    start_share: The share of the weights that training began with, 0 to 1.
    beta1: The decay of the mean of gradients.
    beta2: The decay of the mean of squared gradients.
    eps: What is added to the denominator.
    L2: Weight decay.
    grad_clip: The largest norm of a gradient.
    L2_is_weight_decay: Whether L2 shrinks the weights themselves, as in AdamW.
    use_averages: A setting of ``Adam.v1`` without effect: averages are always used.
    """
    return InterpolatedAdam(
        start_share,
        learn_rate=learn_rate,
        beta1=beta1,
        beta2=beta2,
        eps=eps,
        L2=L2,
        grad_clip=grad_clip,
        L2_is_weight_decay=L2_is_weight_decay,
    )
