"""Adam: on the exact gradient of the all-pairs loss, or on batches of pairs under a sampled one."""

from dataclasses import dataclass
from typing import ClassVar

from sklearn.base import BaseEstimator

from nearkin._check import check_integer, check_real
from nearkin.embedding.two_tower.cosine_softmax import CosineSoftmax
from nearkin.embedding.two_tower.objective import AllPairs
from nearkin.embedding.two_tower.plan import Plan
from nearkin.embedding.two_tower.solvers.full_batch import FullBatch
from nearkin.embedding.two_tower.solvers.mini_batches import MiniBatches
from nearkin.embedding.two_tower.training import Limits

STEPS, EPOCHS = 200, 30  # on the whole, and of a sampled loss
RATE, BATCH_RATE, BATCH = 1e-3, 3e-3, 4096


@dataclass(eq=False, repr=False, kw_only=True)
class Adam(BaseEstimator):
    """`TwoTower(solver=Adam(...))`: full batch for the all-pairs loss, mini-batches for a sampled loss.

    max_iter: full-batch steps (None for 200) or epochs (None for 30). learning_rate: None for 0.001 on the whole and
    0.003 on batches. batch_size: pairs a batch, None for 4096; a ValueError with the all-pairs loss, which has no
    batches. start: where id tables begin, "als", "random" or "auto" (ALS for the all-pairs loss on the default
    towers). max_seconds, patience: as in `ALS`.
    """

    max_iter: int | None = None
    max_seconds: float | None = None
    patience: int = 10
    learning_rate: float | None = None
    batch_size: int | None = None
    start: str = "auto"

    name: ClassVar[str] = "adam"
    tables_only: ClassVar[bool] = False
    through_index: ClassVar[bool] = True

    def limits(self, sampled: bool = False) -> Limits:
        if self.learning_rate is not None:
            check_real(self.learning_rate, "learning_rate", above=0)
        if self.batch_size is not None:
            check_integer(self.batch_size, "batch_size", low=2)
            if not sampled:
                raise ValueError(
                    f"batch_size is {self.batch_size}, but Adam takes the whole all-pairs loss in one step; leave it "
                    "out, or give solver=SOGram(batch_size=...) or a sampled loss"
                )
        steps = EPOCHS if sampled else STEPS
        return Limits(steps if self.max_iter is None else self.max_iter, self.max_seconds, self.patience)

    def from_plan(self, plan: Plan) -> FullBatch | MiniBatches:
        if isinstance(plan.loss, CosineSoftmax):
            raise ValueError("solver is 'adam', which does not train loss='cosine-softmax'; use 'sphere' or 'auto'")
        if isinstance(plan.loss, AllPairs):
            return FullBatch(plan.pair(), plan.objective.loss(0.0), learning_rate=self.learning_rate or RATE)
        return MiniBatches(
            plan.pair(), plan.objective, plan.loss.from_objective(plan.objective),
            batch_size=self.batch_size or BATCH, learning_rate=self.learning_rate or BATCH_RATE,
            generator=plan.generator,
        )  # fmt: skip
