"""Two towers under the all-pairs loss: the objective and its gradient in the towers' parameters."""

from collections.abc import Iterable

import torch
from torch import Tensor, nn

from nearkin._distributed import Group
from nearkin.contracts import PhasedIndex, TrainableIndex
from nearkin.embedding.all_pairs.loss import AllPairsLoss
from nearkin.embedding.two_tower.towers import ResidualTower, Side


class TowerPair:
    """Two sides and what they minimise.

    `ridge` are the penalties (m, 1) and (n, 1) of the rows. They fall on the id embeddings where a tower has them, so
    that what features explain is not penalised, and on the embeddings themselves in any other module. `index` is a
    module with forward(Q) -> (quantized Q, distortion), applied to the right side; its distortion joins the objective
    with the weight `distortion_weight`, in units of the mean loss of an observed pair.
    """

    def __init__(
        self,
        left: Side,
        right: Side,
        *,
        ridge: tuple[Tensor, Tensor],
        index: TrainableIndex | None = None,
        distortion_weight: float = 1.0,
    ) -> None:
        self.left, self.right, self.index, self.distortion_weight = left, right, index, distortion_weight
        self.ridge = tuple(r.float() for r in ridge)
        self.distortion = float("nan")

    @property
    def group(self) -> Group:
        """The processes that share the work."""
        return self.left.group

    @property
    def sides(self) -> tuple[Side, Side]:
        return self.left, self.right

    def parameters(self) -> list[Tensor]:
        """All trainable parameters, the index's last."""
        own = [p for side in self.sides for p in side.parameters().values()]
        return own if self.index is None else own + [p for p in self.index.parameters() if p.requires_grad]

    def optimizers(self, learning_rate: float) -> list[torch.optim.Optimizer]:
        """Adam on all parameters but those that a `PhasedIndex` moves by its own optimizer, and that optimizer."""
        turning = self.index.rotation_optimizer() if isinstance(self.index, PhasedIndex) else None
        apart = {id(p) for group in ([] if turning is None else turning.param_groups) for p in group["params"]}
        adam = torch.optim.Adam([p for p in self.parameters() if id(p) not in apart], lr=learning_rate)
        return [adam] if turning is None else [adam, turning]

    def modules(self) -> dict[str, nn.Module | TrainableIndex]:
        named: dict[str, nn.Module | TrainableIndex] = {"left": self.left.tower, "right": self.right.tower}
        return named if self.index is None else named | {"index": self.index}

    def embed_left(self, rows: Tensor) -> Tensor:
        """(b, k) embeddings of some left rows, with a graph."""
        return self.left.embed_rows(rows)

    def embed_right(self, columns: Tensor) -> Tensor:
        """(b, k) embeddings of some right rows, with a graph, through the index if there is one."""
        return self.quantized(self.right.embed_rows(columns))[0]

    def embeddings(self) -> tuple[Tensor, Tensor]:
        """P (m, k) and Q (n, k) as a user gets them: before the index."""
        return self.left.embed(), self.right.embed()

    def value_and_gradient(self, loss: AllPairsLoss, scale: float = 1.0) -> float:
        """Fill the parameters' `.grad` with the gradient of scale * L + distortion; return that value."""
        P, Q = (side.embed(keep_graph=True).requires_grad_() for side in self.sides)
        R, distortion = self.quantized(Q, noted=True)
        value = self._objective(loss, scale, P, Q, R, distortion)
        value.backward()
        for side, X in zip(self.sides, (P, Q), strict=True):
            side.pull_back(X.grad)  # pyright: ignore[reportArgumentType]
        return float(value.detach())

    def value(self, loss: AllPairsLoss, scale: float = 1.0) -> float:
        with torch.no_grad():
            P, Q = self.embeddings()
            R, distortion = self.quantized(Q)
            return float(self._objective(loss, scale, P, Q, R, distortion))

    def _objective(
        self, loss: AllPairsLoss, scale: float, P: Tensor, Q: Tensor, R: Tensor, distortion: Tensor | float
    ) -> Tensor:
        """scale * (L(P, R) + penalties) + distortion, R the quantized rows of Q."""
        scaled = scale * (loss.differentiable(P, R, self.group) + self.penalty(P, Q))
        return scaled + self.distortion_weight * distortion

    def quantized(self, Q: Tensor, *, noted: bool = False) -> tuple[Tensor, Tensor | float]:
        """Q through the index, if there is one, and the distortion; a `noted` one is what the step's record says."""
        if self.index is None:
            return Q, 0.0
        R, distortion = self.index(Q)
        if noted:
            self.distortion = float(distortion.detach())
        return R, distortion

    def penalty(self, P: Tensor, Q: Tensor) -> Tensor:
        """Half the ridge-weighted squares of the id embeddings, or of the embeddings where there are none."""
        return sum(
            (
                0.5 * (r * penalised(side, X).square()).sum()
                for side, X, r in zip(self.sides, (P, Q), self.ridge, strict=True)
            ),
            start=torch.zeros(()),
        )

    def state(self) -> dict[str, Tensor]:
        return {
            f"{name}.{key}": value
            for name, module in self.modules().items()
            for key, value in module.state_dict().items()
        }

    def load_state(self, state: dict[str, Tensor]) -> None:
        for name, module in self.modules().items():
            head = f"{name}."
            module.load_state_dict({k[len(head) :]: v for k, v in state.items() if k.startswith(head)})


def penalised(side: Side, X: Tensor, rows: Tensor | slice = slice(None)) -> Tensor:
    """What the penalty of a side falls on: the id embeddings of `rows`, or X, the embeddings of these rows."""
    return side.tower.table[rows] if isinstance(side.tower, ResidualTower) else X


def zero_grad(parameters: Iterable[Tensor]) -> None:
    for parameter in parameters:
        parameter.grad = None
