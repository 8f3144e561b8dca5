"""The estimator: from interactions to embeddings of both sides."""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import KW_ONLY, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar, cast

import faiss
import numpy as np
import scipy.sparse as sp
import torch
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted
from torch import nn

from nearkin._check import check_choice, check_integer
from nearkin._distributed import current
from nearkin._fields import StrPath
from nearkin._pairs import MatrixLike, number_ids
from nearkin._storage import one_version, pack_ids, read_arrays, read_config, saving_folder, write_arrays
from nearkin._types import ArrayLike, Record, Seed
from nearkin.contracts import Callback, IndexMaker, TrainableIndex
from nearkin.embedding.saved_towers import KIND, read_towers
from nearkin.embedding.two_tower.als import FittedLoss, History, Known, encoded, explained, fold_in
from nearkin.embedding.two_tower.choice import loss_of
from nearkin.embedding.two_tower.cosine_softmax import CosineSoftmax, explained_softmax, fold_in_softmax
from nearkin.embedding.two_tower.fitting import (
    LOSSES,
    SOLVERS,
    Fitted,
    Loss,
    as_object,
    check_pairs,
    check_settings,
    fit_towers,
    join_interactions,
    matched,
)
from nearkin.embedding.two_tower.in_batch_softmax import AbstractSampledLoss, InBatchSoftmax
from nearkin.embedding.two_tower.objective import AllPairs
from nearkin.embedding.two_tower.towers import FeatureBranch, Tower
from nearkin.linalg.orthonormal import unit_rows
from nearkin.metrics.ranking import ranking_metrics, recommend
from nearkin.records import Interactions


@dataclass(eq=False, repr=False)
class TwoTower(BaseEstimator):
    """Embed users and items, the two sides of observed pairs, so that inner products rank.

    The loss can count all m x n pairs.

    Parameters
    ----------
    n_components : k, numbers in an embedding
    loss : "auto" chooses between "all-pairs" and "cosine-softmax", and their settings, by short fits measured on
        held-out pairs, and then fits all pairs; `trials_` records the choice. It is "all-pairs" if fewer than 100 users
        have held-out pairs, and with features, your own towers, another solver, or a given `regularization`.
        "all-pairs" (exact over all m x n pairs), "cosine-softmax" (embeddings of norm 1, sharper: for many items and
        few dimensions), "in-batch-softmax" (for towers over vectors of texts), or an object with settings:
        `nk.embedding.AllPairs(omega=...)`, `CosineSoftmax`, `InBatchSoftmax`
    solver : "auto" | "als" | "ials++" | "adam" | "gauss-newton" |
        "joint" | "sphere", or an object: `nk.embedding.ALS(max_iter=...)`, `Adam(learning_rate=...)`,
        `GaussNewton`, `Joint`, `SphereSweeps`. "auto" is ALS, with the
        branches fitted in each sweep, for the default towers, full-batch Adam for your own modules and with `index`,
        "sphere" for "cosine-softmax", and "joint" for id tables with an `IndexingLayer` or `SemanticIds`, whose
        `right_embeddings_` are then the quantized embeddings
    regularization : lambda of the embeddings' penalties; "auto" chooses it on held-out pairs
    left, right : torch modules to train as towers, called with the side's features, or with row numbers where it has
        none; None for an id embedding plus, if the side has features, a zero-initialised MLP of them, whose widths
        `nk.embedding.Tower(hidden=...)` sets
    index : `nearkin.contracts.TrainableIndex` that the right side is trained through, such as
        `nk.quantization.IndexingLayer`; or `nk.SemanticIds(...)`, which `index_.ids` then holds fitted: row i is the id
        of `right_ids_[i]`
    validation_fraction : share of the pairs that `fit` holds out for choices if it gets no validation, at random; with
        timestamps the latest pairs of users that have earlier ones, if they are 30 users
    random_state : seed

    Attributes
    ----------
    left_embeddings_, right_embeddings_: (m, k) and (n, k) float32.
    left_ids_, right_ids_: (m,) and (n,).
    history_: one record a step: `step` from 1, `objective` for each observed pair (of its weight), penalties included,
        `seconds`, and `metric` with held-out pairs.
    loss_: the loss as an object.
    trials_: one record a short fit of loss "auto": `loss`, `settings`, `sweeps`, `seconds`, `recall@20`, `ndcg@20`, and
        `why` in the chosen one.
    solver_: the name of the solver that "auto" chose.
    regularization_, omega_: lambda, and the weight of unobserved pairs.
    index_: the trained copy of `index`.
    exact_embeddings_: both sides without an index; solver "joint" trains them first.

    References
    ----------
    Yuan et al. (2021), Efficient optimization methods for extreme similarity learning (ESL), arXiv:2010.13511.

    Examples
    --------
    >>> pairs = nk.Interactions.from_pairs(*np.random.default_rng(0).integers(0, 40, (2, 400)))
    >>> model = nk.TwoTower(8, loss="all-pairs", regularization=0.1, random_state=0).fit(pairs)
    >>> model.left_embeddings_.shape, model.recommend([3], k=5)[0].shape
    ((40, 8), (1, 5))
    """

    n_components: int = 64
    _: KW_ONLY
    loss: Any = "auto"
    solver: Any = "auto"
    regularization: float | str = "auto"
    left: nn.Module | Tower | None = None
    right: nn.Module | Tower | None = None
    index: TrainableIndex | IndexMaker | None = None
    validation_fraction: float = 0.1
    random_state: Seed = None

    def set_params(self, **params: Any) -> "TwoTower":
        """scikit-learn's; `loss__omega` or `solver__max_iter` also work on a loss or solver given as a string."""
        for name in ("loss", "solver"):
            if any(key.startswith(f"{name}__") for key in params):
                params = {name: as_object(params.get(name, getattr(self, name)), name)} | params
        if "solver" in params and params["solver"] is None:
            raise ValueError("solver is 'auto', which has no settings; name one, such as solver='als'")
        return super().set_params(**params)

    # ---- fitting ---------------------------------------------------------------------------------------------------

    def fit(
        self,
        interactions: Interactions,
        y: object = None,
        *,
        validation: Interactions | None = None,
        callback: Callback | None = None,
    ) -> "TwoTower":
        """Train both towers from the observed pairs.

        `validation` holds pairs of the same ids; training then watches their NDCG@100 and keeps the best step.
        Without it, a share of the pairs is held out if a choice is needed, and ALS is fitted on all pairs afterwards.
        `callback(step, record)` is called after every step, and before that after every short fit of loss "auto"
        ("phase": "loss") and every tried strength of regularization ("phase": "regularization").
        """
        settings = check_settings(self, interactions, validation)
        if validation is not None:
            validation = matched(validation, interactions.left_ids, interactions.right_ids)
        return self._keep(fit_towers(settings, interactions, validation, callback=callback, group=current()))

    def partial_fit(
        self,
        interactions: Interactions,
        y: object = None,
        *,
        max_iter: int | None = None,
        callback: Callback | None = None,
    ) -> "TwoTower":
        """Continue from the fitted embeddings with new pairs, whose ids may be new too; an unfitted model is fitted.

        New pairs are added to the pairs of `fit`; the weights of a repeated pair are added. lambda is kept, nothing is
        held out, and `max_iter` steps are taken, by default two sweeps of ALS, or a quarter of the steps of any other
        solver. An index is trained again.
        """
        if not hasattr(self, "left_embeddings_"):
            return self.fit(interactions, y, callback=callback)
        if max_iter is not None:
            check_integer(max_iter, "max_iter", low=1)
        check_pairs(interactions)
        pairs = join_interactions(self.seen_, interactions)
        settings, group = check_settings(self, pairs), current()
        return self._keep(fit_towers(settings, pairs, before=self, max_iter=max_iter, callback=callback, group=group))

    def _keep(self, fitted: Fitted) -> "TwoTower":
        pair, solver, interactions = fitted.pair, fitted.solver, fitted.interactions
        self.left_ids_: np.ndarray = interactions.left_ids
        self.right_ids_: np.ndarray = interactions.right_ids
        self.seen_: Interactions = interactions
        self.left_embeddings_: np.ndarray
        self.right_embeddings_: np.ndarray
        self.left_embeddings_, self.right_embeddings_ = (X.detach().cpu().numpy().copy() for X in solver.embeddings())
        exact, own = solver.exact(), (self.left_embeddings_, self.right_embeddings_)
        self.exact_embeddings_: tuple[np.ndarray, ...] = own if exact is None else tuple(X.cpu().numpy() for X in exact)
        encoders = (None if side.features is None else side.encoder for side in pair.sides)
        self.left_encoder_: nn.Module | None
        self.right_encoder_: nn.Module | None
        self.left_encoder_, self.right_encoder_ = (
            None if module is None else module.eval().cpu() for module in encoders
        )
        self.index_: TrainableIndex | None = pair.index.cpu() if isinstance(pair.index, nn.Module) else pair.index
        self.solver_: str = solver.name
        self.history_: list[Record] = fitted.history
        self.regularization_: float = pair.strength
        self.omega_: float = pair.objective.omega
        self.trials_: list[Record] = fitted.trials
        self.loss_: Loss = fitted.loss
        self.costs_: tuple[np.ndarray, np.ndarray] = pair.objective.a, pair.objective.b
        return self

    # ---- using -----------------------------------------------------------------------------------------------------

    def transform_left(self, left: MatrixLike) -> np.ndarray:
        """(b, k) embeddings of users, from ids (b,) seen in fit or from features (b, d) of any entities."""
        return transform(left, self._fitted().left_ids_, self.left_embeddings_, self.left_encoder_, "left")

    def transform_right(self, right: MatrixLike) -> np.ndarray:
        """(b, k) embeddings of items, from ids (b,) seen in fit or from features (b, d) of any entities."""
        return transform(right, self._fitted().right_ids_, self.right_embeddings_, self.right_encoder_, "right")

    def embed_left(self, history: History, features: ArrayLike | None = None) -> np.ndarray:
        """(b, k) embeddings of new users from their histories, without training.

        `history` is the right ids of one entity, a sequence of them for each of several, `Interactions` whose right ids
        the model knows, or a sparse (b, n) matrix of weights. The model's own loss, all pairs or cosine softmax, is
        solved for each row with the right side fixed. Rows shrink towards the branch of their `features` (b, d), in a
        model with features of this side.
        ValueError for an id that the model does not know, no pair at all, or a model of a sampled loss.
        """
        known = Known(self._fitted().right_ids_, self.right_embeddings_, "right", self.costs_[1])
        return self._fold_in(history, known, self.left_embeddings_, self.left_encoder_, features)

    def embed_right(self, history: History, features: ArrayLike | None = None) -> np.ndarray:
        """(b, k) embeddings of new items from the left ids of each; see `embed_left`.

        They are not quantized: the index quantizes rows that are added to it.
        """
        known = Known(self._fitted().left_ids_, self.left_embeddings_, "left", self.costs_[0])
        return self._fold_in(history, known, self.right_embeddings_, self.right_encoder_, features)

    def _fold_in(
        self, history: History, known: Known, others: np.ndarray, encoder: nn.Module | None, features: ArrayLike | None
    ) -> np.ndarray:
        """New rows by the loss of the fit; ValueError for a sampled loss, which has no such solution."""
        loss = self._solved_loss()
        if isinstance(loss, CosineSoftmax):
            return fold_in_softmax(history, known, others, loss, self.seen_)
        return fold_in(history, known, loss, encoder, features)

    def _solved_loss(self) -> CosineSoftmax | FittedLoss:
        loss = self.loss_
        if isinstance(loss, CosineSoftmax):
            return loss
        if not isinstance(loss, AllPairs):
            raise ValueError(
                f"loss is {loss.name!r}; a new row is solved for 'all-pairs' and 'cosine-softmax' only. Fit with one "
                "of them, or give transform_left or transform_right the features"
            )
        return FittedLoss(loss, self.omega_, self.regularization_, self.seen_)

    def recommend(
        self,
        left_ids: ArrayLike | None = None,
        k: int = 10,
        *,
        exclude_seen: bool = True,
        candidates: ArrayLike | None = None,
        index: faiss.Index | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """The k items that rank first for each left id (default all of them): scores and ids, both (b, k), best first.

        `exclude_seen` leaves out the pairs of fit; `candidates` are the right ids that may be recommended, default all;
        `index` is a `faiss.Index` of the right side in the order of `right_ids_`, such as the `faiss_index` of an
        `nk.Index` by `model.index_.to_quantizer()`, that is searched instead of the embeddings. Where fewer than k
        items remain, the score is -inf and the id is -1 (or "" for text).
        """
        self._fitted()
        rows = None if left_ids is None else number_ids(left_ids, self.left_ids_, "left")[0]
        allowed = None if candidates is None else number_ids(candidates, self.right_ids_, "right")[0]
        scores, numbers = recommend(
            self.left_embeddings_, self.right_embeddings_ if index is None else index, k,
            seen=self.seen_ if exclude_seen else None, users=rows, candidates=allowed,
        )  # fmt: skip
        return scores, name_ids(numbers, self.right_ids_)

    def explain(
        self, left_ids: ArrayLike | None, right_ids: ArrayLike, n: int = 10, *, history: History | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Why items are recommended: the n items of each user's history that add most to the scores of `right_ids`.

        `left_ids` (b,) were seen in fit; None for new users with a `history`, as in `embed_left`. `right_ids` (b, K)
        are items of each user, as `recommend` returns them, or (K,) of a single one. Returns contributions and ids,
        both (b, K, n), largest first; 0 and -1 (or "" for text) where the history is shorter or `right_ids` empty.

        Contributions are exact: those of the whole history sum to the score of `embed_left(history)`, the user's vector
        for these pairs. Under all pairs that vector is a sum over the history, as in implicit's ALS, and a `prior` has
        the rest of the score; under a softmax on cosines it is the history's mean less what the softmax expects, and
        the item's popularity bias has the rest. ValueError for unknown ids, no pair, or a model of a sampled loss.
        """
        if left_ids is not None and history is None:
            rows, _ = number_ids(left_ids, self._fitted().left_ids_, "left")
            history = sp.csr_matrix(self.seen_.matrix()[rows])
        elif left_ids is not None or history is None:
            raise ValueError("give either left_ids seen in fit, or None and the history= of new users")
        check_integer(n, "n", low=1)
        wanted = np.atleast_2d(right_ids)
        there = wanted != name_ids(np.array(-1), self.right_ids_)
        Q, numbers = self.right_embeddings_, np.full(wanted.shape, -1)
        numbers[there] = number_ids(wanted[there], self._fitted().right_ids_, "right")[0]
        known, loss = Known(self.right_ids_, Q, "right", self.costs_[1]), self._solved_loss()
        if isinstance(loss, CosineSoftmax):
            pairs, parts = explained_softmax(history, known, loss, self.seen_)
        else:
            pairs, parts = explained(history, known, loss)
        if len(wanted) != (users := len(pairs.indptr) - 1):
            raise ValueError(f"right_ids has shape {wanted.shape}; it must be ({users}, K), a row for each user")
        added, because = np.zeros((*wanted.shape, n), Q.dtype), np.full((*wanted.shape, n), -1)
        for row, (first, stop) in enumerate(pairwise(pairs.indptr)):
            each = Q[numbers[row]] @ parts[first:stop].T
            best = np.argsort(-each, axis=1, kind="stable")[:, :n]
            added[row, :, : best.shape[1]] = np.take_along_axis(each, best, axis=1)
            because[row, :, : best.shape[1]] = pairs.indices[first:stop][best]
        added[numbers < 0], because[numbers < 0] = 0, -1
        return added, name_ids(because, self.right_ids_)

    def similar(self, ids: ArrayLike, k: int = 10, *, side: str = "right") -> tuple[np.ndarray, np.ndarray]:
        """The k items, or with side="left" users, of largest cosine to each of their `ids`, without itself: cosines and
        ids, both (b, k)."""
        left = check_choice(side, "side", ("left", "right")) == "left"
        self._fitted()
        own, X = (self.left_ids_, self.left_embeddings_) if left else (self.right_ids_, self.right_embeddings_)
        rows, X = number_ids(ids, own, side)[0], unit_rows(X)
        itself = sp.csr_matrix((np.ones(len(X)), (np.arange(len(X)),) * 2))
        scores, numbers = recommend(X, X, k, seen=itself, users=rows)
        return scores, name_ids(numbers, own)

    def score(self, interactions: Interactions, y: object = None, *, k: int = 100) -> float:
        """NDCG@k of held-out pairs, as `evaluate` computes it."""
        return self.evaluate(interactions, k=k)[f"ndcg@{k}"]

    def evaluate(self, interactions: Interactions, *, k: int | Sequence[int] = (20, 100)) -> dict[str, float]:
        """Recall, precision, NDCG and MRR at each k, as in `nk.metrics.ranking_metrics`, of held-out pairs.

        Pairs of fit are left out, also of `interactions`. Ids are matched; ValueError for an unknown one, which
        `interactions.select(np.isin(interactions.right_ids[interactions.indices], model.right_ids_))` leaves out.
        """
        self._fitted()
        check_pairs(interactions)
        held = matched(interactions, self.left_ids_, self.right_ids_).matrix() > 0
        return ranking_metrics(self.left_embeddings_, self.right_embeddings_, held, seen=self.seen_, k=k)

    def save(self, path: StrPath, *, overwrite: bool = False) -> None:
        """Write a folder: config.json, embeddings, ids, seen pairs, and the encoders of features if there are any.

        Parameters that JSON cannot hold (modules, arrays, seeds) are left out of config.json. ValueError if `path`
        exists, without `overwrite`.
        """
        seen, sides = self._fitted().seen_, ("left", "right")
        config = {
            "parameters": _written_parameters(self),
            "fitted": {"solver": self.solver_, "regularization": self.regularization_, "omega": self.omega_},
            "history": self.history_,
            "trials": self.trials_,
        }
        with saving_folder(path, KIND, config, overwrite) as folder:
            arrays = {"left": self.left_embeddings_, "right": self.right_embeddings_}
            write_arrays(folder / "embeddings.safetensors", arrays)
            ids = pack_ids("left", self.left_ids_) | pack_ids("right", self.right_ids_)
            pairs = {"indptr": seen.indptr, "indices": seen.indices, "weights": seen.weights}
            pairs |= {} if seen.timestamps is None else {"timestamps": seen.timestamps}
            write_arrays(folder / "pairs.safetensors", ids | pairs)
            arrays = {f"{side}_costs": costs for side, costs in zip(sides, self.costs_, strict=True)}
            prior = self.loss_.prior if isinstance(self.loss_, AllPairs) else None
            if isinstance(prior, tuple | list):
                arrays |= {f"prior_{side}": np.asarray(x) for side, x in zip(sides, prior, strict=True)}
            write_arrays(folder / LOSS_ARRAYS, arrays)
            modules = {"left_encoder": self.left_encoder_, "right_encoder": self.right_encoder_, "index": self.index_}
            for name, module in modules.items():
                if module is not None:
                    state = {key: value.cpu().numpy() for key, value in module.state_dict().items()}
                    write_arrays(folder / f"{name}.safetensors", state)

    @classmethod
    def load(
        cls,
        path: StrPath,
        *,
        left: nn.Module | None = None,
        right: nn.Module | None = None,
        index: nn.Module | IndexMaker | None = None,
    ) -> "TwoTower":
        """Read a folder of `save`. Your own modules, and an index, are passed again and get their weights.

        ValueError if an encoder of your own is needed and was not given; without `index`, `index_` is None.
        """
        return one_version(path, lambda folder: _read(folder, left, right, index))

    def _fitted(self) -> "TwoTower":
        check_is_fitted(self, "left_embeddings_")
        return self


def transform(
    entities: MatrixLike, ids: np.ndarray, embeddings: np.ndarray, module: nn.Module | None, side: str
) -> np.ndarray:
    """Embeddings by id where `entities` is 1-D, by features where it is 2-D."""
    sparse = isinstance(entities, sp.spmatrix | sp.sparray)
    if not sparse and np.ndim(entities) == 1:
        return embeddings[number_ids(entities, ids, side)[0]]
    if module is None:
        shape = entities.shape if sparse else np.shape(entities)
        raise ValueError(
            f"{side} has shape {shape}, features, but the model was fitted without features on this side; "
            f"give ids (b,) of {side}, or fit with interactions.with_features({side}=...)"
        )
    return encoded(module, entities, side).numpy()


def name_ids(numbers: np.ndarray, ids: np.ndarray) -> np.ndarray:
    """The ids of the numbers; -1 becomes -1, or "" where ids are text."""
    return np.where(numbers >= 0, ids[numbers], np.array(-1 if ids.dtype.kind in "iuf" else "").astype(ids.dtype))


LOSS_ARRAYS = "loss.safetensors"
Module = TypeVar("Module", nn.Module, TrainableIndex)
PLAIN = (int, float, str, bool, type(None))  # types of parameters that JSON holds
SETTINGS = (*(type(make()) for make in (*LOSSES.values(), *SOLVERS.values())), Tower)
_KINDS = {kind.__name__: kind for kind in SETTINGS}


def _read(
    folder: Path, left: nn.Module | None, right: nn.Module | None, index: nn.Module | IndexMaker | None
) -> TwoTower:
    config = read_config(folder, KIND)
    model = TwoTower(**_read_parameters(config["parameters"], {"left": left, "right": right, "index": index}))
    model.left_embeddings_, model.right_embeddings_, model.seen_ = read_towers(folder)
    model.left_ids_, model.right_ids_ = model.seen_.left_ids, model.seen_.right_ids
    fitted = config["fitted"]
    model.solver_, model.regularization_, model.omega_ = fitted["solver"], fitted["regularization"], fitted["omega"]
    model.history_, model.index_ = config["history"], None
    model.trials_ = config["trials"]
    model.loss_ = loss_of(model.trials_) if model.trials_ else cast(Loss, as_object(model.loss, "loss"))
    model.exact_embeddings_ = model.left_embeddings_, model.right_embeddings_
    arrays = read_arrays(folder / LOSS_ARRAYS)
    if "prior_left" in arrays and isinstance(model.loss, AllPairs):
        model.loss.prior = arrays["prior_left"], arrays["prior_right"]
    model.costs_ = arrays["left_costs"], arrays["right_costs"]
    if index is not None:
        if not (folder / "index.safetensors").is_file():
            raise ValueError(f"{folder} was fitted without an index; load it without index=")
        module = index.trainable(len(model.right_ids_)) if isinstance(index, IndexMaker) else deepcopy(index)
        model.index_ = _filled(module, read_arrays(folder / "index.safetensors"))
    model.left_encoder_, model.right_encoder_ = _encoder(folder, "left", left), _encoder(folder, "right", right)
    return model


def _written_parameters(model: TwoTower) -> Record:
    """Parameters as JSON: a settings object as a dict with its class."""
    written = {}
    for name, value in model.get_params(deep=False).items():
        if isinstance(value, (*SETTINGS, AbstractSampledLoss)):
            own = {part: v for part, v in value.get_params(deep=False).items() if _is_plain(v)}
            written[name] = {"class": type(value).__name__} | own
        elif isinstance(value, PLAIN):
            written[name] = value
    return written


def _is_plain(value: object) -> bool:
    """Whether JSON can hold it; the factors of a prior, for example, are saved as arrays."""
    return isinstance(value, PLAIN) or (isinstance(value, tuple | list) and all(map(_is_plain, value)))


def _read_parameters(written: Record, modules: Record) -> Record:
    """The parameters that `_written_parameters` wrote; for others the modules that the user gives again."""
    parameters = dict(written)
    for name, value in written.items():
        if isinstance(value, dict):
            own: Record = {part: tuple(v) if isinstance(v, list) else v for part, v in value.items() if part != "class"}
            kind = _KINDS.get(value["class"])  # of your own: a solver is "auto" again, a loss solves no new rows
            parameters[name] = (InBatchSoftmax() if name == "loss" else "auto") if kind is None else kind(**own)
    return modules | {name: value for name, value in parameters.items() if value is not None}


def _encoder(folder: Path, side: str, own: nn.Module | None) -> nn.Module | None:
    """The saved encoder of a side, None if there is none: a branch of features, or a module of your own."""
    file = folder / f"{side}_encoder.safetensors"
    if not file.is_file():
        return None
    arrays = read_arrays(file)
    if {"shift", "last.bias"} <= arrays.keys():
        n_layers = sum(name.startswith("layers.") and name.endswith("weight") for name in arrays)
        hidden = tuple(len(arrays[f"layers.{layer}.weight"]) for layer in range(n_layers))
        own = FeatureBranch(len(arrays["shift"]), len(arrays["last.bias"]), hidden, torch.Generator())
    if own is None:
        raise ValueError(f"{folder} was fitted with your own {side} tower; load it with {side}=a module of that class")
    return _filled(own, arrays)


def _filled(module: Module, arrays: dict[str, np.ndarray]) -> Module:
    module.load_state_dict({name: torch.from_numpy(array) for name, array in arrays.items()})
    return module.eval()
