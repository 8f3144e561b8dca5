"""SCQ's two encoders: OnE, with orthonormal columns, and OgE, with orthogonal ones.

The scale decides what the codes are good for. A larger one flattens the spectrum, which on features of a network brings
vectors of one class together at the price of neighbours. Neighbours cannot choose it for labels, so labels do."""

from abc import abstractmethod
from dataclasses import KW_ONLY, dataclass

import numpy as np
from sklearn.base import clone

from nearkin._check import check_choice, check_labels, draw_seed
from nearkin._types import Record, Seed
from nearkin.contracts import Callback
from nearkin.hashing import columns
from nearkin.hashing.linear import AbstractSpectralHasher
from nearkin.hashing.spectrum import principal_axes, scale_of
from nearkin.metrics.hamming import hamming_histograms
from nearkin.metrics.trial import DEFAULTS as OF_TRIALS
from nearkin.metrics.trial import Trial
from nearkin.statistics import shared_generator


@dataclass(frozen=True)
class Defaults:
    """Choice of the scale by labels. Mean average precision of labels, 32 bits, eq. 25's scale and the chosen one:
    features of a network .686 and .784, MNIST .397 and .397, GIST of CIFAR-10 .177 and .177, three seeds (2026-11)."""

    multiples: tuple[float, ...] = (0.5, 0.71, 1.0, 1.41, 2.0, 2.83, 4.0, 5.66, 8.0)  # of eq. 25's scale
    rounds: int = 2  # each with other queries, rows and starts
    share: float = 0.2  # of fewer rows that are held out
    rows: int = 6_000  # learned from and searched, at most
    n_components: int = 128  # principal components, or n_bits if that is more
    max_iter: int = 30


DEFAULTS = Defaults()


class AbstractEncoder(AbstractSpectralHasher):
    """One projection that compresses and quantizes at once: its columns are free to leave the top principal axes.

    A subclass has `_step` and the parameters `n_bits`, `scale`, `n_components`, `tol`, `max_iter` and `random_state`.
    """

    scale: str | float
    n_components: int | None
    tol: float
    max_iter: int

    @abstractmethod
    def _step(self, c: np.ndarray) -> columns.AbstractColumnStep:
        """The step of the columns for scaled data whose principal coordinates have variances c (m,)."""

    def _scale(self, rows: columns.CentredRows, y: object) -> float:
        self.trials_: list[Record] = []  # of the scales that labels compared
        rule = "eq25" if self.scale == "auto" else self.scale
        plain = scale_of(rule, rows.spectrum.variances, self.n_bits)
        if self.scale != "auto" or y is None or self.get_params().get("ridge") is not None:
            return plain
        if rows.group.size > 1:  # several processes would have to fit each trial together
            return plain
        (Z,) = rows.blocks()
        return self._scale_by_labels(Z, check_labels(y, "y", len(Z)), plain)  # pyright: ignore[reportArgumentType]

    def _scale_by_labels(self, Z: np.ndarray, labels: np.ndarray, plain: float) -> float:
        """The multiple of eq. 25's scale `plain` by which held-out rows of Z (n, m) find rows of their label first, in
        mean average precision; of those that none leads by a standard error, the nearest to `plain`."""
        generator = shared_generator(self.random_state)
        Z = np.ascontiguousarray(Z[:, : max(DEFAULTS.n_components, self.n_bits)])
        count = min(OF_TRIALS.queries, int(len(Z) * DEFAULTS.share))
        found: dict[float, list[np.ndarray]] = {multiple: [] for multiple in DEFAULTS.multiples}
        for _ in range(DEFAULTS.rounds):
            drawn = generator.permutation(len(Z))[: count + DEFAULTS.rows]
            asked, base = drawn[:count], drawn[count:]
            if count < 2 or principal_axes(lambda base=base: [Z[base]], self.n_bits).rank < self.n_bits:
                return plain
            settings = {"max_iter": DEFAULTS.max_iter, "n_components": None, "random_state": draw_seed(generator)}
            for multiple, values in found.items():
                short = clone(self).set_params(scale=multiple * plain, **settings).fit(Z[base])
                codes = short.encode(Z[asked]), short.encode(Z[base])
                values.append(hamming_histograms(*codes, labels[asked], labels[base]).average_precision())
        trial = Trial[float]()
        for multiple, values in found.items():  # the farther from the paper's, the more it has to show
            trial.add(multiple, np.concatenate(values), abs(np.log(multiple)))
        self.trials_ = trial.table()
        return trial.winner() * plain

    def _columns(
        self, rows: columns.CentredRows, generator: np.random.Generator, callback: Callback | None
    ) -> tuple[np.ndarray, np.ndarray]:
        c = self.scale_**2 * rows.spectrum.variances
        start = columns.random_columns(len(c), self.n_bits, generator)
        return columns.learn_columns(
            lambda V: self.scale_ * rows.sign_moment(V),
            self._step(c),
            start,
            tol=self.tol,
            max_iter=self.max_iter,
            callback=callback,
        )


@dataclass(eq=False, repr=False)
class OnE(AbstractEncoder):
    """Orthonormal Encoder: min |B - s X V|^2 / n over signs B and V^T V = I, d x L (SCQ, eq. 1 and 17).

    Unlike ITQ, V is free to leave the top principal axes: less variance kept, much less quantization loss.

    Parameters
    ----------
    n_bits : code length L.
    scale : the factor s, "eq25" as in the paper, "top-eigenvalue" as in the authors' demo, or a number. "auto" is
        chosen by labels if `fit(X, y)` has them, 0.5 to 8 times the paper's, and is the paper's otherwise, also if
        several processes fit. y is classes (n,), or rows of 0 and 1 (n, c): vectors that share a label are alike.
    solver : "columns" is the paper's, one column at a time, each the global optimum given those before it. "stiefel" is
        our own, all columns at once by majorise-minimise.
    n_inner : steps of "stiefel" per update of the codes.
    n_components : principal components to train in (n_bits if that is more), 512 as in the paper; None for all. An
        iteration costs n * n_components * L, so skipping PCA on 4096 columns makes it 8 times dearer.
    tol, max_iter : stop at a relative change of the loss of at most `tol`, or after `max_iter` iterations.
    random_state : of the first, random orthonormal V.

    Attributes
    ----------
    mean_, projection_, scale_, intercept_, history_: as in `ITQ`.
    trials_: list, one record a scale that labels compared.

    Raises
    ------
    ValueError: by `fit`, as in `ITQ`; an unknown solver or scale, labels of another length than X.

    References
    ----------
    Hoang et al. (2020), Simultaneous compression and quantization (SCQ), arXiv:1802.06645.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(200, 32))
    >>> nk.OnE(16, max_iter=5, random_state=0).fit(X).encode(X).shape  # fit(X, y) chooses the scale by labels
    (200, 2)
    """

    n_bits: int = 32
    _: KW_ONLY
    scale: str | float = "auto"
    solver: str = "columns"
    n_inner: int = 1
    n_components: int | None = 512
    tol: float = 1e-4
    max_iter: int = 100
    random_state: Seed = None

    def _check_params(self) -> None:
        super()._check_params()
        check_choice(self.solver, "solver", ("columns", "stiefel"))

    def _step(self, c: np.ndarray) -> columns.AbstractColumnStep:
        return columns.OrthonormalColumns(c) if self.solver == "columns" else columns.StiefelColumns(c, self.n_inner)


@dataclass(eq=False, repr=False)
class OgE(AbstractEncoder):
    """Orthogonal Encoder: min |B - s X V|^2 / n + mu |V|^2 over signs B and v_i^T v_j = 0, V d x L (SCQ, eq. 19).

    Only the ridge mu / s^2 matters to the bits: a large one keeps to the top principal axes (and to neighbours), a
    small one flattens the spectrum, which on features of a network buys labels at the price of neighbours.

    Parameters
    ----------
    n_bits, scale, n_components, tol, max_iter, random_state : as in `OnE`.
    mu : penalty on the norm of the columns, 0.02 in the paper.
    ridge : None, or mu / s^2 as a share of the mean variance of the top L principal components: it replaces mu, and
        then the result does not depend on `scale`. With "eq25" the two are the same number.

    Attributes
    ----------
    mean_, projection_, scale_, intercept_, history_: as in `ITQ`.
    trials_: list, one record a scale that labels compared.

    Raises
    ------
    ValueError: by `fit`, as in `OnE`; mu or ridge not above 0.

    References
    ----------
    Hoang et al. (2020), as in `OnE`.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(200, 32))
    >>> hasher = nk.OgE(16, random_state=0).fit(X)
    >>> distances, ids = hasher.search(X[:2], hasher.encode(X), k=3)
    >>> ids.shape
    (2, 3)
    """

    n_bits: int = 32
    _: KW_ONLY
    scale: str | float = "auto"
    mu: float = 0.02
    ridge: float | None = None
    n_components: int | None = 512
    tol: float = 1e-4
    max_iter: int = 100
    random_state: Seed = None

    def _step(self, c: np.ndarray) -> columns.AbstractColumnStep:
        return columns.OrthogonalColumns(
            c, self.mu if self.ridge is None else self.ridge * float(c[: self.n_bits].mean())
        )
