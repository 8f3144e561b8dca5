"""Towers: modules that map the rows of one side to embeddings, passes with bounded memory, the pair of both sides, and
the contract of the solvers that train them."""

import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from copy import deepcopy
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import ClassVar, Self, cast

import numpy as np
import scipy.sparse as sp
import torch
from sklearn.base import BaseEstimator
from torch import Tensor, nn

from nearkin._check import check_choice, check_integer, check_real
from nearkin._distributed import ALONE, Group
from nearkin._pairs import Features
from nearkin._types import Record
from nearkin.contracts import PhasedIndex, TrainableIndex
from nearkin.embedding.all_pairs.loss import AllPairsLoss
from nearkin.embedding.all_pairs.products import gathered
from nearkin.embedding.two_tower.objective import Objective

HIDDEN = (128,)  # widths of the default branch, `Tower`'s own
DIRECT = 512  # features at most that the last layer also reads: its regression takes their square
CHUNK = 1 << 16  # rows whose activations are in memory at the same time


class FeatureBranch(nn.Module):
    """An MLP from features of a side to k numbers, whose last layer starts at zero and also reads up to 512 features.
    Features are (b, d) dense or sparse COO tensors; `fit_scale` standardizes dense columns, and sparse rows to one mean
    length."""

    shift: Tensor
    scale: Tensor

    def __init__(self, n_features: int, n_components: int, hidden: tuple[int, ...], generator: torch.Generator) -> None:
        super().__init__()
        widths = [n_features, *hidden]
        layers = [nn.Linear(a, b) for a, b in pairwise(widths)]
        self.direct: bool = bool(hidden) and n_features <= DIRECT
        self.last: nn.Linear = nn.Linear(widths[-1] + self.direct * n_features, n_components)
        for layer in layers:
            nn.init.normal_(layer.weight, std=layer.in_features**-0.5, generator=generator)
            nn.init.normal_(layer.bias, std=0.1, generator=generator)
        self.layers: nn.ModuleList = nn.ModuleList(layers)
        nn.init.zeros_(self.last.weight)
        nn.init.zeros_(self.last.bias)
        self.register_buffer("shift", torch.zeros(n_features))
        self.register_buffer("scale", torch.ones(n_features))

    def fit_scale(self, features: Features) -> None:
        """Set the standardization from the features of all rows; a constant column keeps the scale 1."""
        if sp.issparse(features):
            squares = np.asarray(features.multiply(features).sum(axis=1)).ravel()
            length = np.sqrt(squares[squares > 0].mean()) if squares.any() else 1.0
            self.scale.fill_(np.sqrt(self.scale.shape[0]) / length)
        else:
            deviation = features.std(axis=0)
            self.shift.copy_(torch.from_numpy(features.mean(axis=0)))
            self.scale.copy_(torch.from_numpy(1 / np.where(deviation > 0, deviation, 1)))

    def hidden(self, features: Tensor) -> Tensor:
        """(b, h) inputs of the last layer."""
        layers = cast(list[nn.Linear], list(self.layers))
        if self.direct or not features.is_sparse:
            x = features = (features.to_dense() - self.shift) * self.scale
        elif not layers:
            return torch.sparse.mm(features, torch.diag(self.scale))
        else:
            first = layers.pop(0)
            x = torch.relu(torch.sparse.mm(features, self.scale[:, None] * first.weight.T) + first.bias)
        for layer in layers:
            x = torch.relu(layer(x))
        return torch.cat([x, features], 1) if self.direct else x

    def forward(self, features: Tensor) -> Tensor:
        return self.last(self.hidden(features))


class ResidualTower(nn.Module):
    """An id embedding plus a zero-initialised branch of the features: p_i = e_i + g(x_i); a table without features."""

    def __init__(
        self, n_rows: int, n_components: int, branch: FeatureBranch | None, table: Tensor | None = None
    ) -> None:
        super().__init__()
        self.table: nn.Parameter = nn.Parameter(torch.zeros(n_rows, n_components) if table is None else table.clone())
        self.branch = branch

    def forward(self, rows: Tensor | slice, features: Tensor | None = None) -> Tensor:
        return self.table[rows] if self.branch is None else self.table[rows] + self.branch(features)


@dataclass(eq=False, repr=False)
class Tower(BaseEstimator):
    """`TwoTower(left=Tower(...))`: an id embedding plus an MLP of the features with layers of `hidden` widths."""

    hidden: tuple[int, ...] = HIDDEN

    def build(self, n_rows: int, k: int, features: Features | None, generator: torch.Generator) -> ResidualTower:
        """The module; its table and the last layer of its branch are zeros."""
        branch = None
        if features is not None:
            width = features.shape[1]  # pyright: ignore[reportOptionalSubscript]
            branch = FeatureBranch(width, k, tuple(self.hidden), generator)
            branch.fit_scale(features)
        return ResidualTower(n_rows, k, branch)


@dataclass(eq=False)
class Side:
    """A tower with all the rows it embeds, in chunks, on its own device; the processes of `group` share the rows. A
    `ResidualTower` takes rows and features, any other module the features alone, or row numbers without features."""

    tower: nn.Module
    n_rows: int
    features: Features | None
    group: Group = ALONE
    _kept: Tensor | None = field(default=None, init=False)

    def parameters(self) -> dict[str, Tensor]:
        return {name: p for name, p in self.tower.named_parameters() if p.requires_grad}

    @property
    def device(self) -> torch.device | None:
        """The tower's device, to which its inputs are moved; None for a tower without parameters."""
        return next((p.device for p in self.tower.parameters()), None)

    def inputs(self, rows: slice | Tensor) -> tuple[slice | Tensor | None, ...]:
        features = None if self.features is None else self.feature_rows(rows)
        if isinstance(self.tower, ResidualTower):
            return (rows, features)
        if features is not None:
            return (features,)
        numbers = torch.arange(rows.start, rows.stop) if isinstance(rows, slice) else rows
        return (numbers.to(self.device),)

    def feature_rows(self, rows: slice | Tensor) -> Tensor:
        """Features (b, f) of these rows of a side with features."""
        features = cast(Features, self.features)
        return as_tensor(features[rows if isinstance(rows, slice) else rows.cpu().numpy()]).to(self.device)

    @property
    def encoder(self) -> nn.Module | None:
        """The module that embeds unseen entities: the branch of a `ResidualTower`, or the tower itself."""
        return self.tower.branch if isinstance(self.tower, ResidualTower) else self.tower

    def encoded(self) -> Tensor:
        """(n_rows, k) outputs of the encoder for the features of every row, without a graph."""
        encoder = cast(nn.Module, self.encoder)
        with torch.no_grad():
            return torch.cat([encoder(self.feature_rows(rows)) for rows in self.chunks()])

    def embed_rows(self, rows: Tensor | slice) -> Tensor:
        """(b, k) embeddings of some rows, with a graph."""
        return self.tower(*self.inputs(rows))

    def chunks(self, first: int = 0, stop: int | None = None) -> Iterator[slice]:
        stop = self.n_rows if stop is None else stop
        for start in range(first, max(stop, first + 1), CHUNK):
            yield slice(start, min(start + CHUNK, stop))

    def embed(self, *, keep_graph: bool = False) -> Tensor:
        """(n_rows, k) embeddings, each process its share, without a graph, or with that of a single chunk."""
        first, stop = self.group.share(self.n_rows)
        if keep_graph and stop - first <= CHUNK:
            self._kept = self.embed_rows(slice(first, stop))
            return gathered(self._kept.detach(), self.group)
        with torch.no_grad():
            mine = torch.cat([self.embed_rows(rows) for rows in self.chunks(first, stop)])
        return gathered(mine, self.group)

    def pull_back(self, gradient: Tensor) -> None:
        """Add J^T gradient to `.grad` (ESL, eqs. 20-23) in recomputed chunks, summed over the group's shares."""
        first, stop = self.group.share(self.n_rows)
        for p, part in zip(self.parameters().values(), self.pulled_back(gradient, first, stop).values(), strict=True):
            if self.group.size > 1:
                host = part.cpu()  # no copy if the tensor is on the CPU
                self.group.all_reduce(host.numpy())
                part = host.to(p)
            p.grad = part if p.grad is None else p.grad + part

    def pulled_back(self, gradient: Tensor, first: int = 0, stop: int | None = None) -> dict[str, Tensor]:
        """J^T gradient by parameter, of some rows; leaves the parameters' `.grad` alone."""
        parameters, (kept, self._kept) = self.parameters(), (self._kept, None)
        total = {name: torch.zeros_like(p) for name, p in parameters.items()}
        for rows in self.chunks(first, stop):
            outputs = self.embed_rows(rows) if kept is None else kept
            parts = torch.autograd.grad(outputs, list(parameters.values()), gradient[rows], allow_unused=True)
            for sum_, part in zip(total.values(), parts, strict=True):
                if part is not None:
                    sum_.add_(part)
        return total

    def push_forward(self, direction: dict[str, Tensor]) -> Tensor:
        """(n_rows, k) J direction, by forward-mode differentiation."""
        point = {name: p.detach() for name, p in self.parameters().items()}

        def outputs(rows: slice) -> Tensor:
            inputs = self.inputs(rows)

            def embed(values: dict[str, Tensor]) -> Tensor:
                return torch.func.functional_call(self.tower, values, inputs)

            return torch.func.jvp(embed, (point,), (direction,))[1]

        with torch.no_grad(), warnings.catch_warnings():
            warnings.filterwarnings("ignore", "`torch.jit.script`", DeprecationWarning)  # torch's own, at first use
            return torch.cat([outputs(rows) for rows in self.chunks()])


def as_tensor(features: Features) -> Tensor:
    if not sp.issparse(features):
        return torch.from_numpy(features)
    coo = features.tocoo()
    return torch.sparse_coo_tensor(
        torch.from_numpy(np.stack([coo.row, coo.col]).astype(np.int64)), torch.from_numpy(coo.data), coo.shape,
        is_coalesced=True, check_invariants=False,
    )  # fmt: skip


# ---- both sides -----------------------------------------------------------------------------------------------------


@dataclass(eq=False)
class TowerPair:
    """Two sides, the objective that they minimise, and the index if the right side is trained through one.

    Penalties, lambda times the objective's `ridge`, fall on the id embeddings of a `ResidualTower`, and on the
    embeddings of any other module. `index` maps Q to (quantized Q, distortion), which is added in units of the mean
    loss of an observed pair. `generator` draws batches and signs.
    """

    left: Side
    right: Side
    objective: Objective
    strength: float
    generator: torch.Generator
    index: TrainableIndex | None = None

    def __post_init__(self) -> None:
        self.ridge: tuple[Tensor, ...] = tuple(
            (self.strength * torch.from_numpy(r).reshape(-1, 1)).float().to(side.device)
            for r, side in zip(self.objective.ridge, self.sides, strict=True)
        )
        self.distortion = float("nan")

    def alone(self, generator: torch.Generator) -> "TowerPair":
        left, right = (replace(side, group=ALONE) for side in self.sides)
        return replace(self, left=left, right=right, generator=generator)

    def tables(self) -> tuple[Tensor, Tensor]:
        """The id embeddings (m, k) and (n, k) of default towers."""
        left, right = (cast(ResidualTower, side.tower) for side in self.sides)
        return left.table.data, right.table.data

    @property
    def sides(self) -> tuple[Side, Side]:
        return self.left, self.right

    def parameters(self) -> list[Tensor]:
        """All trainable parameters, the index's last."""
        own = [p for side in self.sides for p in side.parameters().values()]
        return own if self.index is None else own + [p for p in self.index.parameters() if p.requires_grad]

    def optimizers(self, learning_rate: float) -> list[torch.optim.Optimizer]:
        """Adam on all parameters but those of the rotation of a `PhasedIndex`, and the index's optimizer of these."""
        turning = self.index.rotation_optimizer() if isinstance(self.index, PhasedIndex) else None
        apart = {id(p) for group in ([] if turning is None else turning.param_groups) for p in group["params"]}
        adam = torch.optim.Adam([p for p in self.parameters() if id(p) not in apart], lr=learning_rate)
        return [adam] if turning is None else [adam, turning]

    def embed_right(self, columns: Tensor) -> Tensor:
        """(b, k) embeddings of some items, with a graph, through the index if there is one."""
        return self.quantized(self.right.embed_rows(columns))[0]

    def embeddings(self) -> tuple[Tensor, Tensor]:
        """P (m, k) and Q (n, k) before the index, as users get them."""
        return self.left.embed(), self.right.embed()

    def value_and_gradient(self, loss: AllPairsLoss, scale: float = 1.0) -> float:
        """Fill the parameters' `.grad` with the gradient of scale * L + distortion; return that value."""
        P, Q = (side.embed(keep_graph=True).requires_grad_() for side in self.sides)
        value = self._objective(loss, scale, P, Q, noted=True)
        value.backward()
        for side, X in zip(self.sides, (P, Q), strict=True):
            side.pull_back(X.grad)  # pyright: ignore[reportArgumentType]
        return float(value.detach())

    def value(self, loss: AllPairsLoss, scale: float = 1.0) -> float:
        with torch.no_grad():
            return float(self._objective(loss, scale, *self.embeddings()))

    def _objective(self, loss: AllPairsLoss, scale: float, P: Tensor, Q: Tensor, *, noted: bool = False) -> Tensor:
        """scale * (L(P, R) + penalties) + distortion, R the quantized rows of Q."""
        R, distortion = self.quantized(Q, noted=noted)
        return scale * (loss.differentiable(P, R, self.left.group) + self.penalty(P, Q)) + distortion

    def quantized(self, Q: Tensor, *, noted: bool = False) -> tuple[Tensor, Tensor | float]:
        """Q through the index, if there is one, and the distortion, which is `noted` for the step's record."""
        if self.index is None:
            return Q, 0.0
        R, distortion = self.index(Q)
        if noted:
            self.distortion: float = float(distortion.detach())
        return R, distortion

    def penalty(self, P: Tensor, Q: Tensor) -> Tensor:
        """Half the ridge-weighted squares of the id embeddings, or of the embeddings if there are none."""
        return sum(
            (
                0.5 * (r * penalised(side, X).square()).sum()
                for side, X, r in zip(self.sides, (P, Q), self.ridge, strict=True)
            ),
            start=torch.zeros(()),
        )


def penalised(side: Side, X: Tensor, rows: Tensor | slice = slice(None)) -> Tensor:
    """The penalised rows of a side: the id embeddings of `rows`, or X, the embeddings of these rows."""
    return side.tower.table[rows] if isinstance(side.tower, ResidualTower) else X


def zero_grad(parameters: Iterable[Tensor]) -> None:
    for parameter in parameters:
        parameter.grad = None


# ---- what trains them -----------------------------------------------------------------------------------------------

STARTS = ("auto", "als", "random")
_COUNTS = ("max_iter", "patience", "cg_steps", "block_size", "n_sampled", "batch_size")  # settings of all solvers
_RATES = ("max_seconds", "learning_rate", "damping")
_OPTIONAL = ("patience", "n_sampled")  # settings that may be None, as those whose default it is


@dataclass(eq=False, repr=False, kw_only=True)
class AbstractSolver(BaseEstimator, ABC):
    """Settings of a solver, and after `begin` the state of its run. A step is a sweep, a full-batch step or an epoch.

    max_iter: maximum number of steps; max_seconds: no step begins after this time; patience: steps without a new best
    held-out NDCG@100 before the fit stops.
    """

    max_iter: int | None = None
    max_seconds: float | None = None
    patience: int = 10

    name: ClassVar[str]
    start: ClassVar[str] = "random"  # where id tables begin: "als", "random", "auto"; a field of solvers that choose
    tables_only: ClassVar[bool] = False  # trains default towers only
    through_index: ClassVar[bool] = True  # can train through an index
    replaced: ClassVar[tuple[str, ...]] = ()  # attributes of the result that a step replaces and never changes in place

    def check(self, all_pairs: bool) -> None:
        """ValueError or TypeError for bad settings; `all_pairs` is False under a sampled loss. Sets `max_iter`."""
        check_choice(self.start, "start", STARTS)
        for name, value in self.get_params().items():
            if value is None and (name in _OPTIONAL or getattr(type(self), name) is None):
                continue
            if name in _COUNTS:
                check_integer(value, name, low=2 if name == "batch_size" else 1)
            elif name in _RATES:
                check_real(value, name, above=0)
            elif name == "momentum":
                check_real(value, name, low=0, high=0.99)

    @abstractmethod
    def begin(self, pair: TowerPair, loss: BaseEstimator) -> Self:
        """Set the state for training `pair` on its objective; `loss` is the `TwoTower`'s."""

    @abstractmethod
    def step(self) -> float:
        """Do one step; return the objective as the step computed it, divided by the weight of the observed pairs."""

    @abstractmethod
    def embeddings(self) -> tuple[Tensor, Tensor]:
        """P (m, k) and Q (n, k) now, without a graph."""

    def ranked(self) -> tuple[Tensor, Tensor]:
        """P and Q for the held-out metric: through the index, if there is one."""
        return self.embeddings()

    def exact(self) -> tuple[Tensor, Tensor] | None:
        """P and Q without an index, if the solver trains them too."""
        return None

    def notes(self) -> Record:
        """Further entries of a step's record."""
        return {}

    def ready(self) -> bool:
        """Whether a step may be the best one; not before an index quantizes."""
        return True

    def modules(self) -> "list[nn.Module | TrainableIndex]":
        """The modules of the result."""
        return []

    def result(self) -> tuple[Record, list[Record]]:
        """The result of the steps so far, for `restore`."""
        attributes = {name: getattr(self, name) for name in self.replaced}
        return attributes, [deepcopy(module.state_dict()) for module in self.modules()]

    def restore(self, result: tuple[Record, list[Record]]) -> None:
        """Take back an earlier result."""
        vars(self).update(result[0])
        for module, weights in zip(self.modules(), result[1], strict=True):
            module.load_state_dict(weights)


class AbstractTowerSolver(AbstractSolver):
    """A solver whose result are the towers of `pair`, and the index if there is one."""

    pair: TowerPair

    def modules(self) -> "list[nn.Module | TrainableIndex]":
        index = [] if self.pair.index is None else [self.pair.index]
        return [*(side.tower for side in self.pair.sides), *index]

    def embeddings(self) -> tuple[Tensor, Tensor]:
        return self.pair.embeddings()

    def ranked(self) -> tuple[Tensor, Tensor]:
        """P (m, k) and Q (n, k), Q through the index without training it."""
        P, Q = self.pair.embeddings()
        index = self.pair.index
        if index is None:
            return P, Q
        mode = index.training
        with torch.no_grad():
            Q = index.eval()(Q)[0]
        index.train(mode)
        return P, Q

    def notes(self) -> Record:
        """The last step's distortion, if there is an index."""
        return {} if self.pair.index is None else {"distortion": self.pair.distortion}

    def ready(self) -> bool:
        """Whether the index quantizes yet; one without phases always does."""
        return not isinstance(self.pair.index, PhasedIndex) or self.pair.index.phase == "train"
