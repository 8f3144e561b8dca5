"""`OrdinalEmbedding`: vectors from answers to "which pair is closer?"."""

import json
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from nearkin import _check
from nearkin._check import as_array, draw_seed, numpy_generator
from nearkin._distributed import current
from nearkin._fields import StrPath, counted
from nearkin._json import parsed_json
from nearkin._storage import one_version, read_arrays, read_config, regular_file, saving_folder, write_arrays
from nearkin._types import Record, Seed
from nearkin.contracts import Callback, Run
from nearkin.data.comparisons import as_comparisons
from nearkin.data.comparisons.votes import net_votes, split_comparisons
from nearkin.embedding.ordinal import answers, questions
from nearkin.embedding.ordinal.losses import LOSSES, OrdinalLoss, get_loss
from nearkin.embedding.ordinal.objective import DEFAULTS, SOLVERS, Task, count_dimensions, principal_axes
from nearkin.metrics.ordinal import satisfied, triplet_error
from nearkin.records import Answers, Comparisons
from nearkin.solvers import Solver
from nearkin.statistics import shared_generator

KIND = "ordinal-embedding"
_COLUMNS = ("weights", "events", "judgements")  # of the comparisons, that a folder keeps


def embedding_config(model: Any) -> Record:
    """The contents of config.json: parameters, and how the run ended."""
    plain = (type(None), str, int, float)
    params = {name: value if isinstance(value, plain) else None for name, value in model.get_params().items()}
    n, p = model.embedding_.shape
    end = {"objective": model.objective_, "n_iter": model.n_iter_, "status": model.status_}
    end |= {"loss": model.loss_, "loss_parameter": model.loss_parameter_}
    if model.rater_reliability_ is not None:
        end["rater_reliability"] = [list(pair) for pair in model.rater_reliability_.items()]  # names may be numbers
    return {"n_objects": n, "n_components": p, "params": params, "dimension_curve": model.dimension_curve_, **end}


def write_embedding(model: Any, folder: Path) -> None:
    """Write a fitted model's arrays and names into `folder`, which has config.json already."""
    answers = model.comparisons_
    arrays = {"embedding": model.embedding_, "comparisons": answers.indices}
    columns = {name: getattr(answers, name) for name in _COLUMNS}
    arrays |= {name: column for name, column in columns.items() if column is not None}
    write_arrays(folder / "embedding.safetensors", arrays)
    names = json.dumps(model.objects_.tolist(), ensure_ascii=False)
    (folder / "objects.json").write_text(names + "\n", encoding="utf-8")


def read_embedding(path: Path) -> tuple[Record, Record]:
    """The parameters and the fitted values of a saved model. Fails if the folder is damaged; see `one_version`."""
    config = read_config(path, KIND)
    arrays = read_arrays(path / "embedding.safetensors")
    shape, weights = arrays["embedding"].shape, config.get("rater_reliability")
    objects = as_array(parsed_json(regular_file(path / "objects.json").read_bytes()), "objects")
    if shape != (len(objects), config["n_components"]) or not np.isfinite(arrays["embedding"]).all():
        needed = len(objects), config["n_components"]
        raise ValueError(f"{path}: embedding has shape {shape}; it must be {needed}, all numbers finite; it is damaged")
    fitted = {
        "embedding_": arrays["embedding"],
        "objects_": objects,
        "comparisons_": replace(
            Comparisons(arrays["comparisons"], objects), **{name: arrays.get(name) for name in _COLUMNS}
        ),
        "rater_reliability_": None if weights is None else {name: float(weight) for name, weight in weights},
        "n_components_": config["n_components"],
        "loss_": config["loss"],
        "loss_parameter_": config["loss_parameter"],
        "dimension_curve_": config["dimension_curve"],
        "objective_": config["objective"],
        "n_iter_": config["n_iter"],
        "status_": config["status"],
        "history_": [],
    }
    params = config["params"]
    solver = params["solver"] if params["solver"] in SOLVERS else "auto"  # else an object
    return params | {"solver": solver}, fitted


@dataclass(eq=False, repr=False)
class OrdinalEmbedding(BaseEstimator):
    """Points whose distances agree with comparisons (SVRG-SBB; losses in `losses`, solvers in `nearkin.solvers`).

    Parameters
    ----------
    n_components: the dimension p, or "auto" for cross-validation (`dimension_curve_` is the error by dimension).
    loss: "gnmds", "ckl", "ste", "t-ste" or "soe"; "auto" for the first of "ste", "ste" with a tenth of random answers
        and "t-ste" that none leads by a standard error on held-out answers (three to twelve fits before the last).
    solver: "auto", "svrg-sbb", "svrg", "sgd", "adagrad", "gd" or "l-bfgs", or an object of `nearkin.solvers` with
        other settings, such as `SVRG(restart=10)` (Algorithm 2).
    loss_parameter: mu of "ckl", alpha of "t-ste", margin of "soe", share of random answers of "ste" (usually 0; with
        0.1 a wrong answer costs little); None for the usual value.
    max_iter, tol: maximum number of epochs; the fit stops when the relative decrease of the objective in an epoch is
        below `tol`; for "ste" with solver "auto" relative to half the objective of equal points at least, because
        without wrong answers the objective would fall for ever.
    n_init: number of random starts. Each runs for ten epochs, then the best one continues; "auto" is 2 up to 100,000
        comparisons, 4 where epochs do not begin in more dimensions ("gnmds", "soe", other solvers), and 1 above.
    scale: standard deviation of a start's coordinates.
    random_state: seed.

    Attributes
    ----------
    embedding_: (n, p) float32, centred, in principal axes. Objects without a comparison are at the origin; `report()`
        lists them, and groups of objects that no comparison connects.
    objects_: (n,) names.
    n_components_: p.
    loss_, loss_parameter_: as given, or as chosen for loss="auto".
    objective_, n_iter_, status_, history_: of the best start's run; records have "step" and "objective", the mean loss
        of a comparison, or of a choice where `choices` are joint.
    comparisons_: the training data.
    rater_reliability_: rater -> weight, or None.
    dimension_curve_: the error by dimension, of n_components="auto".

    References
    ----------
    Ma et al. (2021), Fast stochastic ordinal embedding (SVRG-SBB), arXiv:1912.00362; van der Maaten & Weinberger
    (2012), Stochastic triplet embedding (STE, t-STE).

    Examples
    --------
    >>> answers = [[0, 1, 2], [0, 1, 3], [1, 2, 3], [3, 2, 1], [3, 2, 0], [2, 1, 0]]
    >>> line = nk.OrdinalEmbedding(n_components=1, random_state=0).fit(answers)
    >>> line.score(answers)
    1.0
    """

    n_components: int | str = 2
    _: KW_ONLY
    loss: str = "auto"
    solver: str | Solver = "auto"
    loss_parameter: float | None = None
    max_iter: int = 100
    tol: float = 1e-3
    n_init: int | str = "auto"
    scale: float = 0.1
    random_state: Seed = None

    def fit(
        self,
        comparisons: Answers,
        y: object = None,
        *,
        validation: Answers | float | None = None,
        choices: str = "auto",
        raters: str = "equal",
        callback: Callback | None = None,
    ) -> Self:
        """Train on a `Comparisons` or an integer array, rows (i, j, k) or (i, j, l, k).

        y (m,): responses as in cblearn, True or 1 for the row as given, False or -1 for its opposite: (i, k, j).
        validation: held-out comparisons, or a share of the questions to hold out (a float); the result is then the
            embedding of smallest error on them.
        choices: how answers of several comparisons (`Comparisons.events`, as "the odd one of three") count: "separate",
            each comparison by itself, or "joint", one event each (by L-BFGS). "auto" is "joint" for "ste" up to 100,000
            comparisons, where errors are smaller, and "separate" for the other losses.
        raters: "equal", or "estimated": answers are weighted by their annotator's `rater_reliability_`, the log odds of
            a right answer, found by cross-validation (five fits instead of one).
        callback(step, record): called after each epoch, from 1, with "objective", "total" epochs, the number of the
            "start" and the "embedding" so far.

        Raises ValueError for other responses, for fewer than three objects, and if the answers all cancel out.
        """
        self._check_parameters()
        _check.check_choice(choices, "choices", ("auto", "separate", "joint"))
        _check.check_choice(raters, "raters", ("equal", "estimated"))
        comparisons = as_comparisons(comparisons, y)
        if comparisons.n_objects < 3:
            raise ValueError(f"comparisons has {counted(comparisons.n_objects, 'object')}; at least 3 are needed")
        rng = self._generator()
        if isinstance(validation, float):
            comparisons, validation = split_comparisons(comparisons, validation, by="questions", random_state=rng)
        self._set_loss(answers.CANDIDATES[0])  # by which the dimension is chosen
        joint = self._takes_events(comparisons, choices)
        embed = self._embed_quickly(rng, choices)
        self.dimension_curve_: Record | None = None
        if self.n_components == "auto":
            self.n_components_, self.dimension_curve_ = answers.choose_dimension(comparisons, embed, rng)
        else:
            self.n_components_: int = int(self.n_components)
        embed = partial(embed, n_components=self.n_components_)
        if self.loss == "auto":
            self._set_loss(answers.choose_loss(comparisons, embed, rng))
            joint = self._takes_events(comparisons, choices)
        self.rater_reliability_: dict[object, float] | None = None
        if raters == "estimated":
            self.rater_reliability_ = answers.rater_reliability(comparisons, embed, rng)
            comparisons = replace(comparisons, weights=answers.weigh(comparisons, self.rater_reliability_))
        if not joint and comparisons.events is not None:
            comparisons = replace(comparisons, events=None)
        judge = None
        if validation is not None:
            judge = partial(triplet_error, comparisons=answers.match(validation, comparisons.objects))
        run = Run(self.max_iter, self.tol, callback, judge)
        self._learn(comparisons, self._starts(comparisons, rng), rng, run)
        return self

    def fit_transform(self, comparisons: Answers, y: object = None, **options: Any) -> np.ndarray:
        """`fit` with the same arguments; returns the embedding (n, p), one row for each object."""
        return self.fit(comparisons, y, **options).embedding_

    def partial_fit(self, comparisons: Answers, y: object = None, *, callback: Callback | None = None) -> Self:
        """Train on more answers, starting from the fitted embedding; new objects are added to `objects_`.

        Arguments as in `fit`. The fit uses old answers (`comparisons_`) and new ones together; choices count as in
        `fit`, and new answers have the weight 1 for every rater; loss="auto" chooses again. With `n_init` above 1
        random starts are tried too: the fitted embedding may be a bad local minimum of few answers.
        """
        if not hasattr(self, "embedding_"):
            return self.fit(comparisons, y, callback=callback)
        self._check_parameters()
        rng = self._generator()
        named = isinstance(comparisons, Comparisons) or np.array_equal(self.objects_, np.arange(len(self.objects_)))
        more = as_comparisons(comparisons, y) if named else answers.match(comparisons, self.objects_, y)
        if self.comparisons_.events is None and more.events is not None:  # they were taken as separate
            more = replace(more, events=None)
        joined = answers.join(self.comparisons_, more)
        if self.loss == "auto":  # few answers may have another best loss than many
            embed = partial(self._embed_quickly(rng), n_components=self.n_components_)
            self._set_loss(answers.choose_loss(joined, embed, rng))
        starts = self._starts(joined, rng)
        known = np.flatnonzero(answers.count_per_object(self.comparisons_))
        starts[0][known, : self.n_components_] = self.embedding_[known]  # `join` puts the known objects first
        self._learn(joined, starts, rng, Run(self.max_iter, self.tol, callback))
        return self

    def predict(self, comparisons: Answers) -> np.ndarray:
        """(m,) whether the embedding agrees with each comparison; a `Comparisons` is matched by its objects' names."""
        check_is_fitted(self, "embedding_")
        return satisfied(self.embedding_, answers.match(comparisons, self.objects_))

    def score(self, comparisons: Answers, y: object = None) -> float:
        """The share of comparisons (weighted by votes) that the embedding satisfies; responses y as in `fit`."""
        check_is_fitted(self, "embedding_")
        return 1.0 - triplet_error(self.embedding_, answers.match(comparisons, self.objects_, y))

    def next_queries(
        self, k: int = 10, *, form: str = "triplet", rule: str = "information-gain", random_state: Seed = None
    ) -> np.ndarray:
        """(at most k, 3) names (i, j, l): the most useful next questions "is i more like j or more like l?".

        form: "triplet", or "ranking": (at most k, 5) names, an object and four others to rank by nearness. Write each
            answer as a row anchor, rank1, ..., rank4, for `nearkin.read_comparisons(rows, form="ranking")`.
        rule: "information-gain", or "random" for an unbiased sample to evaluate on. The gain is computed with STE's
            model for every loss: embeddings improved fastest with it, t-STE's too. Answered questions are left out, of
            rankings those of which all triplets are answered.
        """
        check_is_fitted(self, "embedding_")
        _check.check_integer(k, "k", low=1)
        _check.check_choice(form, "form", ("triplet", "ranking"))
        _check.check_choice(rule, "rule", ("information-gain", "random"))
        seed = draw_seed(numpy_generator(self.random_state if random_state is None else random_state))
        rng = np.random.default_rng([seed, len(self.comparisons_)])  # new candidates after every round of answers
        if rule == "random":
            return self.objects_[questions.random_queries(len(self.objects_), self.comparisons_, k, rng, form)]
        X = self.embedding_.astype(float)
        return self.objects_[questions.informative_queries(X, self.comparisons_, k, rng, form)]

    def bootstrap(self, n_draws: int = 50, *, random_state: Seed = None) -> np.ndarray:
        """(n_draws, n, p) embeddings of resampled answers, each rotated, scaled and shifted onto `embedding_`.

        Judgements are drawn with replacement, with all answers to the same question and all ratings of the same pair;
        a comparison of two ratings counts as often as the product of their numbers. Each draw is fitted by L-BFGS to
        convergence, from `embedding_`: with fewer steps it would stay near it. The spread of an object's draws shows
        how well the answers determine its place: `plot_map(..., draws=...)` draws it as ellipses. An object without an
        answer in a draw keeps its place.
        """
        check_is_fitted(self, "embedding_")
        _check.check_integer(n_draws, "n_draws", low=2)
        rng = numpy_generator(self.random_state if random_state is None else random_state)

        def embed(drawn: Comparisons) -> np.ndarray:
            task = Task(drawn, self.n_components_, self._loss(self.n_components_), "l-bfgs", rng, current())
            return task.solve(self.embedding_.astype(np.float64), Run(1000, 1e-5))[0]

        return answers.bootstrap_embeddings(self.embedding_, self.comparisons_, embed, n_draws, rng)

    def report(self) -> Record:
        """Limits of this embedding: unconnected groups, objects with few answers, contradictions."""
        check_is_fitted(self, "embedding_")
        return answers.describe(self.comparisons_, few=self.n_components_ + 1)

    def save(self, path: StrPath, *, overwrite: bool = False) -> None:
        """Write a folder with config.json, objects.json and embedding.safetensors, answers included; atomically.

        ValueError if `path` exists, without `overwrite`.
        """
        check_is_fitted(self, "embedding_")
        with saving_folder(path, KIND, embedding_config(self), overwrite) as folder:
            write_embedding(self, folder)

    @classmethod
    def load(cls, path: StrPath) -> "OrdinalEmbedding":
        """Read a folder written by `save` or `nearkin embed`; `partial_fit` can continue it."""

        def load(folder: Path) -> OrdinalEmbedding:
            params, fitted = read_embedding(folder)
            model = cls(**params)
            vars(model).update(fitted)
            return model

        return one_version(path, load)

    def _check_parameters(self) -> None:
        for name in ("n_components", "n_init"):
            if (value := getattr(self, name)) != "auto":
                _check.check_integer(value, name, low=1)
        _check.check_choice(self.loss, "loss", (*LOSSES, "auto"))
        if self.loss == "auto" and self.loss_parameter is not None:
            raise ValueError(
                f"loss_parameter is {self.loss_parameter!r}; loss='auto' chooses it, give the loss by name"
            )
        _check.check_integer(self.max_iter, "max_iter", low=1)
        _check.check_real(self.tol, "tol", low=0.0)
        _check.check_real(self.scale, "scale", above=0.0)

    def _takes_events(self, comparisons: Comparisons, choices: str) -> bool:
        """Whether an answer of several comparisons counts as one event; ValueError if that is impossible."""
        if choices == "joint" and (comparisons.events is None or not self._loss(2).has_model):
            raise ValueError(
                "choices is 'joint'; it needs comparisons with events, as read with form='odd-one-out', and the loss "
                "'ste', 't-ste' or 'ckl'. Use choices='separate'"
            )
        if choices != "auto" or comparisons.events is None:
            return choices == "joint"
        able = self.loss_ == "ste" and self.solver in ("auto", "l-bfgs", "gd")
        return able and len(comparisons) <= DEFAULTS.few

    def _set_loss(self, chosen: tuple[str, float | None]) -> None:
        """`loss_` and `loss_parameter_`: those of the settings, or for "auto" the chosen ones."""
        self.loss_: str
        self.loss_parameter_: float | None
        self.loss_, self.loss_parameter_ = chosen if self.loss == "auto" else (self.loss, self.loss_parameter)

    def _embed_quickly(self, rng: np.random.Generator, choices: str = "auto") -> answers.Embed:
        def embed(train: Comparisons, **other: Any) -> np.ndarray:
            settings = {"loss": self.loss_, "loss_parameter": self.loss_parameter_, "n_init": 1, "random_state": rng}
            trial = OrdinalEmbedding(**{**self.get_params(), **settings, **other})
            return trial.fit(train, choices=choices).embedding_

        return embed

    def _loss(self, n_components: int) -> OrdinalLoss:
        return get_loss(self.loss_, n_components, self.loss_parameter_)

    def _task(self, comparisons: Comparisons, rng: np.random.Generator) -> Task:
        return Task(comparisons, self.n_components_, self._loss(self.n_components_), self.solver, rng, current())

    def _generator(self) -> np.random.Generator:
        """A separate stream: data drawn with the same `random_state` would equal the start otherwise."""
        return np.random.default_rng([draw_seed(shared_generator(self.random_state)), 4])

    def _starts(self, comparisons: Comparisons, rng: np.random.Generator) -> list[np.ndarray]:
        solver = self.solver if comparisons.events is None else "l-bfgs"
        columns = count_dimensions(solver, self._loss(self.n_components_), self.n_components_)
        count = DEFAULTS.starts * (1 if columns > self.n_components_ else 2) if len(comparisons) <= DEFAULTS.few else 1
        count = count if self.n_init == "auto" else int(self.n_init)
        shape = comparisons.n_objects, columns
        return [rng.normal(0.0, self.scale, shape) for _ in range(count)]

    def _learn(self, comparisons: Comparisons, starts: list[np.ndarray], rng: np.random.Generator, run: Run) -> None:
        """Embed from the best of the starts, and set the fitted attributes."""
        X, solution = self._task(comparisons, rng).solve_best(starts, run)
        suspect = satisfied(X, comparisons.indices[:1000]).mean() < 0.7  # the exact test below sorts all answers
        if suspect and not net_votes(comparisons)[0].any():
            raise ValueError("every answer in comparisons is contradicted by another: they cancel out")
        self.embedding_: np.ndarray = principal_axes(X, answers.count_per_object(comparisons) > 0)
        self.objects_: np.ndarray = comparisons.objects
        self.comparisons_: Comparisons = replace(comparisons, annotators=None)
        self.objective_: float = solution.value
        self.n_iter_: int = solution.n_epochs
        self.status_: str = solution.status
        self.history_: list[Record] = solution.history
