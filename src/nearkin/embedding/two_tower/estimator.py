"""The estimator: from interactions to embeddings of both sides."""

from copy import deepcopy
from os import PathLike
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from nearkin._check import check_choice, check_integer, check_real, check_vectors
from nearkin._pairs import Features, number_ids
from nearkin._random import draw_seed
from nearkin._shards import shared_generator
from nearkin.embedding.all_pairs.pair_losses import AbstractPairLoss
from nearkin.embedding.two_tower import storage
from nearkin.embedding.two_tower.objective import initial_tables, make_objective
from nearkin.embedding.two_tower.plan import (
    LOSSES,
    SOLVERS,
    TABLES_ONLY,
    Plan,
    choose_solver,
    default_steps,
    make_solver,
)
from nearkin.embedding.two_tower.regularization import SAMPLED, choose_regularization, start_tables
from nearkin.embedding.two_tower.towers import FeatureBranch, ResidualTower, Side, as_tensor
from nearkin.embedding.two_tower.training import Callback, train
from nearkin.embedding.two_tower.tuning import tune
from nearkin.embedding.two_tower.validation import HeldOut, held_out, hold_out
from nearkin.metrics.ranking import ranking_metrics, recommend
from nearkin.records import Interactions


class TwoTower(BaseEstimator):
    """Embed the left and right entities of observed pairs so that the inner product ranks, every pair counted.

    Parameters
    ----------
    n_components : k, length of the embeddings
    left, right : torch modules to train as towers, called with the side's features, or with row numbers where it has
        none; None for an id embedding plus, where the side has features, a zero-initialised MLP of them
    loss : "all-pairs" (exact over all m x n pairs), "in-batch-softmax", "in-batch-hinge" (cosines, margin 0.1) or
        "sampled-bce" (for comparison)
    solver : "auto" | "als" | "ials++" | "adam" | "gd" | "l-bfgs" | "gauss-newton" | "gauss-newton-joint" |
        "sub-blocks" | "sogram" | "joint"; "auto" is ALS, with the branches fitted in each sweep, for the default
        towers, full-batch Adam for modules of your own and with `index`, and "joint" for id tables with an
        `IndexingLayer`, whose `right_embeddings_` are then the quantized rows
    pair_loss : l of the observed pairs, "squared" | "logistic" | "squared-hinge" | a CustomPairLoss
    omega : weight of an unobserved pair; "auto" lets all of them weigh 16 times the observed ones
    regularization : lambda of the rows' penalties; "auto" chooses it on held-out pairs
    weighting : the record's weights as importance of a pair, "log" | "linear" | "none"
    labels : "ones", or "weights" to fit the weights themselves as Y_ij
    left_costs, right_costs : a (m,) and b (n,), such as inverse propensities; default 1, and 0 for entities with
        features but without a pair
    prior : (Pt (m, k'), Qt (n, k')) or a number that imputes the unobserved labels; default 0
    hidden : widths of the hidden layers of the default branches
    max_steps : sweeps, full-batch steps or epochs at most; None for the solver's own number ("joint" starts its index
        at step 9, after eight sweeps of the towers)
    max_seconds : no further step is begun after so many seconds of steps
    learning_rate, batch_size : for the solvers that have them; None for their own
    start : where id tables begin, "als", "random" or "auto": ALS for the all-pairs loss on the default towers
    patience : steps without a new best held-out NDCG@100 before training stops
    validation_fraction : share of the pairs held out where a choice must be made and `fit` got no validation
    index : module with forward(Q) -> (quantized Q, distortion) that the right side is trained through
    distortion_weight : what its distortion is multiplied by, beside the mean loss of an observed pair
    random_state : seed

    Attributes
    ----------
    left_embeddings_ (m, k), left_ids_ (m,), right_embeddings_ (n, k), right_ids_ (n,), history_ (one record a step),
    index_ (the trained copy of `index`), exact_embeddings_ (both as they would be without an index; solver "joint"
    learns them first), regularization_, omega_, solver_ (what "auto" became), n_features_in_ is not set: the input is a
    table of pairs

    >>> import nearkin as nk
    >>> pairs = nk.data.planted_interactions(60, 40, random_state=0).interactions
    >>> model = nk.TwoTower(n_components=8, random_state=0).fit(pairs)
    >>> model.left_embeddings_.shape, model.recommend([3], k=5)[0].shape
    ((60, 8), (1, 5))
    """

    def __init__(
        self,
        n_components: int = 64,
        *,
        left: nn.Module | None = None,
        right: nn.Module | None = None,
        loss: str = "all-pairs",
        solver: str = "auto",
        pair_loss: str | AbstractPairLoss = "squared",
        omega: float | str = "auto",
        regularization: float | str = "auto",
        weighting: str = "log",
        labels: str = "ones",
        left_costs: Any = None,
        right_costs: Any = None,
        prior: Any = None,
        hidden: tuple[int, ...] = (128,),
        max_steps: int | None = None,
        max_seconds: float | None = None,
        learning_rate: float | None = None,
        batch_size: int = 4096,
        start: str = "auto",
        patience: int = 10,
        validation_fraction: float = 0.1,
        index: nn.Module | None = None,
        distortion_weight: float = 1.0,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.left = left
        self.right = right
        self.loss = loss
        self.solver = solver
        self.pair_loss = pair_loss
        self.omega = omega
        self.regularization = regularization
        self.weighting = weighting
        self.labels = labels
        self.left_costs = left_costs
        self.right_costs = right_costs
        self.prior = prior
        self.hidden = hidden
        self.max_steps = max_steps
        self.max_seconds = max_seconds
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.start = start
        self.patience = patience
        self.validation_fraction = validation_fraction
        self.index = index
        self.distortion_weight = distortion_weight
        self.random_state = random_state

    # ---- fitting ---------------------------------------------------------------------------------------------------

    def fit(
        self,
        interactions: Interactions,
        y: Any = None,
        *,
        validation: Interactions | None = None,
        callback: Callback | None = None,
        checkpoint: str | PathLike | None = None,
    ) -> "TwoTower":
        """Learn both towers from the observed pairs.

        `validation` holds pairs over the same ids; training then watches their NDCG@100 and keeps the best step.
        Without it, a share of the pairs is held out where something must be chosen, and ALS is fitted on all of them
        afterwards. `callback(step, record)` hears of every step; `checkpoint` is a folder from which an interrupted
        fit goes on.
        """
        del y
        self._check(interactions, validation)
        rng = shared_generator(self.random_state)
        generator = torch.Generator().manual_seed(draw_seed(rng))
        featured = interactions.left_features is not None or interactions.right_features is not None
        custom = self.left is not None or self.right is not None or (featured and self.index is not None)
        self.solver_ = choose_solver(self.loss, self.solver, custom=custom, index=self.index)
        fitted, held = self._held_out(interactions, validation, rng)
        plan = self._plan(fitted, held, rng, generator, callback)
        if self.solver_ in TABLES_ONLY and validation is None:
            plan.objective, held = self._objective(interactions), None
        solver = make_solver(self.loss, self.solver_, plan)
        self.history_ = train(
            solver,
            default_steps(self.loss, self.solver_) if self.max_steps is None else self.max_steps,
            evaluate=None if held is None else held.metric,
            patience=None if held is None else self.patience,
            callback=callback,
            checkpoint=checkpoint,
            max_seconds=self.max_seconds,
        )
        self._finish(interactions, plan, solver.embeddings())
        self.exact_embeddings_ = getattr(solver, "exact", (self.left_embeddings_, self.right_embeddings_))
        return self

    def _check(self, interactions: Interactions, validation: Interactions | None) -> None:
        for name, pairs in (("interactions", interactions), ("validation", validation)):
            if not isinstance(pairs, Interactions) and (name == "interactions" or pairs is not None):
                raise TypeError(
                    f"{name} is of type {type(pairs).__name__}; it must be Interactions, "
                    "use nk.read_interactions(path) or Interactions.from_matrix(matrix)"
                )
        if validation is not None and validation.shape != interactions.shape:
            raise ValueError(
                f"validation has shape {validation.shape}; it must be {interactions.shape}, as interactions. "
                "Split one record, for example with nk.data.split_random"
            )
        check_integer(self.n_components, "n_components", low=1)
        check_choice(self.loss, "loss", LOSSES)
        check_choice(self.solver, "solver", ("auto", *SOLVERS))
        check_choice(self.start, "start", ("auto", "als", "random"))
        check_integer(self.batch_size, "batch_size", low=2)
        check_integer(self.patience, "patience", low=1)
        check_real(self.validation_fraction, "validation_fraction", above=0, high=0.5)
        check_real(self.distortion_weight, "distortion_weight", low=0)
        if self.max_steps is not None:
            check_integer(self.max_steps, "max_steps", low=1)
        if self.max_seconds is not None:
            check_real(self.max_seconds, "max_seconds", above=0)
        if self.learning_rate is not None:
            check_real(self.learning_rate, "learning_rate", above=0)
        if self.regularization != "auto":
            check_real(self.regularization, "regularization", low=0)

    def _held_out(
        self, interactions: Interactions, validation: Interactions | None, rng: np.random.Generator
    ) -> tuple[Interactions, HeldOut | None]:
        """The pairs to train on and those to choose by."""
        if validation is not None:
            return interactions, held_out(validation, interactions, rng)
        if self.regularization != "auto" and self.solver_ in TABLES_ONLY:
            return interactions, None
        return hold_out(interactions, self.validation_fraction, rng)

    def _objective(self, interactions: Interactions):
        return make_objective(
            interactions, pair_loss=self.pair_loss, omega=self.omega, weighting=self.weighting, labels=self.labels,
            a=self.left_costs, b=self.right_costs, prior=self.prior,
        )  # fmt: skip

    def _plan(
        self,
        interactions: Interactions,
        held: HeldOut | None,
        rng: np.random.Generator,
        generator: torch.Generator,
        callback: Callback | None,
    ) -> Plan:
        """Objective, strength of regularization, towers and starting tables."""
        objective = self._objective(interactions)
        P, Q = random_start = initial_tables(interactions, self.n_components, generator)
        strength = self.regularization
        if self.loss != "all-pairs":
            strength = SAMPLED * objective.noise_level(rng) if strength == "auto" else strength
        elif strength == "auto":
            strength, P, Q = choose_regularization(objective, P, Q, held, random_state=rng, callback=callback)
        elif self.solver_ not in TABLES_ONLY and self._starts_from_als():
            P, Q = start_tables(objective, float(strength), P, Q)
        if self.solver_ in TABLES_ONLY or not self._starts_from_als():
            P, Q = random_start  # a fresh ALS of few sweeps ranks better than one that has gone down the whole path
        sides = [
            Side(self._tower(module, features, size, generator), size, features)
            for module, features, size in (
                (self.left, interactions.left_features, interactions.shape[0]),
                (self.right, interactions.right_features, interactions.shape[1]),
            )
        ]
        return Plan(
            objective, float(strength), *sides, start=(P, Q), index=deepcopy(self.index),
            distortion_weight=self.distortion_weight, learning_rate=self.learning_rate, batch_size=self.batch_size,
            generator=generator,
        )  # fmt: skip

    def _starts_from_als(self) -> bool:
        """Whether id tables begin where ALS ends; beside a module of the user's own they would not fit it."""
        own = self.left is not None or self.right is not None
        return self.start == "als" or (self.start == "auto" and self.loss == "all-pairs" and not own)

    def _tower(
        self, module: nn.Module | None, features: Features | None, size: int, generator: torch.Generator
    ) -> nn.Module:
        if module is not None:
            return deepcopy(module)
        branch = None
        if features is not None:
            width = features.shape[1]  # pyright: ignore[reportOptionalSubscript]
            branch = FeatureBranch(width, self.n_components, tuple(self.hidden), generator)
            branch.fit_scale(features)
        return ResidualTower(size, self.n_components, branch)

    def _finish(self, interactions: Interactions, plan: Plan, embeddings: tuple[Tensor, Tensor]) -> None:
        self.left_ids_, self.right_ids_, self.seen_ = interactions.left_ids, interactions.right_ids, interactions
        self.left_embeddings_, self.right_embeddings_ = (X.detach().numpy().copy() for X in embeddings)
        self.left_encoder_, self.right_encoder_ = encoder(plan.left), encoder(plan.right)
        self.index_ = plan.index
        self.regularization_, self.omega_ = plan.strength, plan.objective.omega

    # ---- using -----------------------------------------------------------------------------------------------------

    def transform_left(self, left: Any) -> np.ndarray:
        """(b, k) embeddings of left entities, from ids (b,) seen in fit or from features (b, d) of any entities."""
        return transform(left, self._fitted().left_ids_, self.left_embeddings_, self.left_encoder_, "left")

    def transform_right(self, right: Any) -> np.ndarray:
        """(b, k) embeddings of right entities, from ids (b,) seen in fit or from features (b, d) of any entities."""
        return transform(right, self._fitted().right_ids_, self.right_embeddings_, self.right_encoder_, "right")

    def recommend(self, left_ids: Any, k: int = 10, *, exclude_seen: bool = True) -> tuple[np.ndarray, np.ndarray]:
        """The k rights that rank first for each left id: scores and ids, both (b, k), best first.

        `exclude_seen` leaves out the pairs of fit. Where fewer than k rights remain, the score is -inf and the id is -1
        (or "" for text).
        """
        rows, _ = number_ids(left_ids, self._fitted().left_ids_, "left")
        seen = self.seen_ if exclude_seen else None
        scores, numbers = recommend(self.left_embeddings_, self.right_embeddings_, k, seen=seen, rows=rows)
        return scores, name_ids(numbers, self.right_ids_)

    def similar(self, right_ids: Any, k: int = 10) -> tuple[np.ndarray, np.ndarray]:
        """The k rights of largest cosine to each right id, itself left out: cosines and ids, both (b, k)."""
        rows, _ = number_ids(right_ids, self._fitted().right_ids_, "right")
        X = self.right_embeddings_
        X = X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), np.finfo(X.dtype).tiny)
        itself = sp.csr_matrix((np.ones(len(X)), (np.arange(len(X)),) * 2))
        scores, numbers = recommend(X, X, k, seen=itself, rows=rows)
        return scores, name_ids(numbers, self.right_ids_)

    def score(self, interactions: Interactions, y: Any = None, *, k: int = 100) -> float:
        """NDCG@k of held-out pairs over the same ids; the pairs of fit are left out of the rankings."""
        del y
        return self.evaluate(interactions, k=k)[f"ndcg@{k}"]

    def evaluate(self, interactions: Interactions, *, k: Any = (20, 100)) -> dict[str, float]:
        """Recall, precision, NDCG and MRR at each k, as `nk.metrics.ranking_metrics` counts them."""
        self._fitted()
        return ranking_metrics(self.left_embeddings_, self.right_embeddings_, interactions, seen=self.seen_, k=k)

    def tune(self, interactions: Interactions, validation: Interactions | None = None, **grid: Any) -> list[dict]:
        """Set omega and regularization to the best of a grid; see `nearkin.embedding.two_tower.tuning.tune`."""
        return tune(self, interactions, validation, **grid)

    def save(self, path: str | PathLike) -> None:
        """Write a folder: config.json, embeddings, ids, seen pairs, and the encoders of features if there are any."""
        storage.save(self._fitted(), path)

    @classmethod
    def load(
        cls,
        path: str | PathLike,
        *,
        left: nn.Module | None = None,
        right: nn.Module | None = None,
        index: nn.Module | None = None,
    ) -> "TwoTower":
        """Read what `save` wrote. Modules of your own are given again, and an index too, and get their weights."""
        return storage.load(cls, path, left, right, index)

    def _fitted(self) -> "TwoTower":
        check_is_fitted(self, "left_embeddings_")
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "left_embeddings_")


def encoder(side: Side) -> nn.Module | None:
    """What embeds an unseen entity of a side from its features, if anything does."""
    tower = side.tower.branch if isinstance(side.tower, ResidualTower) else side.tower
    return None if side.features is None or tower is None else tower.eval()


def transform(
    entities: Any, ids: np.ndarray, embeddings: np.ndarray, module: nn.Module | None, side: str
) -> np.ndarray:
    """Embeddings by id where `entities` is 1-D, by features where it is 2-D."""
    if np.ndim(entities) == 1 and not sp.issparse(entities):
        return embeddings[number_ids(entities, ids, side)[0]]
    if module is None:
        raise ValueError(
            f"{side} has shape {np.shape(entities)}, features, but the model was fitted without features on this side; "
            f"give {side} ids (b,), or fit with interactions.with_features({side}=...)"
        )
    features = (
        sp.csr_matrix(entities, dtype=np.float32) if sp.issparse(entities) else check_vectors(entities, name=side)
    )
    with torch.no_grad():
        return module(as_tensor(features)).numpy()


def name_ids(numbers: np.ndarray, ids: np.ndarray) -> np.ndarray:
    """The ids of the numbers; -1 becomes -1, or "" where ids are text."""
    return np.where(numbers >= 0, ids[numbers], np.array(-1 if ids.dtype.kind in "iuf" else "", dtype=ids.dtype))
