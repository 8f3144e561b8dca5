"""Towers: modules that turn the rows of one side into embeddings, and the passes that keep their memory bounded."""

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import cast

import numpy as np
import scipy.sparse as sp
import torch
from sklearn.base import BaseEstimator
from torch import Tensor, nn

from nearkin._distributed import ALONE, Group
from nearkin._pairs import Features
from nearkin.embedding.all_pairs.products import gathered

HIDDEN = (128,)  # widths of the default branch
CHUNK = 1 << 16  # rows whose activations live at the same time


class FeatureBranch(nn.Module):
    """An MLP from the features of a side to k numbers, whose last layer starts at zero.

    Features are (b, d) dense tensors, or sparse COO tensors, which the first layer multiplies as they are.
    `fit_scale` standardizes them: dense columns to zero mean and unit variance, sparse rows to one mean length.
    """

    shift: Tensor
    scale: Tensor

    def __init__(self, n_features: int, n_components: int, hidden: tuple[int, ...], generator: torch.Generator) -> None:
        super().__init__()
        widths = [n_features, *hidden]
        layers = [nn.Linear(a, b) for a, b in pairwise(widths)]
        self.last = nn.Linear(widths[-1], n_components)
        for layer in layers:
            nn.init.normal_(layer.weight, std=layer.in_features**-0.5, generator=generator)
            nn.init.normal_(layer.bias, std=0.1, generator=generator)
        self.layers = nn.ModuleList(layers)
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
        """(b, h) what the last layer sees."""
        x = features
        if not features.is_sparse:
            x = (features - self.shift) * self.scale
        elif not self.layers:
            return torch.sparse.mm(features, torch.diag(self.scale))
        for layer in self.layers:
            if x.is_sparse:
                x = torch.sparse.mm(x, self.scale[:, None] * cast(nn.Linear, layer).weight.T) + layer.bias
            else:
                x = layer(x)
            x = torch.relu(x)
        return x

    def forward(self, features: Tensor) -> Tensor:
        return self.last(self.hidden(features))


class ResidualTower(nn.Module):
    """An id embedding plus a zero-initialised branch of the features: p_i = e_i + g(x_i).

    Without features it is a plain table; called without rows, for entities never seen, it is the branch alone.
    """

    def __init__(
        self, n_rows: int, n_components: int, branch: FeatureBranch | None, table: Tensor | None = None
    ) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.zeros(n_rows, n_components) if table is None else table.clone())
        self.branch = branch

    def forward(self, rows: Tensor | slice | None, features: Tensor | None = None) -> Tensor:
        if rows is None and (self.branch is None or features is None):
            raise ValueError("rows is None; a tower without features knows only the ids that it was fitted on")
        embedding = 0 if rows is None else self.table[rows]
        return embedding if self.branch is None else embedding + self.branch(features)  # pyright: ignore[reportReturnType]


@dataclass(eq=False, repr=False)
class Tower(BaseEstimator):
    """`TwoTower(left=Tower(...))`: an id embedding plus, where the side has features, an MLP of them.

    hidden: widths of the MLP's hidden layers.
    """

    hidden: tuple[int, ...] = HIDDEN

    def build(self, n_rows: int, k: int, features: Features | None, generator: torch.Generator) -> ResidualTower:
        """The module, its table of zeros and its branch's last layer of zeros."""
        branch = None
        if features is not None:
            width = features.shape[1]  # pyright: ignore[reportOptionalSubscript]
            branch = FeatureBranch(width, k, tuple(self.hidden), generator)
            branch.fit_scale(features)
        return ResidualTower(n_rows, k, branch)


class Side:
    """A tower with all the rows it embeds: forward, pull-back and push-forward in chunks of rows, on its own device.

    A `ResidualTower` is called with rows and features; any other module with the features alone, or with the numbers of
    the rows if the side has none. The processes of `group` share the rows.
    """

    def __init__(self, tower: nn.Module, n_rows: int, features: Features | None, group: Group = ALONE) -> None:
        self.tower, self.n_rows, self.features, self.group = tower, n_rows, features, group
        self._kept: Tensor | None = None

    def parameters(self) -> dict[str, Tensor]:
        return {name: p for name, p in self.tower.named_parameters() if p.requires_grad}

    @property
    def device(self) -> torch.device | None:
        """Where the tower is, and its inputs are put; None for a tower without parameters, whose inputs stay here."""
        return next((p.device for p in self.tower.parameters()), None)

    def inputs(self, rows: slice | Tensor) -> tuple[slice | Tensor | None, ...]:
        """What the tower is called with for these rows."""
        features = None if self.features is None else self.feature_rows(rows)
        if isinstance(self.tower, ResidualTower):
            return (rows, features)
        if features is not None:
            return (features,)
        numbers = torch.arange(rows.start, rows.stop) if isinstance(rows, slice) else rows
        return (numbers.to(self.device),)

    def feature_rows(self, rows: slice | Tensor) -> Tensor:
        """Features (b, f) of these rows; TypeError for a side without features."""
        if self.features is None:
            raise TypeError("the side has no features; give the interactions features")
        return as_tensor(self.features[rows if isinstance(rows, slice) else rows.cpu().numpy()]).to(self.device)

    def embed_rows(self, rows: Tensor) -> Tensor:
        """(b, k) embeddings of some rows, with a graph."""
        return self.tower(*self.inputs(rows))

    def chunks(self, first: int = 0, stop: int | None = None) -> Iterator[slice]:
        stop = self.n_rows if stop is None else stop
        for start in range(first, max(stop, first + 1), CHUNK):
            yield slice(start, min(start + CHUNK, stop))

    def embed(self, *, keep_graph: bool = False) -> Tensor:
        """(n_rows, k) embeddings without a graph; a graph of a single chunk can be kept for the pull-back.

        The processes of the group embed a share of the rows each.
        """
        first, stop = self.group.share(self.n_rows)
        if keep_graph and stop - first <= CHUNK:
            kept: Tensor = self.tower(*self.inputs(slice(first, stop)))
            self._kept = kept
            return gathered(kept.detach(), self.group)
        with torch.no_grad():
            mine = torch.cat([self.tower(*self.inputs(rows)) for rows in self.chunks(first, stop)])
        return gathered(mine, self.group)

    def pull_back(self, gradient: Tensor) -> None:
        """Add J^T gradient to the parameters' `.grad` (ESL, eqs. 20-23); chunks are computed again to bound memory.

        In a group each process pulls its share of the rows back, and all add the sum.
        """
        group = self.group
        first, stop = group.share(self.n_rows)
        parameters = list(self.parameters().values())
        before = [p.grad for p in parameters]
        if group.size > 1:
            for p in parameters:
                p.grad = torch.zeros_like(p)
        if self._kept is not None:
            kept, self._kept = self._kept, None
            kept.backward(gradient[first:stop])
        else:
            for rows in self.chunks(first, stop):
                self.tower(*self.inputs(rows)).backward(gradient[rows])
        if group.size > 1:
            for p, old in zip(parameters, before, strict=True):
                host = p.grad.cpu()  # pyright: ignore[reportOptionalMemberAccess]
                group.all_reduce(host.numpy())
                p.grad = host.to(p) if old is None else old + host.to(p)

    def pulled_back(self, gradient: Tensor) -> dict[str, Tensor]:
        """J^T gradient by parameter, beside the parameters' `.grad`."""
        parameters = self.parameters()
        total = {name: torch.zeros_like(p) for name, p in parameters.items()}
        for rows in self.chunks():
            outputs = self.tower(*self.inputs(rows))
            parts = torch.autograd.grad(outputs, list(parameters.values()), gradient[rows])
            for sum_, part in zip(total.values(), parts, strict=True):
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
    """Dense rows as a tensor, sparse rows as a COO tensor."""
    if not sp.issparse(features):
        return torch.from_numpy(features)
    coo = features.tocoo()
    return torch.sparse_coo_tensor(
        torch.from_numpy(np.stack([coo.row, coo.col]).astype(np.int64)), torch.from_numpy(coo.data), coo.shape,
        is_coalesced=True, check_invariants=False,
    )  # fmt: skip
