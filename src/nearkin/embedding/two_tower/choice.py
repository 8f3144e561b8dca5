"""Choices by held-out pairs: the strength of regularization, and, by short fits, the loss of `loss="auto"`.

Every short fit starts from the tables of the one before: all pairs along its strengths of regularization and then with
powers, the softmax on cosines along falling temperatures, of which the best is trained longer. Unless all pairs lead,
the softmax is also tried with imputed rights. A more expensive loss is chosen only if its lead exceeds one standard
error of the difference, paired by left entity.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias, cast

import numpy as np
import torch
from torch import Tensor

from nearkin._check import draw_seed
from nearkin._distributed import ALONE, Group
from nearkin._types import Record
from nearkin.contracts import Callback
from nearkin.data.interactions import split_random
from nearkin.embedding.all_pairs.loss import AllPairsLoss
from nearkin.embedding.baselines import sparse_ease
from nearkin.embedding.two_tower.als import ALS
from nearkin.embedding.two_tower.cosine_softmax import DEFAULTS as OF_COSINES
from nearkin.embedding.two_tower.cosine_softmax import CosineSoftmax, SphereSweeps
from nearkin.embedding.two_tower.objective import AllPairs, Objective, initial_tables
from nearkin.metrics.ranking import ranking_metrics, ranking_values
from nearkin.records import Interactions

DEPTH = 20
MEASURES = (f"recall@{DEPTH}", f"ndcg@{DEPTH}")
Tables: TypeAlias = tuple[Tensor, Tensor]  # P (m, k) and Q (n, k)


@dataclass(frozen=True)
class Defaults:
    """Candidates, and the lengths of their short fits.

    Test Recall@20 / NDCG@20 of the choice and of `loss="all-pairs"`, k = 64, seed 0 (2026-11): gowalla .1859 / .1561
    and .1522 / .1291, ml100k .4024 / .2963 and .3855 / .2803. Planted sets set the last round's length.
    """

    weight_power: float = 0.25  # weight power of the second all-pairs candidate; see `AllPairs` for the gain
    cost_power: float = 0.2
    # a factor of 3/4: on gowalla's validation pairs (2026-11) .12 leads .15 by .0125 in Recall@20 and .1 by .003
    temperatures: tuple[float, ...] = (0.37, 0.28, 0.21, 0.16, 0.12, 0.09)
    # Recall@20 of a held-out fifth with .2 and .3 (24 November 2026): Yelp2018 .1166 and .1152, gowalla .2119 and .2125
    imputed: float = 0.2
    n_imputed: int = 2  # temperatures tried with imputed rights: the best without them and the next lower one
    n_neighbours: int = 50  # neighbours for imputed labels; costs an eighth of a full fit's 100
    sweeps: int = 4  # of all pairs with powers, and at each temperature
    # of the softmax in the last round, with a whole fit's sample: planted long tail .0862 / .0671, with 8 .0822 / .0624
    last_sweeps: int = 12
    most_lefts: int = 4000  # most left entities that are ranked
    fewest_lefts: int = 100  # least number of left entities; with fewer the standard error is uncertain
    # ---- the strength of regularization; 2026-11 on ml100k and gowalla without a recorded table
    ranked_lefts: int = 1000  # most left entities of a held-out ranking: the standard error of an NDCG is below .01
    fewest_pairs: int = 30  # held-out pairs; with fewer the metric is noise
    depth: int = 100  # k of the held-out NDCG
    strengths: tuple[float, ...] = (0.5, 0.25, 0.125, 0.0625)  # tried lambdas, as shares of the noise level
    start_sweeps: int = 5  # at the first strength: embeddings grow slowly from small tables under strong regularization
    next_sweeps: int = 2  # at each later strength, which starts from the tables of the one before
    margin: float = 1.02  # ratio by which a weaker strength must be better, because warm starts favour it
    fallback: float = 0.25  # share of the noise level with too few pairs to hold out


DEFAULTS = Defaults()


class ValidationRanking(NamedTuple):
    """Held-out pairs, pairs to leave out of the rankings, and the left entities to rank."""

    pairs: Interactions
    seen: Interactions
    lefts: np.ndarray

    def metric(self, P: Tensor, Q: Tensor) -> float:
        """NDCG@100."""
        k, tables = DEFAULTS.depth, (P.numpy(), Q.numpy())
        found = ranking_metrics(*tables, self.pairs, seen=self.seen, k=k, metrics=("ndcg",), rows=self.lefts)
        return found[f"ndcg@{k}"]


def judging_lefts(held: Interactions, most: int, rng: np.random.Generator) -> np.ndarray:
    """Sorted numbers of the left entities that have held-out pairs, or of `most` of them drawn at random."""
    lefts = np.flatnonzero(np.diff(held.indptr) > 0)
    return lefts if len(lefts) <= most else np.sort(rng.choice(lefts, most, replace=False))


def validation_ranking(pairs: Interactions, seen: Interactions, rng: np.random.Generator) -> ValidationRanking | None:
    """The ranking of held-out `pairs` for a sample of left entities; None if there are too few pairs."""
    if len(pairs) < DEFAULTS.fewest_pairs:
        return None
    return ValidationRanking(pairs, seen, judging_lefts(pairs, DEFAULTS.ranked_lefts, rng))


class Chosen(NamedTuple):
    """A strength of regularization, the tables that ALS reached with it, and the sweeps of all strengths."""

    strength: float
    tables: Tables
    sweeps: int = 0


def sweep(loss: AllPairsLoss, tables: Tables, sweeps: int, group: Group = ALONE) -> tuple[Tables, float]:
    """The tables after sweeps of alternating least squares from copies of these, and the value of the last sweep."""
    solver = ALS().alternate(loss, *tables, group=group)
    values = [solver.step() for _ in range(sweeps)]
    return solver.embeddings(), values[-1]


def choose_regularization(
    objective: Objective,
    tables: Tables,
    ranking: ValidationRanking | None,
    *,
    noise: float,
    callback: Callback | None = None,
    group: Group = ALONE,
) -> Chosen:
    """The lambda of best held-out metric among shares of the objective's `noise` level, and its tables. From strong to
    weak, each starting from the tables of the one before, until the metric no longer rises by 2 %. Without held-out
    pairs: a quarter of the noise level and the given tables."""
    if ranking is None:
        return Chosen(DEFAULTS.fallback * noise, tables)
    best, chosen, done = -np.inf, Chosen(DEFAULTS.fallback * noise, tables), 0
    for number, share in enumerate(DEFAULTS.strengths, start=1):
        strength, sweeps = share * noise, DEFAULTS.next_sweeps if done else DEFAULTS.start_sweeps
        tables, value = sweep(objective.loss(strength), tables, sweeps, group)
        done += sweeps
        metric = ranking.metric(*tables)
        if callback is not None:
            record = {"step": number, "total": len(DEFAULTS.strengths), "phase": "regularization"}
            callback(number, record | {"regularization": strength, "objective": value, "metric": metric})
        if number > 1 and metric <= DEFAULTS.margin * best:
            break
        best, chosen = metric, Chosen(strength, tables)
    return chosen._replace(sweeps=done)


# ---- the loss -----------------------------------------------------------------------------------------------------


def choose_loss(
    k: int,
    interactions: Interactions,
    validation: Interactions | None,
    rng: np.random.Generator,
    *,
    fraction: float,
    callback: Callback | None,
    group: Group,
) -> list[Record]:
    """Choose the loss of `loss="auto"` for these pairs; returns a record of each short fit, the chosen one with `why`.

    `fraction` of the pairs is held out if there is no `validation`. With too few held-out pairs it is all pairs,
    without a short fit.
    """
    train, held = interactions, validation
    if held is None:
        parts = split_random(interactions, valid=fraction, test=0, random_state=rng)
        train, held = parts.train, parts.valid
    lefts = judging_lefts(held, DEFAULTS.most_lefts, rng)
    if len(lefts) < DEFAULTS.fewest_lefts:
        return all_pairs_alone(f"{len(lefts)} lefts have held-out pairs; a choice needs {DEFAULTS.fewest_lefts}")
    return _Race(k, train, held, lefts, rng, callback, group).run()


def loss_of(trials: Sequence[Record]) -> AllPairs | CosineSoftmax:
    """The loss chosen in these records; all pairs if there are none."""
    for trial in trials:
        if "why" in trial:
            kind = CosineSoftmax if trial["loss"] == CosineSoftmax.name else AllPairs
            return kind().set_params(**trial["settings"])
    return AllPairs()


def all_pairs_alone(why: str) -> list[Record]:
    """The records of a choice of all pairs without a short fit, for this reason."""
    record: Record = {"loss": AllPairs.name, "settings": {}}
    return [record | {"why": _in_one_line(record, why)}]


def _named(trial: Record) -> str:
    settings = ", ".join(f"{name} {value:g}" for name, value in trial["settings"].items())
    return trial["loss"] + (f" ({settings})" if settings else "")


def _in_one_line(trial: Record, why: str) -> str:
    return f"loss {_named(trial)}, the choice of 'auto': {why}"


class _Trial(NamedTuple):
    """A short fit."""

    loss: AllPairs | CosineSoftmax
    tables: Tables  # without the bias of a softmax
    values: np.ndarray  # (lefts,) mean of Recall@20 and NDCG@20
    record: Record

    def lead(self, other: "_Trial") -> tuple[float, float]:
        """The mean lead over another fit on the same lefts, and its standard error."""
        difference = self.values - other.values
        return float(difference.mean()), float(difference.std(ddof=1) / len(difference) ** 0.5)

    def beats(self, other: "_Trial") -> bool:
        return bool(np.greater(*self.lead(other)))

    def mean(self) -> float:
        return float(self.values.mean())


@dataclass(eq=False)
class _Race:
    """The short fits on one split of the pairs."""

    k: int
    train: Interactions
    held: Interactions
    lefts: np.ndarray
    rng: np.random.Generator
    callback: Callback | None
    group: Group

    def __post_init__(self) -> None:
        self.generator = torch.Generator().manual_seed(draw_seed(self.rng))
        self.start = initial_tables(self.train, self.k, self.generator)
        self.records: list[Record] = []
        self.clock = time.perf_counter()

    def run(self) -> list[Record]:
        P, Q = self.start
        pairs = self._regularized()  # the cheapest first
        best = self._cooled((P[:, :-1], Q[:, :-1]))
        softmax = self._on_cosines(cast(CosineSoftmax, best.loss), best.tables, DEFAULTS.last_sweeps)
        finalists = [pairs, softmax]
        if not pairs.beats(softmax):
            finalists.append(self._imputed(softmax))
        self._decide(finalists)
        return self.records

    def _regularized(self) -> _Trial:
        """All pairs at the strength of regularization of best held-out NDCG; with powers too, from its tables."""
        loss = AllPairs()
        objective, ranking = loss.objective(self.train), validation_ranking(self.held, self.train, self.rng)
        noise = objective.noise_level(self.rng)
        found = choose_regularization(objective, self.start, ranking, noise=noise, group=self.group)
        solver = ALS().alternate(objective.loss(found.strength), *found.tables, group=self.group)
        plain = self._judged(loss, solver, found.sweeps)
        loss = AllPairs(weight_power=DEFAULTS.weight_power, cost_power=DEFAULTS.cost_power)
        objective = loss.objective(self.train)
        strength = found.strength / noise * objective.noise_level(self.rng)
        solver = ALS().alternate(objective.loss(strength), *found.tables, group=self.group)
        return max(plain, self._swept(loss, solver, DEFAULTS.sweeps), key=_Trial.mean)

    def _cooled(self, tables: Tables) -> _Trial:
        """The best of the falling temperatures; stops at one that is behind the best by its standard error."""
        trials: list[_Trial] = []
        for temperature in DEFAULTS.temperatures:
            loss = CosineSoftmax(temperature=temperature)
            trials.append(self._on_cosines(loss, tables, DEFAULTS.sweeps, OF_COSINES.first_sampled))
            if max(trials, key=_Trial.mean).beats(trials[-1]):
                break
            tables = trials[-1].tables
        return max(trials, key=_Trial.mean)

    def _imputed(self, plain: _Trial) -> _Trial:
        """The best with imputed rights, from these tables, at their temperature and the next lower one."""
        lists = sparse_ease(self.train, OF_COSINES.imputed, n_neighbours=DEFAULTS.n_neighbours)[1]
        first, trials = DEFAULTS.temperatures.index(plain.loss.get_params()["temperature"]), list[_Trial]()
        for temperature in DEFAULTS.temperatures[first : first + DEFAULTS.n_imputed]:
            loss = CosineSoftmax(temperature=temperature, imputed=DEFAULTS.imputed)
            trials.append(self._on_cosines(loss, plain.tables, DEFAULTS.last_sweeps, lists=lists))
        return max(trials, key=_Trial.mean)

    def _on_cosines(
        self,
        loss: CosineSoftmax,
        tables: Tables,
        sweeps: int,
        n_sampled: int | None = SphereSweeps.n_sampled,
        lists: np.ndarray | None = None,
    ) -> _Trial:
        solver = SphereSweeps(max_iter=sweeps, n_sampled=n_sampled)
        solver.sweep_from(loss.softmax_loss(loss.objective(self.train), lists), *tables, self.generator)
        return self._swept(loss, solver, sweeps)

    def _swept(self, loss: AllPairs | CosineSoftmax, solver: ALS | SphereSweeps, sweeps: int) -> _Trial:
        for _ in range(sweeps):
            solver.step()
        return self._judged(loss, solver, sweeps)

    def _judged(self, loss: AllPairs | CosineSoftmax, solver: ALS | SphereSweeps, sweeps: int) -> _Trial:
        P, Q = (X.numpy() for X in solver.embeddings())
        found = ranking_values(P, Q, self.held, seen=self.train, k=DEPTH, rows=self.lefts)
        values = self.group.exchange(np.mean([found[name] for name in MEASURES], axis=0).tolist())[0]
        given, usual = loss.get_params(), type(loss)().get_params()
        seconds, self.clock = time.perf_counter() - self.clock, time.perf_counter()  # since the fit before
        record = {
            "loss": loss.name, "settings": {name: given[name] for name in given if given[name] != usual[name]},
            "sweeps": sweeps, "seconds": seconds,
        } | {name: float(found[name].mean()) for name in MEASURES}  # fmt: skip
        self.records.append(record)
        if self.callback is not None:
            number, total = len(self.records), 3 + len(DEFAULTS.temperatures) + DEFAULTS.n_imputed
            note = _named(record)
            self.callback(number, {"step": number, "total": total, "phase": "loss", "note": note} | record)
        return _Trial(loss, (solver.P, solver.Q), np.array(values), record)

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
