"""Losses and the training step against losses that are written down query by query."""

import numpy as np
import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from thinc.api import Linear, chain, with_debug

from spacy_arbo_el.contrib.papers.biocom import MultiSimilarity
from spacy_arbo_el.contrib.papers.cross_encoder.reranker import set_loss
from spacy_arbo_el.contrib.papers.deer import NODE, SPEED, LearnedScale, Logistic
from spacy_arbo_el.contrib.papers.verbalized import OverDistances
from spacy_arbo_el.encoders.shim import shim_of
from spacy_arbo_el.retrieval.similarity import Cosine, Dot, NegativeSquaredEuclidean
from spacy_arbo_el.training.losses import CrossEntropy, SoftmaxPositiveNegative
from spacy_arbo_el.training.step import Batch, Term, _logits, _paired, train_step

from ..conftest import BUNDLED
from ..expecting import raises
from ..floats import assert_same_gradients
from ..tiny import dual_encoder


def naive_positive_negative(logits, positive, loss):
    """§2.3, word for word, one query."""
    p = torch.softmax(logits, 0)
    return -torch.log(p[positive]).sum() - torch.log(1 - p[~positive]).sum()


def naive_cross_entropy(logits, positive, loss):
    p = torch.softmax(logits, 0)
    return -torch.log(p[positive].sum())


def with_parameters(loss):
    """A model with the parameters of two objectives, and a term of the second one."""
    model = chain(Linear(), Linear())
    for number in range(2):
        if isinstance(loss, LearnedScale):
            loss.attach(model, number)
    return model, Term(None, loss, number=1)


def test_a_learned_scale_and_offset_get_their_gradients():
    rng, loss = np.random.default_rng(0), LearnedScale(Logistic(scale=7.5, offset=-2.0))
    similarities = torch.tensor(rng.normal(size=(4, 5)), requires_grad=True)
    valid = torch.tensor(rng.random((4, 5)) < 0.8)
    model, term = with_parameters(loss)
    node = model.get_ref(NODE.format(number=1))
    parameters = [torch.zeros(1, requires_grad=True) for _ in range(2)]
    logits = 7.5 * (SPEED * parameters[0]).exp() * similarities - 2.0 + SPEED * parameters[1]
    expected = torch.autograd.grad(
        loss(logits, torch.eye(4, 5) > 0, valid).sum(), [*parameters, similarities]
    )
    loss(_logits(term, model, similarities), torch.eye(4, 5) > 0, valid).sum().backward()
    ours = [torch.tensor(node.get_grad(name)) for name in ("scale", "offset")]
    for gradient, other in zip([*ours, similarities.grad], expected):
        torch.testing.assert_close(gradient, other, check_dtype=False)
    assert not model.get_ref(NODE.format(number=0)).has_grad("scale")


def naive_logistic(logits, positive, loss):
    return torch.nn.functional.binary_cross_entropy_with_logits(
        logits, positive.double(), reduction="sum"
    )


def over_distances(naive):
    """Distances -> logits -> the loss, all by torch."""

    def of_squares(logits, positive, loss):
        distances = torch.sqrt(-logits + 1e-12)
        return naive(loss.loss.offset - loss.loss.scale * distances, positive, loss.loss)

    return of_squares


@given(st.integers(0, 10_000))
@pytest.mark.parametrize(
    "loss, naive, least, most",
    [
        (SoftmaxPositiveNegative(), naive_positive_negative, -8, 8),
        (CrossEntropy(), naive_cross_entropy, -8, 8),
        (Logistic(), naive_logistic, -1, 1),
        (OverDistances(Logistic(2.0, -1.0)), over_distances(naive_logistic), -1, 0),
    ],
)
def test_losses_are_those_of_each_query_by_itself(loss, naive, least, most, seed):
    rng = np.random.default_rng(seed)
    logits = torch.tensor(rng.uniform(least, most, size=(5, 6)), requires_grad=True)
    positive, valid = torch.tensor(rng.random((5, 6)) < 0.3), torch.tensor(rng.random((5, 6)) < 0.8)
    losses = loss(logits, positive, valid)
    (gradient,) = torch.autograd.grad(losses.sum(), logits)
    # Where PyTorch takes a branch that does not count, it may multiply 0 by infinity.
    assert gradient.isfinite().all()
    for i in range(5):
        chosen = positive[i][valid[i]]
        if isinstance(loss, (SoftmaxPositiveNegative, CrossEntropy)) and not chosen.any():
            assert losses[i] == 0
            continue
        expected = naive(logits[i][valid[i]], chosen, loss)
        assert losses[i].item() == pytest.approx(expected.item(), rel=1e-6, abs=1e-9)


@given(st.integers(0, 10_000), st.sampled_from([None, 0.0, 0.1]))
def test_multi_similarity_and_its_mining_equal_those_of_pytorch_metric_learning(seed, margin):
    """A batch of mentions, each of which has the others as targets."""
    losses = pytest.importorskip("pytorch_metric_learning.losses")
    miners = pytest.importorskip("pytorch_metric_learning.miners")
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 4, 8)
    vectors = torch.tensor(rng.normal(size=(8, 6)))
    targets = torch.tensor(labels)
    pairs = None if margin is None else miners.MultiSimilarityMiner(margin)(vectors, targets)
    # Theirs is 0 where one positive and one negative pair are all that is left.
    assume(pairs is None or any(len(part) > 1 for part in pairs))
    expected = losses.MultiSimilarityLoss(2, 50, 0.6)(vectors, targets, pairs)
    unit = torch.nn.functional.normalize(vectors, dim=1)
    loss = MultiSimilarity(base=0.6, margin=margin)
    same = targets[:, None] == targets
    value = loss(unit @ unit.T, same, torch.eye(8) == 0).mean()
    assert value.item() == pytest.approx(expected.item(), rel=1e-5, abs=1e-7)


@pytest.mark.parametrize("loss", [SoftmaxPositiveNegative(), CrossEntropy()])
@pytest.mark.parametrize("gap", [50.0, 500.0, 1e4])
def test_extreme_logits_stay_finite_and_bounded(loss, gap):
    rows = [[0.0, gap, -gap], [gap, 0.0, 0.0], [0.0, gap, gap]]
    logits = torch.tensor(rows, dtype=torch.float64, requires_grad=True)
    positive = torch.tensor([[True, False, False]] * 3)
    losses = loss(logits, positive, torch.ones(3, 3, dtype=torch.bool))
    (gradient,) = torch.autograd.grad(losses.sum(), logits)
    assert losses.isfinite().all()
    assert gradient.isfinite().all()
    assert (gradient.abs() <= 3).all()
    assert gradient[0, 1] > 0.9, "a wrong winner is pushed down"
    assert gradient[0, 0] < -0.9


@pytest.mark.parametrize("similarity", [Cosine(), Dot(), NegativeSquaredEuclidean()])
def test_similarities_are_differentiated_as_they_are_searched(similarity, rng):
    left, right = rng.normal(size=(3, 8)), rng.normal(size=(3, 4, 8))
    values = _paired(similarity, torch.tensor(left), torch.tensor(right))
    np.testing.assert_allclose(values, similarity.paired(left, right), rtol=1e-6)


def gradients_of(tower):
    """The gradients of a transformer's parameters by name, which are set to None."""
    gradients = {}
    for name, parameter in shim_of(tower)._model.named_parameters():
        if parameter.grad is not None:
            gradients[name], parameter.grad = parameter.grad.clone(), None
    return gradients


def test_step_gradient_equals_autograd_and_encodes_each_passage_once():
    encoder = dual_encoder(BUNDLED, train_tokens=48)
    tower = encoder.model.get_ref("mention")
    transformer = shim_of(tower)._model
    texts = encoder.read_texts([("apple", "fruit"), ("Apple", "computers"), ("pear", "")])
    documents = ["She ate an apple today.", "Apple sold a computer.", "A pear and an apple."]
    offsets = np.array([(11, 16), (0, 5), (2, 6)])
    windows = encoder.read_mentions(documents, np.arange(3), offsets)
    # Nodes: texts 0 to 2, mentions 3 to 5. Two queries share targets, one is a target too. The
    # query of the second objective is a text.
    batch = Batch(np.array([3, 4]), np.array([[0], [1]]), np.array([[1, 4, -1], [0, 3, 5]]))
    names = Batch(np.array([0]), np.array([[1]]), np.array([[4, -1]]))
    terms = [
        Term(batch, SoftmaxPositiveNegative(scale=5.0)),
        Term(names, CrossEntropy(scale=3.0), weight=0.25, number=1),
    ]
    encoded = []
    with_debug(tower, on_forward=lambda model, inputs, is_train: encoded.append(inputs))
    loss, vectors = train_step(encoder.model, terms, texts, windows, Cosine())
    assert [inputs.passages for inputs in encoded] == [2, 3]
    assert vectors.texts.tolist() == [0, 1]
    assert vectors.mentions.tolist() == [0, 1, 2]
    ours = gradients_of(tower)

    def encode(inputs):
        ids = torch.from_numpy(inputs.padded(0))
        mask = (torch.arange(ids.shape[1]) < torch.from_numpy(inputs.lengths)[:, None]).long()
        device = transformer.device
        states = transformer(input_ids=ids.to(device), attention_mask=mask.to(device))
        hidden = states.last_hidden_state.cpu()
        means = [h[a : b + 1].mean(0) for h, a, b in zip(hidden, inputs.first, inputs.last)]
        return torch.nn.functional.normalize(torch.stack(means), dim=-1)

    transformer.train()
    nodes = torch.cat([encode(texts), encode(windows)])
    total = 0
    for query, targets in zip((3, 4), ((0, 1, 4), (1, 0, 3, 5))):
        logits = 5.0 * nodes[list(targets)] @ nodes[query]
        positive = torch.tensor([True] + [False] * (len(targets) - 1))
        total = total + naive_positive_negative(logits, positive, None)
    total = total / 2 + 0.25 * torch.nn.functional.cross_entropy(
        3.0 * nodes[[1, 4]] @ nodes[0], torch.tensor(0)
    )
    total.backward()
    assert loss == pytest.approx(total.item(), rel=1e-4)
    assert_same_gradients(ours, gradients_of(tower))


def test_losses_over_distances_refuse_similarities_that_are_no_squared_distances():
    positive, valid = torch.tensor([[True, False]]), torch.ones(1, 2, dtype=torch.bool)
    with raises("NegativeSquaredEuclidean"):
        OverDistances(CrossEntropy())(torch.tensor([[0.5, -1.0]]), positive, valid)
    equal = torch.zeros(1, 2, requires_grad=True)
    losses = OverDistances(CrossEntropy())(equal, positive, valid)
    assert losses.item() == pytest.approx(np.log(2))
    losses.sum().backward()
    assert equal.grad.isfinite().all()
    with raises("E618"):
        OverDistances(LearnedScale(Logistic()))


@given(st.data())
def test_the_loss_of_sets_is_the_cross_entropy_to_equal_shares(data):
    rng = np.random.default_rng(data.draw(st.integers(0, 1 << 30)))
    m, k = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 5))
    scores = rng.normal(size=(m, k)).astype(np.float32)
    correct = rng.random((m, k)) < 0.4
    correct[:, 0] |= ~correct.any(axis=1)
    scores[(rng.random((m, k)) < 0.2) & ~correct] = -np.inf
    loss, gradient = set_loss(scores, correct)
    p = np.exp(scores.astype(float)) / np.exp(scores.astype(float)).sum(axis=1, keepdims=True)
    by_hand = [-np.log(p[i][correct[i]]).mean() for i in range(m)]
    assert loss == pytest.approx(np.mean(by_hand), abs=1e-5)
    assert (gradient[~np.isfinite(scores)] == 0).all()
