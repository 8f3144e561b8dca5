"""A map from one encoder's vectors to another's, so that new queries search an index of old vectors.

Replacing an encoder otherwise means that every item is embedded and indexed again. A few thousand texts that both
models embedded are enough to train the map (Drift-Adapter, EMNLP 2025).
"""

from typing import ClassVar, Self

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.linear_model import RidgeCV
from sklearn.utils.validation import check_is_fitted

from nearkin._check import as_array, check_choice, check_names, check_vectors, numpy_generator, validate_vectors
from nearkin._estimators import SavedEstimator
from nearkin._fields import Extra, counted
from nearkin._types import ArrayLike, Record, Seed
from nearkin.linalg.batch_free import rounded_product
from nearkin.linalg.orthonormal import nearest_orthogonal, unit_rows
from nearkin.metrics.neighbours import ExactNeighbours
from nearkin.metrics.retrieval import without_self
from nearkin.metrics.trial import DEFAULTS as OF_TRIALS
from nearkin.metrics.trial import NEIGHBOURS, Trial

_KINDS = ("orthogonal", "low-rank", "affine")  # the fewest parameters first, which is their cost
_METRICS = ("cosine", "ip", "l2")
_FIRST = 8  # rows of y that tell them from those of X


class Bridge(ClassNamePrefixFeaturesOutMixin, TransformerMixin, SavedEstimator):
    """Train a map from new vectors X to old ones y, from texts that both encoders embedded.

    "orthogonal" is Procrustes' map with centring and one scale, rectangular where the widths differ. "affine" adds a
    correction by ridge regression, "low-rank" its leading part. All maps preserve the variance of the vectors. Held-out
    pairs decide: the kind whose mapped vectors find most of the new encoder's ten neighbours among the old vectors is
    fitted on all pairs, the simpler one within a standard error.

    Parameters
    ----------
    kind: "auto", or one of "orthogonal", "low-rank", "affine".
    metric: how the index compares: "cosine", "ip" or "l2".
    random_state: seed of the pairs held out.

    Attributes
    ----------
    map_, offset_: (d_new, d_old) and (d_old,); `transform(X)` is X @ map_ + offset_.
    first_: (8, d_old), the first rows of y, which `transform` refuses; no rows where X has them or other columns.
    kind_: the kind that won.
    trials_: a record of each kind; its value is the share of the new encoder's ten neighbours that it finds, for pairs
        held out, and "chance" the share that the neighbours found for another pair hold: if the two are alike, X and y
        do not embed the same things.
    n_features_in_: d_new.

    References
    ----------
    Schönemann (1966), A generalized solution of the orthogonal Procrustes problem.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> old = rng.normal(size=(200, 4)).astype(np.float32)
    >>> new = old @ np.linalg.qr(rng.normal(size=(4, 4)))[0]
    >>> bool(np.allclose(nk.Bridge(random_state=0).fit(new, old).transform(new), old, atol=1e-3))
    True
    """

    map_: np.ndarray
    offset_: np.ndarray
    first_: np.ndarray
    kind_: str
    trials_: list[Record]
    KIND: ClassVar[str] = "bridge"
    n_features_in_: int

    def __init__(self, kind: str = "auto", metric: str = "cosine", random_state: Seed = None) -> None:
        self.kind = kind
        self.metric = metric
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: ArrayLike | None = None) -> Self:
        """Train on paired vectors: row i of the new X (n, d_new) and of the old y (n, d_old) embed one thing.

        ValueError for fewer pairs than columns, for unequal numbers of vectors and for values that cannot be used.
        """
        if y is None:
            raise ValueError("Bridge requires y to be passed, but the target y is None; y is the old encoder's vectors")
        check_choice(self.kind, "kind", ("auto", *_KINDS))
        check_choice(self.metric, "metric", _METRICS)
        generator = numpy_generator(self.random_state)
        new = validate_vectors(self, X, reset=True, min_rows=2).astype(np.float32, copy=False)
        if not hasattr(y, "toarray"):  # sparse; scikit-learn's habits else: one column, and numbers as objects
            y = as_array(y, "y")
            y = (y[:, None] if y.ndim == 1 else y).astype(np.float32 if y.dtype == object else y.dtype, copy=False)
        old = check_vectors(y, name="y").astype(np.float32, copy=False)
        n, least = len(new), max(old.shape[1], new.shape[1])
        if len(old) != n:
            raise ValueError(f"X has {counted(n, 'vector')} and y {len(old)}; vector i of both must embed the same")
        if n < least:
            raise ValueError(
                f"{counted(n, 'pair is', 'pairs are')} too few for {new.shape[1]} and "
                f"{counted(old.shape[1], 'column')}; give at least {least}, better five times that"
            )
        order = generator.permutation(n)
        # a fifth of the pairs compares the kinds
        judged, learned = np.split(order, [max(1, min(int(0.2 * n), OF_TRIALS.queries))])
        kinds = _KINDS if self.kind == "auto" else (self.kind,)
        maps = _maps(old[learned], new[learned], kinds)
        wanted, trial = ExactNeighbours.given(self._nearest(new, new[judged], judged)), Trial[str]()
        for cost, kind in enumerate(kinds):
            mapped = new[judged] @ maps[kind][0] + maps[kind][1]
            near = self._nearest(old, mapped, judged)
            chance = float(wanted.recall(np.roll(near, 1, axis=0)).mean())
            trial.add(kind, wanted.recall(near), cost, chance=chance)
        self.kind_, self.trials_ = trial.winner(), trial.table()
        self.map_, self.offset_ = _maps(old, new, (self.kind_,))[self.kind_]
        turned = old.shape == new.shape and not np.array_equal(old[:_FIRST], new[:_FIRST])
        self.first_ = old[: _FIRST if turned else 0].copy()
        return self

    def transform(self, X: ArrayLike) -> np.ndarray:
        """Map new vectors X (n, d_new) to the old encoder's space, (n, d_old) float32.

        ValueError for the old vectors of `fit`, or as wide as they: to map these, fit with X and y in the other order.
        """
        check_is_fitted(self)
        check_names(self, X)
        width, other = self.map_.shape
        if width != other and getattr(X, "shape", ())[1:] == (other,):
            raise ValueError(
                f"X has {other} features, but Bridge is expecting {width} features as input. {other} are those of y of "
                "fit: the map is from X to y; for the other direction type fit(X, y) in the other order"
            )
        rows = np.asarray(validate_vectors(self, X), np.float32)
        if len(self.first_) and np.array_equal(rows[: len(self.first_)], self.first_):
            raise ValueError(
                "X begins with the vectors y of fit, which are there already: Bridge maps the vectors X of fit to y; "
                "type fit(X, y) with the new encoder's vectors first"
            )
        return rounded_product(rows, self.map_) + self.offset_

    @property
    def _n_features_out(self) -> int:
        return self.map_.shape[1]

    def __sklearn_tags__(self) -> Extra:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = tags.target_tags.multi_output = True
        tags.target_tags.single_output = False
        tags.transformer_tags.preserves_dtype = [np.float32]
        return tags

    def _nearest(self, rows: np.ndarray, asked: np.ndarray, own: np.ndarray) -> np.ndarray:
        """Numbers (q, k) of the rows nearest to each query, without its own row `own` (q,)."""
        rows, asked = (unit_rows(rows), unit_rows(asked)) if self.metric == "cosine" else (rows, asked)
        k = min(NEIGHBOURS, len(rows) - 1)
        return without_self(ExactNeighbours.of(rows, asked, k + 1, self.metric).ids, own)


def _maps(old: np.ndarray, new: np.ndarray, kinds: tuple[str, ...]) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Return by kind the map (d_new, d_old) and the offset (d_old,), float32, fitted on all the rows."""
    middle, target = new.mean(0, dtype=np.float64), old.mean(0, dtype=np.float64)
    X, Y = new - middle, old - target
    turned = nearest_orthogonal(X.T @ Y)
    size = float((X**2).sum())
    turned *= float(((X @ turned) * Y).sum()) / size if size else 1.0
    maps = {"orthogonal": turned}
    if set(kinds) - {"orthogonal"}:
        # ridges of the correction, in units of the new vectors' mean variance
        alphas = np.array((1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0)) * max(size / X.shape[1], np.finfo(np.float32).tiny)
        ridge = RidgeCV(alphas=alphas, fit_intercept=False).fit(X, Y - X @ turned)
        correction = np.asarray(ridge.coef_).T.reshape(turned.shape)
        maps["affine"] = turned + correction
        # the correction of "low-rank" has the rank of a quarter of the old columns
        leading = np.linalg.svd(X @ correction, full_matrices=False)[2][: max(1, int(0.25 * Y.shape[1]))]
        maps["low-rank"] = turned + correction @ leading.T @ leading
    # Least squares shrinks maps, and short queries find the same few rows: NDCG@10 of queries of multilingual-e5-small
    # among 12,000 sentences of MiniLM rose from .105 to .155, in five other directions by .003 to .069 (2026-11-24).
    for kind in kinds:
        maps[kind] *= np.linalg.norm(Y) / (np.linalg.norm(X @ maps[kind]) or 1.0)
    return {kind: (maps[kind].astype(np.float32), (target - middle @ maps[kind]).astype(np.float32)) for kind in kinds}
