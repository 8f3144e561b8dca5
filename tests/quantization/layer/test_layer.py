"""The indexing layer: its gradient against the definition, its phases, its codes, bad input."""

import warnings
from collections.abc import Callable
from functools import partial
from itertools import cycle

import numpy as np
import pytest
import torch
from torch import Tensor

import nearkin as nk
from nearkin.linalg.haar import haar_orthogonal
from nearkin.quantization import IndexingLayer, optimizers
from nearkin.quantization.layer.layer import ROTATIONS, StraightThrough, nearest
from tests.covering import each
from tests.refusals import each_refused

D, M, K = 8, 2, 8


def rows(n: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(n, D, generator=generator) @ torch.randn(D, D, generator=torch.Generator().manual_seed(99))


def started(rotation: str | tuple[str, int] = "givens-greedy", **options: object) -> IndexingLayer:
    layer = IndexingLayer(D, M, K, rotation=rotation, max_iter=5, **options)  # pyright: ignore[reportArgumentType]
    assert layer.start(rows(200).numpy())
    return layer


def train(layer: IndexingLayer, steps: int, first: int = 0, moving: list | None = None) -> list:
    moving = moving or optimizers(layer, [torch.nn.Parameter(torch.zeros(1))], lr=5e-2)
    for step in range(first, first + steps):
        T, distortion = layer(rows(64, step))
        if layer.phase == "train" and (T.requires_grad or distortion.requires_grad):
            for optimizer in moving:
                optimizer.zero_grad()
            (1e-3 * T.sum() + distortion).backward()
            for optimizer in moving:
                optimizer.step()
    return moving


def defined(x: Tensor, R: Tensor, C: Tensor, c: Tensor | None) -> tuple[Tensor, Tensor]:
    """T = c + (y + z - sg z) R^T and (1/b) ||z - y||^2, written out for autograd."""
    z = (x if c is None else x - c) @ R
    codes = nearest(z.detach(), C.detach())
    y = torch.cat([C[m][codes[:, m]] for m in range(len(C))], 1)
    T = (y + z - z.detach()) @ R.T
    return T if c is None else T + c, (z - y).square().sum() / len(x)


@each(("coarse", "n"), [(False, 5), (True, 32)])
def test_the_gradient_is_the_definitions(coarse: bool, n: int) -> None:
    """With fewer rows than columns and with more the products come in another order."""
    x = rows(n).requires_grad_()
    R = haar_orthogonal(D, D, random_state=0).float().requires_grad_()
    C = torch.randn(M, K, D // M, generator=torch.Generator().manual_seed(3)).requires_grad_()
    c = torch.ones(n, D) if coarse else None
    G = torch.randn(n, D, generator=torch.Generator().manual_seed(4))
    T, distortion, _ = StraightThrough.apply(x, R, C, c)
    T_defined, distortion_defined = defined(x, R, C, c)
    torch.testing.assert_close(T, T_defined)
    torch.testing.assert_close(distortion, distortion_defined)
    ours = torch.autograd.grad((T * G).sum() + 3 * distortion, (x, R, C))
    wanted = torch.autograd.grad((T_defined * G).sum() + 3 * distortion_defined, (x, R, C))
    delta, spread = (x - T).detach(), (x - x.mean(0)).detach()  # the pull to the codes is free of scales
    pull = G.norm() * delta.norm() / (delta.square().sum() + spread.square().sum()) * delta
    direction = x.detach() / x.detach().norm(dim=1, keepdim=True)  # of it, only what changes a vector's length
    torch.testing.assert_close(ours[0], G + (pull * direction).sum(1, keepdim=True) * direction, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(ours[2], wanted[2], rtol=1e-4, atol=1e-4)
    skew = [R.detach().T @ g - g.T @ R.detach() for g in (ours[1], wanted[1])]  # all that turns a rotation
    torch.testing.assert_close(*skew, rtol=1e-3, atol=1e-3)
    assert float(skew[0].abs().max()) > 0.1


def test_phases_pass_collect_and_train() -> None:
    layer = IndexingLayer(D, M, K, warmup_steps=2, buffer_size=100, max_iter=3)
    seen = []
    for step in range(5):
        x = rows(64, step)
        T, distortion = layer(x)
        seen.append((layer.phase, bool(torch.equal(T, x)), float(distortion.detach()) > 0))
    assert seen == [("pass", True, False)] * 2 + [("collect", True, False)] + [("train", False, True)] * 2
    assert layer.phases.buffer.numel() == 0
    first = layer.codebooks.detach().clone()
    for step in range(4):
        layer.eval()  # nothing is counted or collected
        layer(rows(64, step))
        layer.train()(10 + rows(64, step))
    assert float((layer.codebooks.detach() - first).abs().amax()) > 5  # started again after twice the steps
    assert layer.phases.due == 18


@each(("rotation", "centroids"), [*zip(ROTATIONS, cycle(["average", "gradient"]))])
def test_every_rule_lowers_the_distortion_and_stays_a_rotation(rotation: str, centroids: str) -> None:
    layer = started(rotation, centroids=(centroids, 512))
    layer.centroids.codebooks.data.mul_(0.5)  # something to win back
    before, R = float(layer(rows(256, 7))[1].detach()), layer.rotation_matrix.clone()
    train(layer, 30)
    after = float(layer(rows(256, 7))[1].detach())
    assert after < 0.9 * before, (before, after)
    now = layer.rotation_matrix
    torch.testing.assert_close(now @ now.T, torch.eye(D), rtol=0, atol=1e-5)
    assert torch.equal(now, R) == (rotation == "frozen")


@each("n_lists", [0, 4])
def test_layer_index_and_faiss_give_the_same_codes(n_lists: int) -> None:
    layer, X = started(n_lists=n_lists), rows(100, 5)
    train(layer, 5)
    codes, plain = layer.codes(X.numpy()), layer.to_quantizer().to_faiss()
    np.testing.assert_array_equal(nk.Index.build(X.numpy(), layer.to_quantizer()).quantizer.encode(X.numpy()), codes)
    decoded = layer.to_quantizer().decode(codes)
    np.testing.assert_allclose(plain.sa_decode(plain.sa_encode(X.numpy())), decoded, atol=1e-4)
    with torch.no_grad():
        np.testing.assert_allclose(layer(X)[0], decoded, atol=1e-4)
        np.testing.assert_array_equal(layer.eval()(X)[0], decoded)


@each(
    ("rotation", "cut"),
    [("givens-random", 3), ("givens-greedy", 6), ("frozen", 1), ("cayley", 6), (("givens-greedy", 3), 5)],
)  # 1: rows pass, 3: they are collected
def test_a_resumed_layer_goes_on_bit_for_bit(rotation: str | tuple[str, int], cut: int) -> None:
    def fresh() -> IndexingLayer:
        return IndexingLayer(D, M, K, rotation=rotation, warmup_steps=2, buffer_size=100, max_iter=3)

    whole = fresh()
    train(whole, 10)
    half = fresh()
    moving = train(half, cut)
    resumed = fresh()
    resumed.load_state_dict(half.state_dict())
    again = optimizers(resumed, [torch.nn.Parameter(torch.zeros(1))], lr=5e-2)
    for new, old in zip(again, moving, strict=True):
        new.load_state_dict(old.state_dict())
    train(resumed, 10 - cut, cut, again)
    for name, value in whole.state_dict().items():
        assert torch.equal(value, resumed.state_dict()[name]), name


def test_a_rotation_with_a_number_turns_in_every_so_many_steps() -> None:
    layer = started(("givens-greedy", 3))
    moving, turned = optimizers(layer, torch.nn.Sequential(layer, torch.nn.Linear(1, 1))), []
    for step in range(6):
        before = layer.rotation_matrix.clone()
        train(layer, 1, step, moving)
        turned.append(not torch.equal(before, layer.rotation_matrix))
    assert turned == [False, False, True] * 2
    with pytest.raises(ValueError, match=r"rotation\[1\] is 2"):
        IndexingLayer(D, M, K, rotation=("frozen", 2))


def test_eval_before_training_passes_rows_and_codes_say_what_to_do() -> None:
    layer = IndexingLayer(D, M, K).eval()
    x = rows(4)
    assert torch.equal(layer(x)[0], x)
    assert layer.phase == "collect"
    assert len(layer.phases.buffer) == 0
    with pytest.raises(ValueError, match=r"no centroids yet .*layer.start\(X\)"):
        layer.codes(x)


def test_bad_input_is_named() -> None:
    layer, x, spoilt = started(), rows(4), rows(4)
    layer(x)  # rows on the host are looked at in every batch
    spoilt[2, 1] = float("nan")
    cases: list[tuple[Callable[[], object], type[Exception], str]] = [
        (lambda: IndexingLayer(8, 3), ValueError, "n_subspaces is 3.* d=8.* 1, 2, 4, 8"),
        (lambda: IndexingLayer(8, 2, rotation="opq"), ValueError, "rotation is 'opq'"),
        (lambda: layer(spoilt), ValueError, "x contains NaN.* in 1 of 4 rows.* row 2"),
        (lambda: layer(x[:, :5]), ValueError, r"x has shape \(4, 5\).*\(b, 8\)"),
        (lambda: IndexingLayer(8, 4, K).load_state_dict(layer.state_dict()), RuntimeError, r"codebooks.*\[2, 8, 4\]"),
        (lambda: IndexingLayer(8, 4, K).start_from(layer.to_quantizer()), ValueError, "the layer needs"),
        *((partial(layer, given), TypeError, "torch.as_tensor") for given in (x.long(), x.numpy(), [[0.0] * 8])),
    ]
    each_refused(cases)


@each("dtype", [torch.float64, torch.float16, torch.bfloat16])
def test_a_module_of_another_type_keeps_the_layers_numbers(dtype: torch.dtype) -> None:
    """Before, sums and counts lost their digits, and every forward pass ended in torch's or NumPy's own error."""
    layer = started()
    expected = layer.eval()(rows(40))[0]
    net = torch.nn.Sequential(layer, torch.nn.Linear(8, 8)).to(dtype)
    assert [each.dtype for each in layer.state_dict().values()] == [
        each.dtype for each in started().state_dict().values()
    ]
    torch.testing.assert_close(layer(rows(40).to(dtype))[0], expected.to(dtype), rtol=0, atol=0.1)
    net.train()
    assert layer(rows(40).to(dtype))[0].dtype == dtype
    assert [tuple(part.shape) for part in layer.eval()(rows(40)[:0].to(dtype))] == [(0, 8), ()]


def test_export_refuses_a_rotation_that_an_ordinary_optimizer_has_moved() -> None:
    layer = started()
    adam = torch.optim.Adam(layer.parameters(), lr=5e-2)
    train(layer, 10, moving=[adam])
    with pytest.raises(ValueError, match=r"no rotation any more.*optimizers\(layer, parameters\)"):
        layer.to_quantizer()


def test_autocast_and_compile_leave_the_layer_alone() -> None:
    layer = started()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        T, distortion = layer(rows(16).bfloat16())
    assert T.dtype == torch.bfloat16
    assert distortion.dtype == torch.float32
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        compiled = torch.compile(torch.nn.Sequential(torch.nn.Identity(), layer), backend="eager")
        assert compiled(rows(16))[0].shape == (16, D)


def test_few_rows_wait_and_say_so() -> None:
    layer = IndexingLayer(D, M, K, buffer_size=2)
    layer(rows(5))
    assert layer.phase == "collect"  # two rows were asked for, eight centroids need eight
    with pytest.warns(UserWarning, match="vectors: 5, fewer than the 8 centroids"):
        assert not layer.start()
    layer(rows(3, 1))
    assert layer.phase == "train"
