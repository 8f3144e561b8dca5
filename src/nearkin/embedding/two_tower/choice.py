"""Choices by held-out pairs: the strength of regularization, and, by short fits, the loss of `loss="auto"`.

Every short fit starts from the tables of the one before: all pairs along its strengths of regularization and then with
powers, the softmax on cosines along falling temperatures, of which the best is trained longer, and with imputed items.
The largest mean over users wins: vectors of any of these losses cost the same to store and to search. A chosen softmax
is trained on from the tables of its short fit."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeAlias, cast

import numpy as np
import torch
from torch import Tensor

from nearkin._check import draw_seed
from nearkin._distributed import ALONE, Group
from nearkin._fields import counted
from nearkin._types import Record
from nearkin.contracts import Callback
from nearkin.data.interactions import Parts, split_by_time, split_random
from nearkin.embedding.all_pairs.loss import AllPairsLoss
from nearkin.embedding.two_tower.als import ALS
from nearkin.embedding.two_tower.cosine_softmax import DEFAULTS as OF_COSINES
from nearkin.embedding.two_tower.cosine_softmax import CosineSoftmax, SphereSweeps
from nearkin.embedding.two_tower.objective import AllPairs, Objective, growth, initial_tables
from nearkin.metrics.ranking import ranking_metrics
from nearkin.metrics.trial import DEFAULTS as OF_TRIALS
from nearkin.metrics.trial import Trial
from nearkin.records import Interactions

DEPTH = 20
# powers of `growth` that late pairs choose from: with 1 an item gains as its pairs did. NDCG@20 after five
# cuts in time, chosen, and before: ml100k .191, .130; tags of Last.fm .085, .090 (a tie); a grocery log .077, .076
RECENCIES = (0.0, 0.5, 1.0, 1.5)
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
    # shares and powers of the bias, the first at the best temperature without imputed rights, the second at the next
    # lower one; Recall@20 / NDCG@20 of a held-out fifth after whole fits (29 November 2026): gowalla (.2, .5) at .12
    # .2128 / .1523, (.3, .5) at .09 .2176 / .1566, (.3, .7) .2186 / .1574, of a tenth .2314 / .1436 and .2322 / .1443;
    # Yelp2018 (.2, .5) at .12 .1161 / .0908, (.3, .5) at .09 .1153 / .0893
    imputed: tuple[tuple[float, float], ...] = ((0.2, 0.5), (0.3, 0.7))
    sweeps: int = 4  # of all pairs with powers, and at each temperature
    # of the softmax in the last round, with a whole fit's sample: planted long tail .0862 / .0671, with 8 .0822 / .0624
    last_sweeps: int = 12
    fewest_lefts: int = 100  # least number of left entities; with fewer the standard error is uncertain
    # ---- the strength of regularization; 2026-11 on ml100k and gowalla without a recorded table
    fewest_pairs: int = 30  # held-out pairs, or users with the latest ones; with fewer the metric is noise
    depth: int = 100  # k of the held-out NDCG
    strengths: tuple[float, ...] = (0.5, 0.25, 0.125, 0.0625)  # tried lambdas, as shares of the noise level
    start_sweeps: int = 5  # at the first strength: embeddings grow slowly from small tables under strong regularization
    next_sweeps: int = 2  # at each later strength, which starts from the tables of the one before


DEFAULTS = Defaults()


class ValidationRanking(NamedTuple):
    """Held-out pairs, pairs to leave out of the rankings, and the users to rank."""

    pairs: Interactions
    seen: Interactions
    lefts: np.ndarray

    def values(self, P: Tensor, Q: Tensor) -> np.ndarray:
        """NDCG@100 of each user."""
        k, tables = DEFAULTS.depth, (P.cpu().numpy(), Q.cpu().numpy())
        found = ranking_metrics(
            *tables, self.pairs, seen=self.seen, k=k, metrics=("ndcg",), users=self.lefts, each=True
        )
        return found[f"ndcg@{k}"]

    def metric(self, P: Tensor, Q: Tensor) -> float:
        """Their mean."""
        return float(self.values(P, Q).mean())


def hold_out(pairs: Interactions, fraction: float, rng: np.random.Generator) -> Parts:
    """That share of the pairs at random; if there are times, the latest ones of users that also have earlier pairs, and
    of the other users' pairs that share at random, for these are more users. `test` has what comes after the cut else.
    """
    if pairs.timestamps is not None and len(np.unique(pairs.timestamps)) > 1:
        before, latest, _ = split_by_time(pairs, valid=fraction, test=0)
        users = np.intersect1d(before.rows, latest.rows)
        if len(users) >= DEFAULTS.fewest_pairs and len(latest) <= 2 * fraction * len(pairs):  # most times may be one
            late = pairs.timestamps >= cast(np.ndarray, latest.timestamps).min()
            again = np.isin(pairs.rows, users)
            drawn = ~late & ~again & (rng.random(len(pairs)) < fraction)
            return Parts(pairs.select(~late & ~drawn), pairs.select(late & again | drawn), pairs.select(late & ~again))
    return split_random(pairs, valid=fraction, test=0, random_state=rng)


def judging_lefts(held: Interactions, most: int, rng: np.random.Generator) -> np.ndarray:
    """Sorted numbers of the users that have held-out pairs, or of `most` of them drawn at random."""
    lefts = np.flatnonzero(np.diff(held.indptr) > 0)
    return lefts if len(lefts) <= most else np.sort(rng.choice(lefts, most, replace=False))


def validation_ranking(pairs: Interactions, seen: Interactions, rng: np.random.Generator) -> ValidationRanking | None:
    """The ranking of held-out `pairs` for a sample of users; None if there are too few pairs."""
    if len(pairs) < DEFAULTS.fewest_pairs:
        return None
    return ValidationRanking(pairs, seen, judging_lefts(pairs, OF_TRIALS.queries, rng))


class Chosen(NamedTuple):
    """A strength of regularization, the tables that ALS reached with it, and the sweeps of all strengths."""

    strength: float
    tables: Tables
    sweeps: int = 0


def sweep(loss: AllPairsLoss, tables: Tables, sweeps: int, group: Group = ALONE) -> Tables:
    """The tables after sweeps of alternating least squares from copies of these."""
    solver = ALS().alternate(loss, *tables, group=group)
    for _ in range(sweeps):
        solver.step()
    return solver.embeddings()


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
    weak, each starting from the tables of the one before, until one does not win: weaker ones take more sweeps. Without
    held-out pairs: a quarter of the noise level and the given tables."""
    chosen = Chosen(0.25 * noise, tables)  # with too few pairs to hold out
    if ranking is None:
        return chosen
    trial, done = Trial[float](_of_phase("regularization", callback), len(DEFAULTS.strengths), "held-out NDCG"), 0
    for share in DEFAULTS.strengths:
        strength, sweeps = share * noise, DEFAULTS.next_sweeps if done else DEFAULTS.start_sweeps
        tables = sweep(objective.loss(strength), tables, sweeps, group)
        done += sweeps
        trial.add(strength, _of_rank_0(group, ranking.values(*tables)), done, regularization=strength)
        if trial.winner() != strength:
            break
        chosen = Chosen(strength, tables)
    return chosen._replace(sweeps=done)


def _of_rank_0(group: Group, values: np.ndarray) -> np.ndarray:
    """The values of the first process, so that all choose alike."""
    return np.array(group.exchange(values.tolist())[0])


def _of_phase(phase: str, callback: Callback | None) -> Callback | None:
    """The callback with "step" and "phase" in its records."""
    return callback and (lambda step, record: callback(step, {"step": step, "phase": phase, **record}))


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
) -> tuple[list[Record], Tables | None]:
    """Choose the loss of `loss="auto"` for these pairs; returns a record of each short fit, the chosen one with `why`,
    and the tables of a chosen softmax, from which it is trained on.

    `fraction` of the pairs is held out (`hold_out`) if there is no `validation`. With too few held-out pairs it is
    all pairs, without a short fit.
    """
    train, held, late = interactions, validation, np.empty(0, int)
    if held is None:
        train, held, _ = hold_out(interactions, fraction, rng)
    lefts = judging_lefts(held, 2000, rng)  # are ranked, at most
    if len(lefts) < DEFAULTS.fewest_lefts:
        have = counted(len(lefts), "user has", "users have")
        return all_pairs_alone(f"{have} held-out pairs; a choice needs {DEFAULTS.fewest_lefts}"), None
    if train.timestamps is not None and held.timestamps is not None:
        late = held.rows[held.timestamps > train.timestamps.max()]
    return _LossChoice(k, train, held, lefts, np.isin(lefts, late), rng, callback, group).run()


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


def _named(loss: str, settings: Record) -> str:
    words = [f"{name} {value}" for name, value in settings.items()]
    return loss + (f" ({', '.join(words)})" if words else "")


def _in_one_line(trial: Record, why: str) -> str:
    return f"loss {_named(trial['loss'], trial['settings'])}, the choice of 'auto': {why}"


class _Fit(NamedTuple):
    """A short fit."""

    name: str
    loss: AllPairs | CosineSoftmax
    tables: Tables  # without the bias of a softmax


@dataclass(eq=False)
class _LossChoice:
    """The short fits on one split of the pairs."""

    k: int
    train: Interactions
    held: Interactions
    lefts: np.ndarray
    late: np.ndarray  # whether a left has the latest pairs held out, not random ones
    rng: np.random.Generator
    callback: Callback | None
    group: Group

    def __post_init__(self) -> None:
        self.generator = torch.Generator().manual_seed(draw_seed(self.rng))
        self.start = initial_tables(self.train, self.k, self.generator)
        self.recencies = RECENCIES if self.late.sum() >= DEFAULTS.fewest_pairs else (0.0,)
        # without the weights, pairs of weight 0 would be observed ones
        self.weightings = ("log", "none") if 0 < self.train.weights.min() < self.train.weights.max() else ("log",)
        self.judges = np.ones(len(self.lefts), bool)  # the lefts that decide
        total = 2 + len(self.weightings) * len(self.recencies) + len(DEFAULTS.temperatures) + len(DEFAULTS.imputed)
        self.trial = Trial[str](_of_phase("loss", self.callback), total, "held-out NDCG")
        self.clock = time.perf_counter()

    def run(self) -> tuple[list[Record], Tables | None]:
        pairs, (P, Q) = self._regularized(), self.start  # the cheapest first
        cooled = self._ladder(
            DEFAULTS.temperatures,
            lambda temperature, fits: self._on_cosines(
                CosineSoftmax(temperature=temperature), fits[-1].tables if fits else (P, Q),
                DEFAULTS.sweeps, n_sampled=OF_COSINES.first_sampled,
            )[0],
        )  # fmt: skip
        softmax = self._lately(cooled)
        return self._decide([pairs, softmax, self._imputed(softmax)])

    def _lately(self, cooled: _Fit) -> _Fit:
        """This softmax after more sweeps, without the record's weights if that leads, and with the recency that the
        latest pairs choose; from then on, unless it is 0, they alone decide: a recency cannot gain on random ones."""
        loss, trial = cast(CosineSoftmax, cooled.loss), Trial[str](None, len(self.recencies), "of the latest pairs")
        fits, *unweighted = (
            self._on_cosines(replace(loss, weighting=weighting), cooled.tables, DEFAULTS.last_sweeps, self.recencies)
            for weighting in self.weightings
        )
        if unweighted and self.trial.leads(unweighted[0][0].name, fits[0].name):
            fits = unweighted[0]
        for recency, fit in zip(self.recencies, fits, strict=True):
            trial.add(fit.name, self.trial.values[fit.name][self.late], recency)
        chosen = fits[0] if len(fits) == 1 else next(fit for fit in fits if fit.name == trial.winner())
        if chosen is not fits[0]:
            self.judges = self.late
            self.trial.values = {name: values[self.late] for name, values in self.trial.values.items()}
        return chosen

    def _best(self, fits: Sequence[_Fit]) -> _Fit:
        """The fit of the largest mean."""
        name = self.trial.best(*(fit.name for fit in fits))
        return next(fit for fit in fits if fit.name == name)

    def _ladder(self, values: Sequence[float], fit: Callable[[float, list[_Fit]], _Fit]) -> _Fit:
        """The best of the fits at these values, each given those before; stops at one that another leads."""
        fits: list[_Fit] = []
        for value in values:
            fits.append(fit(value, fits))
            if self.trial.leads(self._best(fits).name, fits[-1].name):
                break
        return self._best(fits)

    def _regularized(self) -> _Fit:
        """All pairs at the strength of regularization of best held-out NDCG; from its tables with powers too."""
        loss = AllPairs()
        objective, ranking = loss.objective(self.train), validation_ranking(self.held, self.train, self.rng)
        noise = objective.noise_level(self.rng)
        found = choose_regularization(objective, self.start, ranking, noise=noise, group=self.group)
        solver = ALS().alternate(objective.loss(found.strength), *found.tables, group=self.group)
        plain = self._measured(loss, solver, found.sweeps)
        loss = AllPairs(weight_power=DEFAULTS.weight_power, cost_power=DEFAULTS.cost_power)
        objective = loss.objective(self.train)
        strength = found.strength / noise * objective.noise_level(self.rng)
        solver = ALS().alternate(objective.loss(strength), *found.tables, group=self.group)
        for _ in range(DEFAULTS.sweeps):
            solver.step()
        return self._best([plain, self._measured(loss, solver, DEFAULTS.sweeps)])

    def _imputed(self, plain: _Fit) -> _Fit:
        """The best with imputed rights, from these tables: a larger share and bias at the next lower temperature."""
        lists, sweeps = CosineSoftmax().lists(self.train), 2 * DEFAULTS.sweeps
        kept, fits = cast(CosineSoftmax, plain.loss), list[_Fit]()
        first = DEFAULTS.temperatures.index(kept.temperature)
        for temperature, (share, power) in zip(DEFAULTS.temperatures[first:], DEFAULTS.imputed, strict=False):
            loss = replace(kept, temperature=temperature, imputed=share, bias_power=power)
            fits += self._on_cosines(loss, plain.tables, sweeps, [kept.recency], lists=lists)
        return self._best(fits)

    def _on_cosines(
        self,
        loss: CosineSoftmax,
        tables: Tables,
        sweeps: int,
        recencies: Sequence[float] = (0.0,),
        *,
        n_sampled: int | None = SphereSweeps.n_sampled,
        lists: np.ndarray | None = None,
    ) -> list[_Fit]:
        """A short fit, measured with each of the recencies, which need no other."""
        solver = SphereSweeps(max_iter=sweeps, n_sampled=n_sampled)
        solver.sweep_from(loss.softmax_loss(loss.objective(self.train), lists), *tables, self.generator)
        for _ in range(sweeps):
            solver.step()
        fits, lead = list[_Fit](), growth(self.train)
        for recency in recencies:
            solver.lead = recency * lead
            fits.append(self._measured(replace(loss, recency=recency), solver, sweeps))
        return fits

    def _measured(self, loss: AllPairs | CosineSoftmax, solver: ALS | SphereSweeps, sweeps: int) -> _Fit:
        """Add a short fit to the trial."""
        P, Q = (X.numpy() for X in solver.embeddings())
        found = ranking_metrics(P, Q, self.held, seen=self.train, k=DEPTH, users=self.lefts, each=True)
        given, usual = loss.get_params(), type(loss)().get_params()
        settings = {name: given[name] for name in given if given[name] != usual[name]}
        name = f"{_named(loss.name, settings)}, {sweeps} sweeps"
        values = np.mean([found[measure] for measure in MEASURES], axis=0)
        seconds, self.clock = time.perf_counter() - self.clock, time.perf_counter()  # since the fit before
        self.trial.add(
            name, _of_rank_0(self.group, values[self.judges]),
            loss=loss.name, settings=settings, sweeps=sweeps, seconds=seconds,
            **{measure: float(found[measure].mean()) for measure in MEASURES},
        )  # fmt: skip
        return _Fit(name, loss, (solver.P, solver.Q))

    def _decide(self, finalists: Sequence[_Fit]) -> tuple[list[Record], Tables | None]:
        """The records of all short fits, the best of the finalists with a reason, and its tables if it is a softmax. A
        tie is not left to the loss that trains fastest: NDCG and recall of a held-out tenth would lose .028 on
        FilmTrust, .019 on tags of Last.fm."""
        chosen, trial = self._best(finalists), self.trial
        rival = trial.best(*(fit.name for fit in finalists if fit is not chosen))
        lead, table = trial.lead(chosen.name, rival), trial.table(chosen.name)
        why = (
            f"against {rival}, the next: {lead}, in the mean of {' and '.join(MEASURES)} on held-out pairs of "
            f"{self.judges.sum():,} users; {len(table)} short fits"
        )
        for record in table:
            if record["won"]:
                record["why"] = _in_one_line(record, why)
        return table, None if isinstance(chosen.loss, AllPairs) else chosen.tables
