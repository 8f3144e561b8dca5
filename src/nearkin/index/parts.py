"""The parts of an index: quantizer and FAISS index of a new one; those of a saved one, which must belong together.

scikit-learn is loaded where a quantizer is fitted: an index that is loaded and searched needs none."""

# pyright: reportMissingTypeStubs=false, reportUnknownVariableType=false

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar, cast

import faiss
import numpy as np

from nearkin._check import check_choice, check_integer, check_vectors, has_unit_rows
from nearkin._faiss import METRIC_TYPES, FaissIndex, innermost
from nearkin._fields import StrPath, counted
from nearkin._storage import (
    SavedArrays,
    pack_ids,
    read_arrays,
    read_config,
    read_saved,
    reading,
    saving_folder,
    unpack_ids,
    write_arrays,
)
from nearkin._types import Record, Seed
from nearkin.contracts import BitCodes, Quantizer, VectorCodes
from nearkin.hashing.bits import n_bytes
from nearkin.index import faiss_index, identifiers
from nearkin.index.faiss_index import METRICS, inverted_file
from nearkin.index.kept_vectors import KeptVectors
from nearkin.index.searching import normalised
from nearkin.linalg.norms import Norms

_MEASURED = 4_096  # rows of a chunk, at most, whose codes are decoded to measure errors
# change of the mean error of an index's codes, a share of it, above which added vectors are named: 233 of 244 sorted
# streams that lose 2 points of recall; 65 of 168 shuffled ones, 58 of which gain a point by a new index of all vectors
# (2026-11-29: product and axis codes, scalars and lists, 7 data sets, 2,600 vectors, a tenth to nine tenths first)
UNLIKE = 0.1
KINDS = {  # kind in config.json -> the class, or the reader of several classes
    "product quantizer": ("nearkin.quantization.product", "ProductQuantizer"),
    "axis quantizer": ("nearkin.quantization.axis", "AxisQuantizer"),
    "scalar quantizer": ("nearkin.quantization.scalar", "ScalarQuantizer"),
    "residual quantizer": ("nearkin.quantization.residual", "ResidualQuantizer"),
    "product residual quantizer": ("nearkin.quantization.residual", "ProductResidualQuantizer"),
    "hasher": ("nearkin.hashing.base", "load"),
}


def fitted(
    quantizer: Quantizer | int, X: np.ndarray, metric: str, random_state: Seed, *, norms: bool
) -> tuple[Quantizer, Norms | None]:
    """The quantizer, or its copy fitted on X, or the codec chosen for that many bytes, and the levels of norms that it
    chose; ValueError for one that was fitted on vectors of another norm. `norms`: an axis code may spend a byte."""
    from sklearn.base import clone
    from sklearn.exceptions import NotFittedError
    from sklearn.utils.validation import check_is_fitted

    from nearkin.quantization.axis import AxisQuantizer
    from nearkin.quantization.best import FEWEST, best

    if isinstance(quantizer, int | float):
        return best(X, quantizer, metric=metric, random_state=random_state)[:2]
    if isinstance(quantizer, type) or not hasattr(quantizer, "get_params"):
        raise TypeError(f"quantizer is {quantizer!r}; give bytes a vector, for example 16, or nk.ProductQuantizer(8)")
    try:
        check_is_fitted(quantizer)
    except NotFittedError:
        if norms and isinstance(quantizer, AxisQuantizer) and 1 < quantizer.n_bytes <= X.shape[1] and len(X) >= FEWEST:
            methods = "axes", "axes-norms"
            return best(X, quantizer.n_bytes, metric=metric, methods=methods, random_state=random_state)[:2]
        return cast(Quantizer, clone(quantizer)).fit(normalised(X) if metric == "cosine" else X), None
    if isinstance(quantizer, VectorCodes) and quantizer.normalized_ and metric != "cosine" and not has_unit_rows(X):
        raise ValueError(
            "quantizer was fitted on normalised vectors, and those of X have other norms; type metric='cosine', "
            "or give a quantizer that is not fitted"
        )
    return quantizer, None


def empty_faiss(d: int, quantizer: Quantizer | None, metric: str) -> FaissIndex:
    """An empty FAISS index for vectors of width d; ValueError or TypeError for a quantizer that does not fit them."""
    check_integer(d, "d", low=1)
    check_choice(metric, "metric", METRICS)
    if quantizer is None:
        if metric == "hamming":
            raise ValueError("metric='hamming' needs a quantizer that gives bits, for example nk.ITQ(n_bits=64)")
        return faiss.IndexFlatL2(d) if metric == "l2" else faiss.IndexFlatIP(d)  # the classes that FAISS reads back
    _check_quantizer(quantizer, type(quantizer).__name__, d, metric)
    if isinstance(quantizer, BitCodes):
        return faiss.IndexBinaryFlat(8 * n_bytes(quantizer.n_bits))
    # vectors of norm 1 have one order by all metrics: codes may be trained for another one
    by_distance = metric == "l2" or (metric == "cosine" and quantizer.ranks_by == ("l2",))  # type: ignore[attr-defined]
    return quantizer.to_faiss("l2" if by_distance else "ip")  # type: ignore[attr-defined]


def _check_quantizer(quantizer: Quantizer, name: str, d: int, metric: str) -> None:
    if not isinstance(quantizer, BitCodes | VectorCodes):
        raise TypeError(
            f"quantizer is a {name}; it must be a product quantizer, for example nk.ProductQuantizer(8), or a hasher"
        )
    if isinstance(quantizer, BitCodes) != (metric == "hamming"):
        gives, types = ("bits", "metric='hamming'") if metric != "hamming" else ("bytes", "metric='l2' or 'ip'")
        raise ValueError(f"metric is {metric!r}, and {name} gives {gives}; type {types}")
    if quantizer.n_features_in_ != d:
        raise ValueError(
            f"quantizer was fitted on {counted(quantizer.n_features_in_, 'column')}, and the index has {d}"
        )
    if metric == "cosine" and isinstance(quantizer, VectorCodes) and quantizer.normalized_ is False:
        raise ValueError(
            "metric='cosine' normalises vectors, and quantizer was fitted on others; fit it on "
            "X / np.linalg.norm(X, axis=1, keepdims=True), or give Index.build one that is not fitted"
        )


def encoded(rows: np.ndarray, inner: FaissIndex, quantizer: Quantizer | None) -> tuple[np.ndarray, float]:
    """The input of FAISS's index `inner` for rows (n, d): codes, or the rows themselves without a quantizer; and the
    total of the rows' distances from their decoded codes, by some of them; 0 for bits and rows."""
    if not isinstance(quantizer, VectorCodes):
        return np.ascontiguousarray(rows, np.float32) if quantizer is None else quantizer.encode(rows), 0.0
    codes, step = quantizer.faiss_codes(rows), -(-len(rows) // _MEASURED)
    errors = np.subtract(rows[::step], cast(faiss.Index, inner).sa_decode(codes[::step]), dtype=np.float64)
    return codes, len(rows) * float(np.linalg.norm(errors, axis=1).mean())


def unlike(errors: np.ndarray, inner: FaissIndex) -> list[str]:
    """A note if vectors added after an index was built changed the mean of its `errors`; none where errors before or
    since are not known, and for codes that are not trained.

    Codes have larger errors for vectors that they were not trained on, far larger for vectors of another kind or where
    few were trained on, and smaller ones for nearer vectors, whose neighbours are nearer too.
    """
    (n, built), (added, since) = errors.tolist()
    before, now = built / max(n, 1), (built + since) / max(n + added, 1)
    trained = faiss_index.trained_arrays(inner)
    if not n * trained.get("codebooks", trained.get("ranges", errors[:0])).size or abs(now - before) <= UNLIKE * before:
        return []
    return [
        f"{counted(int(added), 'vector')} added later changed the mean error of codes from {before:.3g} to {now:.3g}: "
        "they are unlike those that the codes were trained on, or these were few; build the index again from all"
    ]


@dataclass(frozen=True)
class SavedQuantizer:
    """A quantizer in its folder; `n_bits` is None for codes of bytes."""

    content: SavedArrays
    n_features_in_: int
    n_bits: int | None

    def open(self) -> Quantizer:
        """The fitted quantizer; ValueError where the folder's values do not make one."""
        module, name = KINDS[self.content.config["kind"]]
        maker = getattr(import_module(module), name)
        return maker(self.content) if name == "load" else maker.load(self.content)


def read_quantizer(path: StrPath) -> SavedQuantizer:
    """The content of a folder that a quantizer's `save` wrote; ValueError for a folder of another kind."""
    found = read_saved(path)
    check_choice(found.config["kind"], f"kind in {found.path / 'config.json'}", KINDS)
    with reading(found.path):
        d = check_integer(found.config["fitted"]["n_features_in_"], "n_features_in_", low=1)
        bits = found.config["params"]["n_bits"] if found.config["kind"] == "hasher" else None
        return SavedQuantizer(found, d, None if bits is None else check_integer(bits, "n_bits", low=1))


@dataclass(frozen=True)
class Parts:
    """The content of an index folder."""

    faiss_index: FaissIndex
    d: int
    metric: str
    quantizer: Quantizer | SavedQuantizer | None
    kept: KeptVectors | None
    ids: np.ndarray | None
    next_id: int | None
    norms: Norms | None
    errors: np.ndarray

    @property
    def bytes_per_vector(self) -> int:
        """Size of one vector's code and norm."""
        index = self.faiss_index
        code = index.d // 8 if isinstance(index, faiss.IndexBinary) else index.sa_code_size()
        return int(code) + (0 if self.norms is None else self.norms.n_bytes)


Made = TypeVar("Made")


def restored(made: Callable[..., Made], content: Record) -> Made:
    """The index of a content whose FAISS index is `packed`."""
    content["faiss_index"] = faiss_index.unpacked(*content["faiss_index"])
    return made(**content)


def write_parts(parts: Parts, path: StrPath, overwrite: bool) -> None:
    """Write the folder of an index, whole or not at all."""
    config: Record = {"metric": parts.metric, "n_features": parts.d, "n_rows": int(parts.faiss_index.ntotal)}
    config |= {} if parts.next_id is None else {"next_id": parts.next_id}
    config |= {"errors": parts.errors.tolist()} if parts.errors[:, 1].any() else {}
    with saving_folder(path, "index", config, overwrite) as folder:
        faiss_index.write_faiss(with_integer_ids(parts.faiss_index, parts.ids), folder / "index.faiss")
        arrays = {} if parts.ids is None else pack_ids("row", parts.ids)
        if (norms := parts.norms) is not None:
            arrays |= dict(zip(NORMS, (norms.codes, norms.levels, norms.centre), strict=True))
        write_arrays(folder / "arrays.safetensors", arrays)
        if (own := parts.quantizer) is not None:
            (own.open() if isinstance(own, SavedQuantizer) else own).save(folder / "quantizer")
        if parts.kept is not None:
            parts.kept.save(folder / "vectors.npy")


def check_mergeable(parts: Parts, others: Parts) -> None:
    """ValueError unless the vectors of `others` mean the same in the index of `parts`."""
    own, its = (
        {"metric": one.metric, "columns": one.d, "kind": type(innermost(one.faiss_index)).__name__}
        for one in (parts, others)
    )
    if own != its:
        raise ValueError(f"an index of {its} cannot be merged into one of {own}; these must be the same")
    if isinstance(parts.quantizer, BitCodes) and isinstance(others.quantizer, BitCodes):
        probes = np.random.default_rng(0).normal(size=(8, parts.d))
        same = np.array_equal(parts.quantizer.project(probes), others.quantizer.project(probes))
    else:
        same = faiss_index.same_codes(parts.faiss_index, others.faiss_index)
        same &= parts.bytes_per_vector == others.bytes_per_vector
        if parts.norms is not None and others.norms is not None and parts.norms.n_bytes:
            same &= parts.norms.same(others.norms)
    if not same:
        raise ValueError("indexes of different quantizers cannot be merged; build both with the same fitted quantizer")


def read_parts(path: Path) -> Parts:
    """The parts of a folder; ValueError where one is damaged or is of another index."""
    config = read_config(path, "index")
    try:
        metric = check_choice(config["metric"], "metric", METRICS)
        d, n_rows = (check_integer(config[name], name, low=low) for name, low in (("n_features", 1), ("n_rows", 0)))
        next_id = None if "next_id" not in config else check_integer(config["next_id"], "next_id", low=n_rows)
        errors = np.reshape(check_vectors(config.get("errors", np.zeros((2, 2))), name="errors", exact=True), (2, 2))
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path / 'config.json'} cannot be that of an index ({error}); it is damaged") from error
    arrays, ids = read_arrays(path / "arrays.safetensors"), None
    try:
        norms = saved_norms(arrays, (n_rows, d)) if NORMS[0] in arrays else None
        if arrays:
            ids = identifiers.given_ids(unpack_ids("row", arrays), n_rows)
    except (KeyError, IndexError, TypeError, ValueError) as error:
        text = f"{path / 'arrays.safetensors'} lacks the ids of the vectors or their norms ({error}); it is damaged"
        raise ValueError(text) from error
    inner = faiss_index.read_faiss(path / "index.faiss", ids, binary=metric == "hamming")
    if inner.ntotal != n_rows:
        raise ValueError(f"{path} holds {counted(inner.ntotal, 'vector')}, config.json lists {n_rows}; it is damaged")
    quantizer = read_quantizer(path / "quantizer") if (path / "quantizer").exists() else None
    _check_together(path, inner, d, metric, quantizer)
    kept = KeptVectors.load(file, n_rows, d) if (file := path / "vectors.npy").exists() else None
    return Parts(inner, d, metric, quantizer, kept, ids, next_id, norms, errors)


NORMS = ("norm_codes", "norm_levels", "norm_centre")  # arrays of a folder


def read_norms(path: StrPath) -> Norms | None:
    """The levels of a byte of norm in the folder of an index; None without such a byte, and in that of a quantizer."""
    found = read_saved(path)
    if found.config["kind"] != "index" or NORMS[0] not in found.arrays:
        return None
    rows = int(found.config["n_rows"]), int(found.config["n_features"])
    with reading(found.path):
        norms = saved_norms(found.arrays, rows).alone()
        return norms if norms.n_bytes else None


def saved_norms(arrays: dict[str, np.ndarray], shape: tuple[int, int]) -> Norms:
    """The norms of `shape` rows and columns, taken out of `arrays`; ValueError or KeyError for others."""
    codes, levels, centre = map(arrays.pop, NORMS)
    return Norms.checked(centre, levels, codes, shape)


def _check_together(path: Path, inner: FaissIndex, d: int, metric: str, quantizer: SavedQuantizer | None) -> None:
    bits = None if quantizer is None else quantizer.n_bits
    if metric == "hamming":
        fits = bits is not None and inner.d == 8 * n_bytes(bits)
    else:
        expected = METRIC_TYPES.values() if metric == "cosine" else [METRIC_TYPES[metric]]
        exact = isinstance(innermost(inner), faiss.IndexFlat)
        known = quantizer is None if exact else quantizer is not None and bits is None
        fits = inner.d == d and inner.metric_type in expected and known
        fits = fits and (quantizer is None or faiss_index.codes_belong(inner, quantizer.content.arrays))
    if not fits or (quantizer is not None and quantizer.n_features_in_ != d):
        raise ValueError(
            f"{path} has an index.faiss and a quantizer that do not belong to each other or to metric {metric!r} and "
            f"{counted(d, 'column')}; the folder is damaged or mixed from two"
        )


def with_integer_ids(inner: FaissIndex, ids: np.ndarray | None) -> FaissIndex:
    """The FAISS index, under the users' ids if these are integers: in its inverted lists, as FAISS writes them, or in a
    map. A list has no place for negative ids: -1 means none."""
    if ids is None or ids.dtype.kind != "i":
        return inner
    if inverted_file(inner) is not None and len(ids) and ids.min() >= 0:
        copied = faiss.clone_index(cast(faiss.Index, inner))
        faiss_index.renumber(copied, lambda numbers: ids[numbers])
        return copied
    if isinstance(inner, faiss.IndexBinary):  # a map needs an empty index at first: a stand-in, then the real one
        wrapped: Any = faiss.IndexBinaryIDMap2(faiss.IndexBinaryFlat(inner.d))
    else:
        wrapped = faiss.IndexIDMap2(faiss.IndexFlat(inner.d, inner.metric_type))
    wrapped.index = inner
    faiss.copy_array_to_vector(ids, wrapped.id_map)
    wrapped.ntotal = inner.ntotal
    return wrapped
