"""Export an index into an engine: write, compare its answers with `nearkin search`, publish.

A target takes an index whole or not at all. Packages of other engines are loaded when a target needs them."""

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field
from importlib import import_module
from typing import Any, ClassVar

import numpy as np

from nearkin._check import check_choice, check_integer, check_real
from nearkin._fields import counted
from nearkin._types import ArrayLike, Record
from nearkin.contracts import Callback as Callback
from nearkin.export.source import Source
from nearkin.index import Index

TARGETS = {  # name -> (module, class); a module loads its engine's package when it is used
    "lance": ("lance", "Lance"),
    "pgvector": ("pgvector", "Pgvector"),
}
_ROUNDING = 1e-5  # relative: engines sum table entries in another order than FAISS
Search = Callable[[np.ndarray, int], np.ndarray]  # (questions, k) -> ids (q, k), nearest first, or fewer: -1 or ""


@dataclass(frozen=True)
class Check:
    """The outcome: `recall` of `queries` queries, k neighbours each, against `recall_target`."""

    queries: int
    k: int
    recall: float
    recall_target: float

    @property
    def passed(self) -> bool:
        return self.recall >= self.recall_target

    def __str__(self) -> str:
        return (
            f"{counted(self.queries, 'query', 'queries')}, recall@{self.k} {self.recall:.4f} of plain "
            f"FAISS's neighbours, target {self.recall_target:g}: {'passed' if self.passed else 'FAILED'}"
        )


class RecallTooLowError(RuntimeError):
    """The engine's recall is below the target: nothing was published. `check` has the recall."""

    def __init__(self, check: Check) -> None:
        super().__init__(f"self-check: {check}; nothing was published. A lower recall_target=... accepts it")
        self.check = check


@dataclass
class Written:
    """A written export before publication: its search, facts, and a second measure of its recall, or None."""

    search: Search
    facts: Record = field(default_factory=dict)
    judge: Source | None = None


class Target(ABC):
    """One engine. `recall_target` is what its self-check must reach: 1 where its search is exact."""

    recall_target: ClassVar[float] = 1.0

    @abstractmethod
    def writing(self, source: Source, callback: Callback) -> AbstractContextManager[Written]:
        """Write all vectors, yield them for the self-check, and publish when the block ends without an error.

        An error at any point (of ours, of the engine, of the network) leaves what was there before.
        `callback(rows, {"total": n})` follows the writing. Raises ValueError for an index that the engine cannot hold,
        or a place that holds something else; OSError where the engine cannot be reached.
        """


def make_target(to: str, /, **options: Any) -> Target:
    """The target of an export.

    Parameters
    ----------
    to: "lance" or "pgvector".
    options: those of `nearkin.export.lance.Lance` or `nearkin.export.pgvector.Pgvector`; None counts as not given.

    Returns
    -------
    target: `Target`.

    Examples
    --------
    >>> type(nk.export.make_target("pgvector", name="products")).__name__
    'Pgvector'
    """
    module, cls = TARGETS[check_choice(to, "to", TARGETS)]
    kind = getattr(import_module(f"nearkin.export.{module}"), cls)
    signature = inspect.signature(kind)
    try:
        bound = signature.bind(**{option: value for option, value in options.items() if value is not None})
    except TypeError as error:
        raise TypeError(f"{to} takes {[*signature.parameters]}: {error}".replace("'", "`")) from None
    return kind(**bound.arguments)


def padded_ids(found: list[list[Any]], k: int) -> np.ndarray:
    """Ids (q, k) of the vectors that an engine found for each query, -1 or "" where it found fewer than k."""
    missing = "" if any(isinstance(name, str) for names in found for name in names) else -1
    return np.array([names + [missing] * (k - len(names)) for names in found])


def export_index(
    index: Index,
    target: Target,
    *,
    queries: ArrayLike | None = None,
    k: int = 10,
    recall_target: float | None = None,
    callback: Callback = lambda rows, record: None,
) -> Record:
    """Write an index to an engine, compare the neighbours of queries, publish.

    Parameters
    ----------
    index: `Index` with vectors.
    target: of `make_target`.
    queries: (q, d); by default 100 queries near the vectors.
    k: neighbours compared.
    recall_target: the share of the index's k neighbours that the engine must name; None for the target's own.
    callback: `callback(vectors_done, record)`.

    Returns
    -------
    record: vectors, the outcome of the check, facts of the target.

    Raises
    ------
    RecallTooLowError: the engine's recall is below the target; nothing is published.
    ValueError: an index without vectors or of a kind that the target cannot hold, k below 1.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(300, 8)).astype(np.float32)
    >>> index = nk.Index.build(X, nk.ProductQuantizer(4, n_centroids=16, random_state=0))
    >>> record = nk.export.export_index(index, nk.export.make_target("lance", out="idx.lance"))  # doctest: +SKIP
    """
    goal = target.recall_target if recall_target is None else check_real(recall_target, "recall_target", low=0, high=1)
    k = check_integer(k, "k", low=1)
    source = Source(index)
    with target.writing(source, callback) as written:
        check = self_check(written.judge or source, written.search, goal, k=k, queries=queries)
        if not check.passed:
            raise RecallTooLowError(check)
    return {"rows": len(source), **asdict(check), "self_check": str(check), **written.facts}


def self_check(
    source: Source, search: Search, target: float, *, k: int = 10, queries: ArrayLike | None = None
) -> Check:
    """Compare the engine's answers with plain FAISS's on 100 questions, or on the vectors of `queries` (q, d). A
    neighbour counts if it is one of FAISS's k, or as near as the k-th by score or code. An id that is named twice, or
    is not in the index, is a miss."""
    asked = source.test_queries(100) if queries is None else source.engine_queries(queries)
    k = min(k, len(source))
    nearest = source.index.faiss_index.search(asked, k)[1]
    wanted = (nearest >= 0).sum(axis=1)
    hits = source.hits(asked, nearest, source.positions(search(asked, k)), _ROUNDING)
    recall = float((hits[wanted > 0] / wanted[wanted > 0]).mean()) if wanted.any() else 0.0
    return Check(len(asked), k, recall, target)
