"""Losses of ordinal embedding: what one answer d(i, j) < d(l, k) costs, value and slopes side by side.

Every loss is a function f(a, b) of the two squared distances a = d_ij^2 (should be small) and b = d_lk^2 (should be
large). With the slopes s_a = df/da and s_b = -df/db, both >= 0, the gradient on the points is

    g_i = 2 s_a (x_i - x_j) = -g_j,        g_l = -2 s_b (x_l - x_k) = -g_k,

and on the Gram matrix G (a = G_ii + G_jj - 2 G_ij) it is s_a W_ij - s_b W_lk. A triplet (i, j, k) is l = i. So one pair
of formulas per loss serves triplets and quadruplets, points and Gram matrix.

Misprints in paper 004 (SVRG-SBB), each corrected here and proved by the tests against central differences:

* eq. 45 must read Delta_q G <= -1 + xi, which gives xi = max(0, 1 + a - b).
* eq. 47, printed for CKL, is STE's eq. 48: after multiplying by exp(-a - b) both are exp(-a) / (exp(-a) + exp(-b)).
  The crowd kernel's own form (Tamuz et al. 2011) is p = (mu + b) / (2 mu + a + b). Both are offered: "ckl" is the crowd
  kernel, "ckl-printed" is eq. 47.
* eq. 50 holds for STE only; each loss below is -log p of its own model.
* eq. 58 (t-STE) carries a factor alpha^(-alpha) too much and the wrong sign in its second block; `_t_ste` derives it.
* eq. 60: the rows must be (I 0 I 0), (0 I 0 0), (0 0 0 I): g_i of a triplet adds the parts of i and of l.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from nearkin import _check
from nearkin.embedding.ordinal.compiling import inlined

GNMDS, STE, CKL, T_STE, SOE = range(5)


@dataclass(frozen=True)
class OrdinalLoss:
    """A loss as the kernels take it: `code` picks the formula, `parameter` is its constant (mu, alpha or margin)."""

    name: str
    code: int
    parameter: float
    has_model: bool  # exp(-f) is the probability of the answer
    halves: int = 0  # 2 x the exponent of t-STE if it is a whole number, so that no logarithm is needed; 0 otherwise


LOSSES = ("gnmds", "ckl", "ckl-printed", "ste", "t-ste", "soe")


def get_loss(name: str, n_components: int, parameter: float | None = None) -> OrdinalLoss:
    """The loss called `name` for embeddings in `n_components` dimensions.

    `parameter` is mu > 0 for "ckl" (0.05), alpha > 0 for "t-ste" (max(n_components - 1, 1), SVRG-SBB eq. 49) and the
    margin > 0 for "soe" (0.1); the other losses have none. Raises ValueError for another name or a bad parameter.
    """
    _check.check_choice(name, "loss", LOSSES)
    defaults = {"ckl": 0.05, "t-ste": float(max(n_components - 1, 1)), "soe": 0.1}
    if name not in defaults:
        if parameter is not None:
            raise ValueError(f"loss_parameter is {parameter!r}; loss {name!r} has none, pass loss_parameter=None")
        return OrdinalLoss(name, GNMDS if name == "gnmds" else STE, 1.0, has_model=name != "gnmds")
    value = defaults[name] if parameter is None else _check.check_real(parameter, "loss_parameter", above=0.0)
    code = {"ckl": CKL, "t-ste": T_STE, "soe": SOE}[name]
    halves = int(value + 1) if code == T_STE and value == int(value) else 0
    return OrdinalLoss(name, code, value, code != SOE, halves)


@inlined
def loss_value(code: int, a: float, b: float, parameter: float) -> float:
    """f(a, b) in float64, safe against overflow: no epsilon stands inside a logarithm."""
    if code == GNMDS:  # eq. 45 corrected
        return max(0.0, 1.0 + a - b)
    if code == STE:  # eq. 48: -log p = log(1 + exp(a - b))
        z = a - b
        return max(z, 0.0) + np.log1p(np.exp(-abs(z)))
    if code == CKL:  # -log p = log(1 + (mu + a) / (mu + b))
        return np.log1p((parameter + a) / (parameter + b))
    if code == T_STE:  # eq. 49: -log p = log(1 + (s_ij / s_lk)^((alpha + 1) / 2)), s = alpha + d^2
        z = 0.5 * (parameter + 1.0) * (np.log(parameter + a) - np.log(parameter + b))
        return max(z, 0.0) + np.log1p(np.exp(-abs(z)))
    hinge = max(0.0, parameter + np.sqrt(a) - np.sqrt(b))  # SOE (Terada & von Luxburg 2014): on the distances
    return hinge * hinge


@inlined
def loss_slopes(code, a, b, parameter, halves):
    """The slopes (df/da, -df/db) in the precision of `a`; `halves` is `OrdinalLoss.halves`."""
    T = type(a)  # constants in the data's own precision: a float64 literal would drag float32 arithmetic to float64
    zero, one = T(0), T(1)
    if code == GNMDS:
        active = one if one + a - b > zero else zero
        return active, active
    if code == STE:
        miss = one / (one + np.exp(b - a))  # 1 - p; exp may overflow to infinity, and 1 / infinity = 0 is right
        return miss, miss
    if code == CKL:
        total = parameter + parameter + a + b
        return one / total, (parameter + a) / ((parameter + b) * total)
    if code == T_STE:
        return _t_ste_slopes(a, b, parameter, halves)
    near, far = np.sqrt(a), np.sqrt(b)
    hinge = parameter + near - far
    if hinge <= zero:
        return zero, zero
    # at coincident points the distance has no derivative; its subgradient 0 is taken
    return (hinge / near if near > zero else zero), (hinge / far if far > zero else zero)


@inlined
def _t_ste_slopes(a, b, alpha, halves):
    """eq. 58 corrected: with s = alpha + d^2 and 1 - p = 1 / (1 + (s_lk / s_ij)^((alpha + 1) / 2)),
    s_a = (alpha + 1) / 2 (1 - p) / s_ij and s_b = (alpha + 1) / 2 (1 - p) / s_lk.
    """
    T = type(a)
    one, half = T(1), T(0.5)
    s_near, s_far = alpha + a, alpha + b
    ratio = s_far / s_near
    if halves > 0:  # the exponent is halves / 2: a square root and a few products instead of log and exp
        power = np.sqrt(ratio) if halves & 1 else one
        left = halves >> 1
        while left > 0:
            if left & 1:
                power *= ratio
            ratio *= ratio
            left >>= 1
    else:
        power = np.exp(half * (alpha + one) * np.log(ratio))
    weight = half * (alpha + one) / (one + power)
    return weight / s_near, weight / s_far


def answer_probability(loss: OrdinalLoss, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """p = exp(-f(a, b)): the model's probability that a, not b, is the smaller squared distance."""
    if loss.code == STE:
        return expit(b - a)
    if loss.code == CKL:
        return (loss.parameter + b) / (2 * loss.parameter + a + b)
    half = (loss.parameter + 1) / 2
    return expit(half * (np.log(loss.parameter + b) - np.log(loss.parameter + a)))
