"""Every public name with hostile arguments: an answer, or a ValueError or TypeError with a text.

A good call of a name is put together from its signature: `GOOD` has a value for each name of a parameter, `OWN` what
differs for single names, `USES` what is done with an object once it is made, and `NOT` says why a name is not called.
Hypothesis then draws one parameter or two and puts something else there, from `VALUES`.
"""

import importlib
import inspect
import types
import warnings
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as seeded
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import nearkin as nk
from nearkin.quantization.best import HASHERS
from tests.faults.child import Fault

PACKAGES = (
    *("data", "embedding", "export", "hashing", "index", "linalg", "metrics", "orthogonal", "plots"),
    *("quantization", "report", "solvers"),
)
EXAMPLES = 20  # calls of a case
_ALL = list(HealthCheck)
_rng = np.random.default_rng(0)
X = _rng.normal(size=(40, 4)).astype(np.float32)
IDS = np.tile(np.arange(6), (6, 1))
BITS = np.array([[1, 2], [3, 4], [5, 6]], np.uint8)
TRIPLETS = np.array([[0, 1, 2], [2, 0, 1], [1, 2, 0]] * 4)

HOSTILE: tuple[Any, ...] = (
    *(None, True, 0, 1, -1, 2, 10**7, 2**63, 10**39, 10**400, -0.0, 0.5, 1e308, float("nan"), float("inf")),
    *("", "x", "l2", b"x"),
    *([], [1], [[1], [2, 3]], {}, {"a": 1}, object(), (), set(), lambda: None, range(3), 1j, "a\0b", "\ud800"),
    *(np.zeros(0), np.zeros((0, 4)), np.zeros((4, 0)), np.zeros((2, 3, 4)), np.array(3.0), np.array(["a", "b"])),
    *(np.full((6, 4), np.nan), np.full((6, 4), np.inf), np.full((6, 4), 1e300), np.full((6, 4), 3e38, np.float32)),
    *(np.array([None, 1], object), np.ones((6, 4), complex), np.ones((6, 4), bool), np.ones((6, 4), np.uint8)),
    *(np.full((6, 4), -(2**62)), np.full((6, 2), 10**7), np.ones((12, 8), np.float16)[::2, ::2], np.eye(4)[:, ::-1]),
    *(np.ma.masked_array([1.0, 2]), np.zeros(3, "M8[s]"), np.zeros(2, [("a", int)])),
    *(torch.eye(4, dtype=torch.bfloat16), torch.empty(4, 4, device="meta"), torch.full((4, 4), torch.nan)),
    *(torch.tensor(0.5), torch.eye(4, requires_grad=True), torch.empty((), device="meta"), "cuda:x"),
)
_SHAPES = hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=6)
VALUES = st.one_of(
    st.sampled_from(HOSTILE),
    st.integers(),
    st.floats(),
    st.text(max_size=5),
    st.lists(st.integers(-3, 10), max_size=5),
    hnp.arrays(st.sampled_from(["f4", "f8", "i8", "i4", "u1", "b1"]), _SHAPES),
)


def interactions(**options: Any) -> nk.Interactions:
    users, items = np.arange(60) % 12, (np.arange(60) * 7) % 9
    return nk.Interactions.from_pairs(users, items, timestamps=np.arange(60), **options)


def comparisons() -> nk.Comparisons:
    return nk.Comparisons(TRIPLETS, np.arange(3))


GOOD: dict[str, Callable[[], Any]] = {
    **dict.fromkeys(("X", "Q", "left", "right", "queries", "database"), lambda: X),
    **dict.fromkeys(("retrieved", "relevant", "ids", "ranked", "neighbors", "retrieved_labels"), lambda: IDS),
    "reconstructed": lambda: X + 1,
    **dict.fromkeys(("k", "n", "n_bits", "n_bytes", "n_features", "n_test", "n_first", "n_terms", "dim"), lambda: 4),
    **dict.fromkeys(("lr", "step", "share", "best_scale", "bytes_per_vector"), lambda: 0.5),
    **dict.fromkeys(("interactions", "observed", "seen"), interactions),
    **dict.fromkeys(("train", "valid", "test"), interactions),
    **dict.fromkeys(("title", "name", "body", "ylabel", "xlabel"), lambda: "a"),
    "comparisons": comparisons,
    "indices": lambda: TRIPLETS,
    "rows": lambda: np.array(list("abc"))[TRIPLETS],
    "W": lambda: np.abs(X[:4] @ X[:4].T),
    "G": lambda: np.eye(4),
    "R": lambda: np.eye(4),
    "pairs": lambda: [[0, 1]],
    "theta": lambda: [0.1],
    "y": lambda: np.arange(9) % 3,
    "n_comparisons": lambda: 10,
    "labels": lambda: np.arange(6),
    "path": lambda: "missing.npy",
    "source": lambda: "missing.csv",
    "items": lambda: list("abcde"),
    "curves": lambda: {"a": {1: 0.5, 2: 0.25}},
    "series": lambda: {"a": {1: 0.5, 2: 0.25}},
}
_BITS = {"queries": lambda: BITS, "database": lambda: BITS}
_LABELLED = _BITS | {"query_labels": lambda: np.arange(3), "database_labels": lambda: np.arange(3)}
_PARAMS = {"params": lambda: [torch.nn.Parameter(torch.eye(4))]}
_RATERS = np.repeat(np.arange(6), len(TRIPLETS))
_PRODUCT = {"n_centroids": lambda: 4, "max_iter": lambda: 1}
OWN: dict[str, dict[str, Callable[[], Any]]] = {
    "Comparisons": {"indices": lambda: TRIPLETS, "objects": lambda: np.arange(3)},
    "hamming_radius_precision": _LABELLED,
    "BlockRotation": {"d": lambda: 4, "block_size": lambda: 2},
    **dict.fromkeys(("GivensDescent", "RiemannianDescent", "StochasticFlow", "orthogonal_optimizer"), _PARAMS),
    "knn_recall": {"Q": lambda: X[:6]},
    "without_self": {"own": lambda: np.arange(6), "of": lambda: None},
    "triplet_error": {"comparisons": lambda: TRIPLETS},
    "list_metrics": {"ranked": lambda: np.tile(np.arange(4), (12, 1)), "relevant": interactions, "k": lambda: (2,)},
    "ranking_metrics": {"left": lambda: X[:12], "right": lambda: X[:9], "relevant": interactions, "k": lambda: (2,)},
    "recommend": {"left": lambda: X[:12], "right": lambda: X[:9], "seen": interactions},
    "compare_groups": {
        "comparisons": lambda: nk.Comparisons(np.tile(TRIPLETS, (6, 1)), np.arange(3), annotators=_RATERS),
        "groups": lambda: {rater: rater % 2 for rater in range(6)},
        "n_permutations": lambda: 19,
        "n_components": lambda: 1,
    },
    "OrdinalEmbedding": {"max_iter": lambda: 2, "n_init": lambda: 1, "solver": lambda: "gd"},
    "TwoTower": {"n_components": lambda: 2},
    "ProductQuantizer": _PRODUCT | {"n_subspaces": lambda: 2},
    "ProductResidualQuantizer": _PRODUCT | {"n_codebooks": lambda: 1, "n_splits": lambda: 2},
    "AxisQuantizer": {"n_bytes": lambda: 2},
    "SemanticIds": {"levels": lambda: 2, "codes": lambda: 8},
    "ResidualQuantizer": _PRODUCT | {"n_codebooks": lambda: 2},
    **{name: {"n_bits": lambda: 2} for name in HASHERS.values()},
    "average_precision": {"hits": lambda: IDS > 2},
    "hits": {"scores": lambda: IDS / 2, "queries": lambda: list("abcdef")},
    "unpack_signs": {"codes": lambda: BITS},
    "prefix_cooccurrence": {"codes": lambda: np.arange(18).reshape(9, 2)},
    "split_given": {"interactions": lambda: interactions(split=np.arange(60) % 3)},
    "plot_convergence": {"curves": lambda: {"a": [1.0, 0.5]}},
    "plot_map": {"X": lambda: X[:, :2]},
    "is_orthogonal": {"X": lambda: torch.eye(4)},
    "random_matching": {"generator": lambda: None},
    "find_method": {"name": lambda: "none"},
}
WORK = (  # what a number above 50 would only make take longer
    *("n_permutations", "max_iter", "n_init", "n_samples", "n_inner", "n_comparisons", "n_repeats", "n_queries"),
    *("rank", "seconds", "cg_steps", "m", "n", "n_bits", "n_features", "n_components", "pairs_per_row", "powers"),
    *("n_blocks", "multiples", "n_matchings"),
)

NOT = {
    "a record, made by nearkin itself": (
        "Parts VectorFile Snapshot Solution Check Source AllPairsPoint Plain "
        "RowScaled VarianceReduced RecallTooLowError Page Section"
    ),
    "a protocol": "Target Objective Solver FiniteSum",
    "functions of torch or of users as arguments": (
        "MixedOptimizer orthogonal_ orthogonal_parametrization to_svg AllPairsLoss IndexingLayer optimizers"
    ),
    "no function, or one without arguments": "TARGETS show_versions",
    "a whole job: the commands try it": "BatchEncoder join_processes export_index make_target best",
    "reads files: the readers try it": "load describe text_options",
}


BY_METHODS = ("Index", "Interactions")  # of which `calls` names what takes users' values


def public() -> dict[str, Any]:
    """Every public name and what it stands for, each thing once."""
    found = {
        name: getattr(nk, name) for name in nk.__all__ if not isinstance(getattr(nk, name), types.ModuleType | str)
    }
    for package in PACKAGES:
        module = importlib.import_module(f"nearkin.{package}")
        for name in getattr(module, "__all__", None) or vars(module):
            value = getattr(module, name)
            ours = getattr(value, "__module__", "").startswith("nearkin.") or name.isupper()
            if not name.startswith("_") and ours and not any(value is other for other in found.values()):
                found[name if name not in found else f"{package}.{name}"] = value
    return found


def _unknown() -> None:
    """Stands for a parameter that `GOOD` does not know: the good call fails, and a test with it."""


class Call:
    """A function, good arguments by name, and what is done with its answer."""

    def __init__(self, name: str, function: Callable[..., Any], **own: Callable[[], Any]) -> None:
        self.name, self.function = name, function
        parameters = inspect.signature(function).parameters.values()
        many = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
        self.names = [p.name for p in parameters if p.kind not in many]
        needed = [p.name for p in parameters if p.default is p.empty and p.kind not in many]
        own = OWN.get(name.rpartition(".")[2], {}) | own
        self.good = {name: own.get(name) or GOOD.get(name, _unknown) for name in (*needed, *own)}

    def __call__(self, **instead: Any) -> None:
        made = self.function(**{name: value() for name, value in self.good.items()} | instead)
        if isinstance(self.function, type):
            _use(made)


def _use(made: Any) -> None:
    """What an object is there for."""
    if isinstance(made, torch.optim.Optimizer):
        for group in made.param_groups:
            for p in group["params"]:
                p.grad = torch.ones_like(p)
        made.step()
    elif isinstance(made, nk.TwoTower):
        made.fit(interactions())
    elif isinstance(made, nk.OrdinalEmbedding):
        made.fit(TRIPLETS)
    elif isinstance(made, nk.Bridge):
        made.fit(X, X).transform(X)
    elif hasattr(made, "fit"):
        made.fit(X).transform(X)


@cache
def calls() -> list[Call]:
    """Every public name that is called, and the methods that take users' values."""
    left_out = [*BY_METHODS, *" ".join(NOT.values()).split()]
    found = [Call(name, value) for name, value in public().items() if name not in left_out]
    index = nk.Index.build(X, keep_vectors=True)
    coder = nk.ProductQuantizer(2, 8, rotation=None, max_iter=1, random_state=0).fit(X)
    bits, one = nk.RandomHyperplanes(8, random_state=0).fit(X), lambda: X[:2]

    def named() -> nk.Index:
        return nk.Index.build(X, ids=range(40))

    return [
        *found,
        Call("Index.build", nk.Index.build),
        Call("Index.search", index.search, Q=one, oversample=lambda: 2),
        Call("Index.add", lambda X, ids: named().add(X, ids), X=one, ids=lambda: [50, 51]),
        Call("Index.remove", lambda ids: named().remove(ids), ids=lambda: [3, 4]),
        Call("Index.update", lambda ids, X: named().update(ids, X), X=one, ids=lambda: [3, 4]),
        Call("Index.load", nk.Index.load),
        Call("ProductQuantizer.encode", coder.encode),
        Call("ProductQuantizer.decode", coder.decode, codes=lambda: coder.encode(X)),
        Call("ProductQuantizer.fit", lambda X: nk.ProductQuantizer(2, 4, max_iter=1).fit(X)),
        Call("RandomHyperplanes.encode", bits.encode),
        Call(
            "Interactions.from_pairs", nk.Interactions.from_pairs, left=lambda: list("aab"), right=lambda: list("xyx")
        ),
        Call(
            "OrdinalEmbedding.fit",
            nk.OrdinalEmbedding(max_iter=2, n_init=1, solver="gd").fit,
            comparisons=lambda: TRIPLETS,
        ),
        Call("TwoTower.fit", lambda interactions: nk.TwoTower(2).fit(interactions)),
    ]


def prepare(folder: Path) -> None:
    """Let numba compile what it compiles at first use: that is no hang."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for call in calls():
            with suppress(FileNotFoundError, ValueError):
                call()


def case(number: int, seed: int, folder: Path) -> str:
    """Twenty calls of one name, drawn by Hypothesis; "other": at least one was answered."""
    call, answered = calls()[number % len(calls())], []

    @seeded(seed * 1_000_003 + number)
    @settings(max_examples=EXAMPLES, database=None, deadline=None, phases=[Phase.generate], suppress_health_check=_ALL)
    @given(st.lists(st.sampled_from(call.names), min_size=1, max_size=2, unique=True).flatmap(_instead))
    def try_it(instead: dict[str, Any]) -> None:
        answered.append(attempt(call, instead))

    try_it()
    if not any(answered):
        raise ValueError(call.name)
    return "other"


def _instead(names: list[str]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(dict.fromkeys(names, VALUES))


def attempt(call: Call, instead: dict[str, Any]) -> bool:
    """Whether the call was answered; Fault for what is neither an answer nor a clean error."""
    instead = {name: _bounded(name, value) for name, value in instead.items()}
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            call(**instead)
        except (ValueError, TypeError, FileNotFoundError, MemoryError) as error:
            if not str(error):
                raise Fault(f"{call.name}{_shown(instead)}: an error without a text") from error
            return False
        except Exception as error:
            raise Fault(f"{call.name}{_shown(instead)}: {type(error).__name__}: {error}") from error
    return True


def _bounded(name: str, value: Any) -> Any:
    """No more work than is asked for on purpose: a million iterations, or tables of a million columns that memory may
    hold, are no hang."""
    much = isinstance(value, int | float) and value > 50
    return 3 if much and (name in WORK or (name == "k" and value < 2**60)) else value


def _shown(instead: dict[str, Any]) -> str:
    parts = [f"{n}={v.dtype}{v.shape}" if isinstance(v, np.ndarray) else f"{n}={v!r:.40}" for n, v in instead.items()]
    return f"({', '.join(parts)})"
