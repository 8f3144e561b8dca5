"""The results of a search as a table: a row for each query and place, best first."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from nearkin._check import as_array, check_choice
from nearkin._faiss import answered

if TYPE_CHECKING:
    from narwhals.typing import IntoDataFrame


def long_form(queries: Any, scores: np.ndarray, ids: np.ndarray, *more: np.ndarray) -> list[np.ndarray]:
    """Queries, ranks from 1, ids, scores and what `more` holds, (rows,) each, of results (q, k); no empty places."""
    rows, places = np.nonzero(answered(scores))
    return [np.asarray(queries)[rows], places + 1, *(part[rows, places] for part in (ids, scores, *more))]


def hits(
    scores: np.ndarray, ids: np.ndarray, queries: Sequence[Any] | None = None, *, backend: str = "pyarrow"
) -> "IntoDataFrame":
    """The results of `Index.search` as a table: query, rank (from 1), id, score. Places without a result are left out.

    Parameters
    ----------
    scores, ids: (q, k), as `Index.search` returns them.
    queries: (q,) names of the queries; None for 0, 1, 2, ...
    backend: "pyarrow", "polars" or "pandas", the library of the table.

    Returns
    -------
    table: of that library.

    Raises
    ------
    ValueError: shapes that differ, an unknown backend.
    ImportError: a backend that is not installed.

    Examples
    --------
    >>> nk.hits(np.array([[0.0, np.inf]]), np.array([["a", ""]]), queries=["q7"]).to_pylist()
    [{'query': 'q7', 'rank': 1, 'id': 'a', 'score': 0.0}]
    """
    import narwhals as nw  # only where tables are made

    check_choice(backend, "backend", ("pyarrow", "polars", "pandas"))
    scores, ids = np.asarray(scores), as_array(ids, "ids")
    names = np.arange(len(ids)) if queries is None else as_array(queries, "queries")
    if ids.ndim != 2 or scores.shape != ids.shape or names.shape != ids.shape[:1]:
        raise ValueError(
            f"scores have shape {scores.shape}, ids {ids.shape} and queries {names.shape}; they must be (q, k), (q, k) "
            "and (q,): pass what `index.search` returned, and one name for each query"
        )
    columns = zip(("query", "rank", "id", "score"), long_form(names, scores, ids), strict=True)
    try:
        return nw.from_dict({name: column.tolist() for name, column in columns}, backend=cast(Any, backend)).to_native()
    except ModuleNotFoundError as error:
        raise ImportError(f"backend {backend!r} is not installed: pip install {backend}") from error
