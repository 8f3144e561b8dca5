"""The choice of `loss="auto"`: short fits without the held-out pairs, judged by how well they rank these pairs.

Every fit starts from the tables of the one before: all pairs along its strengths of regularization and then with
powers, the softmax on cosines along falling temperatures. The best of each is trained longer; unless all pairs lead,
the softmax is also tried with imputed rights. A loss of higher cost wins only by more than one standard error of the
difference, left entity by left entity; otherwise the cheaper one does.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from nearkin._distributed import Group
from nearkin._random import draw_seed
from nearkin._types import Record
from nearkin.contracts import Callback
from nearkin.data.interactions import split_random
from nearkin.embedding.baselines import sparse_ease
from nearkin.embedding.two_tower.als import ALS
from nearkin.embedding.two_tower.cosine_softmax import DEFAULTS as OF_COSINES
from nearkin.embedding.two_tower.cosine_softmax import CosineSoftmax, SphereSweeps
from nearkin.embedding.two_tower.objective import AllPairs, initial_tables
from nearkin.embedding.two_tower.regularization import choose_regularization, judging_lefts, validation_ranking
from nearkin.embedding.two_tower.settings import LOSSES, Loss, Settings
from nearkin.metrics.ranking import ranking_values
from nearkin.records import Interactions

DEPTH = 20
MEASURES = (f"recall@{DEPTH}", f"ndcg@{DEPTH}")


@dataclass(frozen=True)
class Defaults:
    """Candidates, and the lengths of their short fits.

    Test Recall@20 / NDCG@20 of the choice and of `loss="all-pairs"`, k = 64, seed 0 (2026-11): gowalla .1867 / .1567
    and .1522 / .1291, ml100k .4024 / .2963 and .3855 / .2803. Planted sets set the last round's length.
    """

    weight_power: float = 0.25  # of the second candidate of all pairs; see `AllPairs` for the gain
    cost_power: float = 0.2
    # a factor of 3/4: on gowalla's validation pairs (2026-11) .12 leads .15 by .0125 in Recall@20 and .1 by .003
    temperatures: tuple[float, ...] = (0.37, 0.28, 0.21, 0.16, 0.12, 0.09)
    imputed: float = 0.3  # gowalla's validation pairs: +7 % NDCG@20; .15 is level (2026-11)
    n_imputed: int = 2  # temperatures tried with imputed rights: the best without them and the next lower one
    n_neighbours: int = 50  # of the regressions behind imputed rights, an eighth of the cost of a whole fit's 100
    first_sweeps: int = 8  # at the first temperature
    sweeps: int = 4  # at each later one, and at the end of all pairs in the last round
    n_sampled: int = 512  # rows, a quarter of a whole fit's; ml100k, three seeds: the best of 512 is level with 1,024's
    # of the softmax in the last round, with a whole fit's sample: planted long tail .0862 / .0671, with 8 .0822 / .0624
    last_sweeps: int = 12
    most_lefts: int = 4000  # that are ranked
    fewest_lefts: int = 100  # with fewer the standard error is itself uncertain


DEFAULTS = Defaults()


def choose_loss(
    settings: Settings,
    interactions: Interactions,
    validation: Interactions | None,
    rng: np.random.Generator,
    *,
    callback: Callback | None,
    group: Group,
) -> list[Record]:
    """Choose the loss of `loss="auto"` for these pairs; returns a record of each short fit, the chosen one with `why`.

    It is all pairs, without a short fit, if no other loss can be trained or too few pairs judge it.
    """
    if settings.only_all_pairs is not None:
        return _all_pairs(settings.only_all_pairs)
    train, held = interactions, validation
    if held is None:
        parts = split_random(interactions, valid=settings.validation_fraction, test=0, random_state=rng)
        train, held = parts.train, parts.valid
    lefts = judging_lefts(held, DEFAULTS.most_lefts, rng)
    if len(lefts) < DEFAULTS.fewest_lefts:
        return _all_pairs(f"{len(lefts)} lefts have held-out pairs; a choice needs {DEFAULTS.fewest_lefts}")
    race = _Race(settings.n_components, train, held, lefts, rng, callback, group)
    return race.run()


def loss_of(trials: Sequence[Record]) -> Loss:
    """The loss that a choice's records name; all pairs if there are none."""
    chosen = next((trial for trial in trials if "why" in trial), None)
    return AllPairs() if chosen is None else LOSSES[chosen["loss"]]().set_params(**chosen["settings"])


def _named(trial: Record) -> str:
    settings = ", ".join(f"{name} {value:g}" for name, value in trial["settings"].items())
    return trial["loss"] + (f" ({settings})" if settings else "")


def _in_one_line(trial: Record, why: str) -> str:
    return f"loss {_named(trial)}, the choice of 'auto': {why}"


def _all_pairs(why: str) -> list[Record]:
    record: Record = {"loss": AllPairs.name, "settings": {}}
    return [record | {"why": _in_one_line(record, why)}]


class _Trial(NamedTuple):
    """A short fit."""

    loss: Loss
    solver: ALS | SphereSweeps
    values: np.ndarray  # (lefts,) mean of Recall@20 and NDCG@20
    record: Record

    def lead(self, other: "_Trial") -> tuple[float, float]:
        """The mean lead over another fit on the same lefts, and its standard error."""
        difference = self.values - other.values
        return float(difference.mean()), float(difference.std(ddof=1) / len(difference) ** 0.5)

    def beats(self, other: "_Trial") -> bool:
        lead, error = self.lead(other)
        return lead > error

    def mean(self) -> float:
        return float(self.values.mean())


class _Race:
    """The short fits on one split of the pairs."""

    def __init__(
        self,
        k: int,
        train: Interactions,
        held: Interactions,
        lefts: np.ndarray,
        rng: np.random.Generator,
        callback: Callback | None,
        group: Group,
    ) -> None:
        self.train, self.held, self.lefts, self.rng = train, held, lefts, rng
        self.callback, self.group = callback, group
        self.generator = torch.Generator().manual_seed(draw_seed(rng))
        self.start = initial_tables(train, k, self.generator)
        self.records: list[Record] = []

    def run(self) -> list[Record]:
        finalists = [
            self._longer(self._regularized()),  # the cheapest first
            self._longer(self._cooled(DEFAULTS.temperatures, [X[:, :-1] for X in self.start], DEFAULTS.first_sweeps)),
        ]
        pairs, softmax = finalists
        if not pairs.beats(softmax):
            finalists.append(self._longer(self._imputed(softmax)))
        self._decide(finalists)
        return self.records

    def _regularized(self) -> _Trial:
        """All pairs at the strength of regularization of best held-out NDCG; with powers too, from its tables."""
        began, loss = time.perf_counter(), AllPairs()
        objective, ranking = loss.objective(self.train), validation_ranking(self.held, self.train, self.rng)
        noise = objective.noise_level(self.rng)
        found = choose_regularization(objective, *self.start, ranking, noise=noise, group=self.group)
        solver = ALS().alternate(objective.loss(found.strength), found.P, found.Q, group=self.group)
        plain = self._judged(loss, solver, found.sweeps, began)
        began, loss = time.perf_counter(), AllPairs(weight_power=DEFAULTS.weight_power, cost_power=DEFAULTS.cost_power)
        objective = loss.objective(self.train)
        strength = found.strength / noise * objective.noise_level(self.rng)
        solver = ALS().alternate(objective.loss(strength), found.P, found.Q, group=self.group)
        for _ in range(DEFAULTS.sweeps):
            solver.step()
        return max(plain, self._judged(loss, solver, DEFAULTS.sweeps, began), key=_Trial.mean)

    def _cooled(
        self,
        temperatures: Sequence[float],
        tables: Sequence[Tensor],
        sweeps: int,
        imputed: float = 0.0,
        lists: np.ndarray | None = None,
    ) -> _Trial:
        """The best of falling temperatures, which end where one is behind the best by its standard error."""
        best: _Trial | None = None
        for temperature in temperatures:
            loss = CosineSoftmax(temperature=temperature, imputed=imputed)
            began = time.perf_counter()
            softmax = loss.softmax_loss(loss.objective(self.train), lists)
            solver = SphereSweeps(max_iter=sweeps, n_sampled=DEFAULTS.n_sampled)
            trial = self._swept(loss, solver.sweep_from(softmax, tables[0], tables[1], self.generator), began)
            if best is not None and best.beats(trial):
                break
            best = trial if best is None or trial.mean() > best.mean() else best
            tables, sweeps = (solver.P, solver.Q), DEFAULTS.sweeps
        if best is None:
            raise RuntimeError("no temperature was tried")
        return best

    def _imputed(self, plain: _Trial) -> _Trial:
        """The softmax with imputed rights, from the tables without them."""
        options = {"n_neighbours": DEFAULTS.n_neighbours, "ridge": CosineSoftmax().ridge}
        lists = sparse_ease(self.train, OF_COSINES.imputed, **options)[1]
        first = DEFAULTS.temperatures.index(plain.loss.get_params()["temperature"])
        temperatures = DEFAULTS.temperatures[first : first + DEFAULTS.n_imputed]
        tables = plain.solver.P, plain.solver.Q
        return self._cooled(temperatures, tables, DEFAULTS.sweeps, DEFAULTS.imputed, lists)

    def _longer(self, trial: _Trial) -> _Trial:
        began, loss, solver = time.perf_counter(), trial.loss, trial.solver
        if isinstance(loss, CosineSoftmax) and isinstance(solver, SphereSweeps):
            last = SphereSweeps(max_iter=DEFAULTS.last_sweeps)
            last.sweep_from(solver.loss, solver.P, solver.Q, self.generator)
            return self._swept(loss, last, began)
        for _ in range(DEFAULTS.sweeps):
            solver.step()
        return self._judged(loss, solver, DEFAULTS.sweeps, began)

    def _swept(self, loss: CosineSoftmax, solver: SphereSweeps, began: float) -> _Trial:
        for _ in range(solver.max_iter or 1):
            solver.step()
        return self._judged(loss, solver, solver.max_iter or 1, began)

    def _judged(self, loss: Loss, solver: ALS | SphereSweeps, sweeps: int, began: float) -> _Trial:
        P, Q = (X.numpy() for X in solver.embeddings())
        found = ranking_values(P, Q, self.held, seen=self.train, k=DEPTH, rows=self.lefts)
        values = self.group.exchange(np.mean([found[name] for name in MEASURES], axis=0).tolist())[0]
        given, usual = loss.get_params(), type(loss)().get_params()
        record = {
            "loss": loss.name, "settings": {name: given[name] for name in given if given[name] != usual[name]},
            "sweeps": sweeps, "seconds": time.perf_counter() - began,
        } | {name: float(found[name].mean()) for name in MEASURES}  # fmt: skip
        self.records.append(record)
        if self.callback is not None:
            number, total = len(self.records), 5 + len(DEFAULTS.temperatures) + DEFAULTS.n_imputed
            note = f"choosing the loss: {_named(record)}"
            self.callback(number, {"step": number, "total": total, "phase": "loss", "note": note} | record)
        return _Trial(loss, solver, np.array(values), record)

    def _decide(self, finalists: Sequence[_Trial]) -> None:
        """Mark the first of the finalists, from the cheapest on, that no other leads by more than a standard error."""
        chosen = next(t for t in finalists if not any(other.beats(t) for other in finalists))
        rival = max((t for t in finalists if t is not chosen), key=_Trial.mean)
        lead, error = chosen.lead(rival)
        gap = f"leads by {lead:.4f}" if lead > error else f"is level, {lead:+.4f},"
        why = (
            f"{gap} (standard error {error:.4f}) with {_named(rival.record)} next, in the mean of "
            f"{' and '.join(MEASURES)} on held-out pairs of {len(self.lefts):,} lefts; {len(self.records)} short fits"
        )
        chosen.record["why"] = _in_one_line(chosen.record, why)
