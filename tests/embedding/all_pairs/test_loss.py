"""Value, gradient and Gauss-Newton product of the all-pairs loss against the dense m x n sum."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from nearkin.embedding.all_pairs import AllPairsLoss, products
from nearkin.embedding.all_pairs.loss import LOSSES
from nearkin.records import Interactions
from tests.covering import each
from tests.reference.all_pairs import dense_gauss_newton, dense_loss
from tests.refusals import each_refused


def problem(rng: np.random.Generator, name: str, m: int = 13, n: int = 9, k: int = 4) -> dict:
    """Signed labels, weights, costs and an imputation of another width than k; an empty row and an empty column."""
    mask = rng.random((m, n)) < 0.4
    mask[2], mask[:, 3], mask[5] = False, False, True
    Y = np.where(mask, rng.choice([-1.0, 1.0, 0.7], (m, n)), 0)
    weights, a, b = rng.random((m, n)), rng.random(m), rng.random(n)
    prior = rng.standard_normal((m, 3)), rng.standard_normal((n, 3))
    r, s = rng.random(m), rng.random(n)
    loss = AllPairsLoss(
        sp.csr_matrix((Y[mask], np.nonzero(mask)), shape=(m, n)),
        loss=name, omega=0.3, weights=weights[mask], a=a, b=b, prior=prior, regularization=0.2, ridge=(r, s),
    )  # fmt: skip
    dense = {
        "Y": torch.tensor(Y), "observed": torch.tensor(mask), "weights": torch.tensor(weights),
        "cost": torch.tensor(0.3 * np.outer(a, b)),
    }  # fmt: skip
    P, Q, W, H = (torch.tensor(rng.standard_normal((rows, k))) for rows in (m, n, m, n))
    imputed = torch.tensor(prior[0] @ prior[1].T)
    return {"loss": loss, "dense": dense, "imputed": imputed, "P": P, "Q": Q, "W": W, "H": H, "r": r, "s": s}


def ridge(p: dict, P: torch.Tensor, Q: torch.Tensor) -> torch.Tensor:
    return 0.1 * ((torch.tensor(p["r"])[:, None] * P**2).sum() + (torch.tensor(p["s"])[:, None] * Q**2).sum())


def computed(loss: AllPairsLoss, P: torch.Tensor, Q: torch.Tensor, W: torch.Tensor, H: torch.Tensor) -> list:
    """Value, gradient and Gauss-Newton product."""
    return [torch.tensor(loss.value(P, Q), dtype=P.dtype), *loss.gradient(P, Q), *loss.gauss_newton_product(P, Q, W, H)]


def same(found: list, wanted: list) -> None:
    for one, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(one.cpu(), other, rtol=1e-8, atol=1e-10)


@each("name", LOSSES)
def test_value_gradient_and_product_are_those_of_the_dense_sum(rng: np.random.Generator, name: str) -> None:
    p = problem(rng, name)
    P, Q, W, H = p["P"].requires_grad_(), p["Q"].requires_grad_(), p["W"], p["H"]
    value = dense_loss(P, Q, **p["dense"], imputed=p["imputed"], loss=LOSSES[name]) + ridge(p, P, Q)
    gradient = torch.autograd.grad(value, (P, Q))
    P, Q = P.detach(), Q.detach()
    left, right, quadratic = dense_gauss_newton(P, Q, W, H, **p["dense"], loss=LOSSES[name])
    left, right = left + 0.2 * torch.tensor(p["r"])[:, None] * W, right + 0.2 * torch.tensor(p["s"])[:, None] * H
    found = computed(p["loss"], P, Q, W, H)
    same(found, [value.detach(), *gradient, left, right])
    product = float((found[3] * W).sum() + (found[4] * H).sum())
    assert product == pytest.approx(float(quadratic + 2 * ridge(p, W, H)), rel=1e-10), "d^T G d is the sum of l'' Z^2"


def test_autograd_pulls_the_gradient_back_through_towers(rng: np.random.Generator) -> None:
    p = problem(rng, "logistic")
    tower = torch.nn.Sequential(torch.nn.Linear(5, 8), torch.nn.Tanh(), torch.nn.Linear(8, 4)).double()
    u = torch.tensor(rng.standard_normal((13, 5)))
    parameters = list(tower.parameters())
    found = torch.autograd.grad(2 * p["loss"](tower(u), p["Q"]), parameters)
    P = tower(u)
    dense = dense_loss(P, p["Q"], **p["dense"], imputed=p["imputed"], loss=LOSSES["logistic"]) + ridge(p, P, p["Q"])
    for one, other in zip(found, torch.autograd.grad(2 * dense, parameters), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-8, atol=1e-10)


def test_the_transposed_loss_and_that_by_chunks_are_the_same(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    p = problem(rng, "logistic")
    P, Q, W, H = (p[key] for key in "PQWH")
    whole = computed(p["loss"], P, Q, W, H)
    value, dQ, dP, V, U = computed(p["loss"].transposed(), Q, P, H, W)
    same([value, dP, dQ, U, V], whole)
    monkeypatch.setattr("nearkin.embedding.all_pairs.loss.CHUNK", 7)
    same(computed(p["loss"], P, Q, W, H), whole)


def test_a_perfect_imputation_does_not_cancel_in_float32(rng: np.random.Generator) -> None:
    """At P = Pt, Q = Qt the three terms of eq. 13 are about 1e6 each and their sum is 0."""
    P = torch.tensor(rng.standard_normal((400, 16)), dtype=torch.float32)
    Q = torch.tensor(rng.standard_normal((300, 16)), dtype=torch.float32)
    observed = sp.csr_matrix(([1.0], ([0], [0])), shape=(400, 300))
    loss = AllPairsLoss(observed, prior=(P, Q), labels=[float(P[0] @ Q[0])])
    assert abs(loss.value(P, Q)) < 1e-6
    moved = P * 1.0001
    dense = 0.5 * (moved.double() @ Q.double().T - P.double() @ Q.double().T).square().sum().item()
    assert loss.value(moved, Q) == pytest.approx(dense, rel=1e-3)


@each("name", LOSSES)
@each("dtype", [torch.float16, torch.bfloat16, torch.float32])
@each("cast", [False, True])
@each("host", [True, False])
def test_every_type_is_right_to_its_own_rounding(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch, name: str, dtype: torch.dtype, cast: bool, host: bool
) -> None:
    """16 bits were an error on the CPU, and autocast made products of 16 bits of any embeddings."""
    p = problem(rng, name)
    P, Q, W, H = (p[key].to(dtype) for key in "PQWH")
    exact = computed(p["loss"], *(X.double() for X in (P, Q, W, H)))
    monkeypatch.setattr(products, "on_host", lambda X: host)
    p_leaf, q_leaf = P.clone().requires_grad_(), Q.clone().requires_grad_()
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=cast):
        scalar = p["loss"](p_leaf, q_leaf)
        scalar.backward()
        parts = [*p["loss"].gradient(P, Q), *p["loss"].gauss_newton_product(P, Q, W, H)]
        assert p["loss"].value(P, Q) == pytest.approx(float(exact[0]), rel=1e-5)
    assert scalar.dtype == torch.float32
    assert float(scalar.detach()) == pytest.approx(float(exact[0]), rel=1e-5)
    for found, expected in zip([*parts, p_leaf.grad, q_leaf.grad], [*exact[1:], *exact[1:3]], strict=True):
        assert found.dtype == dtype
        assert (found.double() - expected).norm() <= 2 * torch.finfo(dtype).eps * expected.norm()


def test_what_sixteen_bits_cannot_hold_is_an_error() -> None:
    loss = AllPairsLoss(sp.csr_matrix(np.eye(300)), omega=1.0)
    P = torch.full((300, 4), 30.0, dtype=torch.float16, requires_grad=True)
    scalar, value = loss(P, P.detach()), loss.value(P.double(), P.double())
    assert float(scalar.detach()) == pytest.approx(value, rel=1e-5)
    assert value > torch.finfo(torch.float16).max
    with pytest.raises(ValueError, match=r"dL/dP has an entry of size 3.*e\+07, which torch.float16 cannot hold"):
        loss.gradient(P, P)
    with pytest.raises(ValueError, match="the product's P has an entry"):
        loss.gauss_newton_product(P, P, P, P)
    scalar.backward()
    assert P.grad is not None
    assert bool(P.grad.isinf().all())  # what a gradient scaler looks for


@each(
    ("change", "kind", "message"),
    [
        ({"omega": -1.0}, ValueError, "omega is -1.0; it must be a number of at least 0"),
        ({"a": np.ones(3)}, ValueError, r"a has shape \(3,\); it must be one number or \(2,\)"),
        ({"b": [1.0, -1.0, 1.0]}, ValueError, "b has 1 entry below 0"),
        ({"weights": [np.nan, 1.0]}, ValueError, "weights contains NaN"),
        ({"prior": (np.ones((2, 2)), np.ones((3, 1)))}, ValueError, "prior has shapes"),
        ({"loss": "cubic"}, ValueError, "loss is 'cubic'; it must be one of 'squared'"),
        ({"loss": 3}, ValueError, "loss is 3"),
    ],
)
def test_bad_arguments_are_named(change: dict, kind: type, message: str) -> None:
    with pytest.raises(kind, match=message):
        AllPairsLoss(sp.csr_matrix(np.array([[1.0, 0, 0], [0, 1, 0]])), **change)


def test_bad_data_and_embeddings_are_named() -> None:
    loss, P = AllPairsLoss(sp.csr_matrix(np.eye(3))), torch.ones(3, 2)
    each_refused([
        (lambda: AllPairsLoss(sp.csr_matrix((2, 3))), ValueError, "observed has no stored entry"),
        (lambda: AllPairsLoss(np.eye(3)), TypeError, "observed is of type ndarray"),
        (lambda: loss.value(P, P[:2]), ValueError, r"Q has shape \(2, 2\); it must be \(3, 2\)"),
        (lambda: loss.value(P.numpy(), P), TypeError, "P is ndarray"),
        (lambda: loss.value(P, P.double()), TypeError, "Q is torch.float64 on cpu; it must be torch.float32"),
    ])  # fmt: skip


@pytest.mark.parametrize(
    "device",
    ["cpu", pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"))],
)
@each("name", ["squared", "logistic"])
def test_what_a_device_computes_is_what_the_kernels_compute(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch, name: str, device: str
) -> None:
    p = problem(rng, name)
    arguments = [p[key] for key in "PQWH"]
    wanted = computed(p["loss"], *arguments)
    monkeypatch.setattr(products, "on_host", lambda X: False)  # the path of devices, on the CPU too
    P, Q, W, H = (X.to(device).requires_grad_() for X in arguments)
    scalar = p["loss"](P, Q)
    scalar.backward()
    there = [scalar.detach(), P.grad, Q.grad, *p["loss"].gradient(P, Q), *p["loss"].gauss_newton_product(P, Q, W, H)]
    assert {X.device.type for X in there} == {device}
    same(there, [*wanted[:3], *wanted[1:3], *wanted[3:]])


def test_one_number_stands_for_every_label_and_every_weight(rng: np.random.Generator) -> None:
    observed = sp.random(9, 7, density=0.3, random_state=0, format="csr")
    P, Q = torch.tensor(rng.normal(size=(9, 3))), torch.tensor(rng.normal(size=(7, 3)))
    number, factors = (AllPairsLoss(observed, prior=p) for p in (0.3, (np.full((9, 1), 0.3), np.ones((7, 1)))))
    assert number.value(P, Q) == pytest.approx(factors.value(P, Q), rel=1e-12)
    assert number.value(P, Q) != pytest.approx(AllPairsLoss(observed).value(P, Q), rel=1e-3)
    one, each = (AllPairsLoss(observed, omega=0.2, weights=w) for w in (2.5, np.full(observed.nnz, 2.5)))
    assert one.observed_weight == pytest.approx(each.observed_weight) == pytest.approx(2.5 * observed.nnz)
    assert one.value(P, Q) == pytest.approx(each.value(P, Q))
    record = AllPairsLoss(Interactions.from_matrix(observed))  # which is float32
    assert record.value(P, Q) == pytest.approx(AllPairsLoss(observed).value(P, Q), rel=1e-6)
