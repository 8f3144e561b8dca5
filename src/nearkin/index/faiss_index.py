"""The FAISS index inside an `Index`: its file, and its vectors by position.

FAISS (from 1.14.2 on) compares lengths while it reads. Two checks are left to `read_faiss`: `check_file` before, and
afterwards whether the parts contradict each other, so that a search would read outside its memory.

Positions count vectors in the order in which they were added. Inverted lists of FAISS store positions, so they are
renumbered after a removal."""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportAttributeAccessIssue=false

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast

import faiss
import numpy as np

from nearkin._exact import nearest
from nearkin._faiss import FaissIndex, innermost
from nearkin._fields import counted
from nearkin._storage import open_file
from nearkin.index.faiss_file import check_file, need
from nearkin.index.guard import alone
from nearkin.index.identifiers import RowIds

_MAP_HEADS = {b"IxM2": 37, b"IBM2": 25}  # bytes before the index in a map of ids
METRICS = ("l2", "ip", "cosine", "hamming")  # metrics of an index


def read_faiss(path: Path, ids: np.ndarray | None = None, *, binary: bool = False) -> FaissIndex:
    """The FAISS index in a file, by positions; `binary` is for packed bits. Integer `ids` (n,) are in a map around the
    index, which is left out, or in its inverted lists, which must name each vector once."""
    with open_file(path) as file:
        try:
            check_file(file)
            map_head = _MAP_HEADS.get(file.read(4), 0)
            file.seek(map_head)
            reader = faiss.PyCallbackIOReader(file.read)
            read = faiss.read_index_binary if binary else faiss.read_index
            # tables are made when the sizes that they depend on are checked
            found = read(reader, faiss.IO_FLAG_SKIP_PRECOMPUTE_TABLE)
            check_parts(found, None if map_head else ids)
            mapped = np.frombuffer(file.read(), "<i8")[1:]  # behind their number
            need(not map_head or np.array_equal(mapped, cast(np.ndarray, ids)), "it has other ids than the vectors")
        except (ValueError, RuntimeError) as error:
            what = re.split(r"\.cpp:\d+: (?:Error: )?", str(error))[-1][:200]  # FAISS begins with places in its source
            raise ValueError(
                f"{path} cannot be read as nearkin's index of {'bits' if binary else 'vectors'} ({what}); the file is "
                "damaged or of another program"
            ) from error
    if (lists := inverted_file(found)) is not None:
        lists.nprobe = min(lists.nprobe, lists.nlist)  # a fast scan allocates memory for each
        lists.set_direct_map_type(faiss.DirectMap.NoMap)  # a map of rows is made again when it is needed
        if isinstance(lists, faiss.IndexIVFPQ):
            lists.precompute_table()
    return found


def write_faiss(index: FaissIndex, path: Path) -> None:
    """Write a FAISS index, of floats or of bits; OSError where the disk is full."""
    with path.open("wb") as file:
        write: Any = faiss.write_index_binary if isinstance(index, faiss.IndexBinary) else faiss.write_index
        write(index, faiss.PyCallbackIOWriter(file.write))


def packed(index: FaissIndex) -> tuple[bool, bytes]:
    """A FAISS index as bytes, and whether it is of bits. FAISS's own classes of bits cannot be pickled."""
    binary = isinstance(index, faiss.IndexBinary)
    return binary, cast(Any, faiss.serialize_index_binary if binary else faiss.serialize_index)(index).tobytes()


def unpacked(binary: bool, content: bytes) -> FaissIndex:
    """The index that `packed` packed."""
    return (faiss.deserialize_index_binary if binary else faiss.deserialize_index)(np.frombuffer(content, np.uint8))


def inverted_file(index: FaissIndex) -> faiss.IndexIVF | None:
    """The inverted file inside an index of floats, or None."""
    inner = innermost(index)
    return inner if isinstance(inner, faiss.IndexIVF) else None


def check_parts(index: FaissIndex, ids: np.ndarray | None = None) -> None:
    """ValueError unless the parts of an index agree, so far as FAISS has not compared them. Inverted lists of integer
    `ids` become lists of positions."""
    if isinstance(index, faiss.IndexBinary):
        return
    rows, part = index.ntotal, cast(Any, faiss.downcast_index(index))
    if isinstance(part, faiss.IndexPreTransform):
        turn: Any = faiss.downcast_VectorTransform(part.chain.at(0))
        part = faiss.downcast_index(part.index)
        sizes = index.d * part.d, part.d * turn.have_bias
        need((turn.A.size(), turn.b.size()) == sizes and part.d >= index.d, "its rotation is of another size")
    need(part.is_trained and part.ntotal == rows, "it is not trained, or counts other vectors than its parts")
    if isinstance(part, faiss.IndexIVF):
        _check_lists(part, None if ids is None or ids.dtype.kind != "i" else ids)
    else:
        need(part.codes.size() == rows * part.code_size, f"{rows} vectors have {part.codes.size()} bytes of codes")


def _check_lists(index: Any, own: np.ndarray | None) -> None:
    """Every row is in one list, and the lists are as wide as the codes; those of `own` ids get positions."""
    coarse: Any = faiss.downcast_index(index.quantizer)
    lists: Any = faiss.downcast_InvertedLists(index.invlists)
    need((coarse.ntotal, coarse.d) == (index.nlist, index.d), "it has other lists")
    need(bool(np.isfinite(byte_codes(coarse).view(np.float32)).all()), "the middle of a list is no number")
    need(index.by_residual, "its lists hold other codes")
    sizes = [lists.list_size(number) for number in range(index.nlist)]
    need(sum(sizes) == index.ntotal, f"its lists have {counted(sum(sizes), 'vector')}, not {index.ntotal}")
    if own is not None:
        renumber(index, RowIds(own, len(own)).positions)
    seen = np.zeros(index.ntotal, bool)
    for number in np.flatnonzero(sizes).tolist():
        ids = faiss.rev_swig_ptr(lists.get_ids(number), sizes[number])
        need(bool(((ids >= 0) & (ids < len(seen))).all()), "a list names a vector that does not exist")
        seen[ids] = True
    need(bool(seen.all()), "a vector is in two lists")


def flat_codes(index: FaissIndex) -> np.ndarray:
    """Codes (n, bytes) of an index of bits: FAISS's own memory, not a copy."""
    width = index.d // 8
    return faiss.rev_swig_ptr(cast(faiss.IndexBinaryFlat, index).xb.data(), index.ntotal * width).reshape(-1, width)


def codes_of_list(
    inner: faiss.IndexIVF, number: int, places: np.ndarray | slice = slice(None)
) -> tuple[np.ndarray, np.ndarray]:
    """Codes (n, bytes) of the rows at some places of a list, and their positions (n,)."""
    size = inner.invlists.list_size(number)
    codes = faiss.rev_swig_ptr(inner.invlists.get_codes(number), size * inner.code_size).reshape(size, inner.code_size)
    return codes[places], faiss.rev_swig_ptr(inner.invlists.get_ids(number), size)[places]


def codes_at(inner: faiss.IndexIVF, places: np.ndarray) -> np.ndarray:
    """Codes (m, bytes), without the list's number, of the rows at these lists and places in them (m, 2)."""
    order, parts = np.argsort(places[:, 0], kind="stable"), list[np.ndarray]()
    for group in np.split(order, np.flatnonzero(np.diff(places[order, 0])) + 1) if len(order) else []:
        parts.append(codes_of_list(inner, int(places[group[0], 0]), places[group, 1])[0])
    codes = np.concatenate(parts) if parts else np.empty((0, inner.code_size), np.uint8)
    return codes[np.argsort(order)]


def places_in_lists(inner: faiss.IndexIVF) -> np.ndarray:
    """List and place in the list (n, 2) int32 of every row."""
    places = np.zeros((inner.ntotal, 2), np.int32)
    for number in range(inner.nlist):
        if size := inner.invlists.list_size(number):
            ids = faiss.rev_swig_ptr(inner.invlists.get_ids(number), size)
            places[ids, 0], places[ids, 1] = number, np.arange(size)
    return places


def search_lists(
    inner: faiss.IndexIVF, Q: np.ndarray, k: int, near: np.ndarray, lists: np.ndarray, **how: Any
) -> tuple[np.ndarray, np.ndarray]:
    """FAISS's scores and positions (q, k) in these lists (q, p), -1 for none, at these distances (q, p)."""
    best, some = faiss.ResultHeap(len(Q), k), faiss.SearchParametersIVF(nprobe=lists.shape[1], **how)
    asked, given, away, scores, ids = map(faiss.swig_ptr, (Q, lists, near, best.D, best.I))
    inner.search_preassigned_c(len(Q), asked, k, given, away, scores, ids, False, some)
    return best.D, best.I


def cut(index: FaissIndex, n_rows: int) -> None:
    """Leave the first `n_rows` vectors."""
    if innermost(index).ntotal > n_rows:
        _remove(index, faiss.IDSelectorRange(n_rows, np.iinfo(np.int64).max))


def remove(index: FaissIndex, positions: np.ndarray) -> None:
    """Take out the vectors at sorted `positions` (m,); those behind them move up."""
    bitmap = np.zeros(-(-index.ntotal // 8), np.uint8)
    np.bitwise_or.at(bitmap, positions >> 3, np.left_shift(1, positions & 7).astype(np.uint8))
    _remove(index, faiss.IDSelectorBitmap(index.ntotal, faiss.swig_ptr(bitmap)))
    renumber(index, lambda numbers: numbers - np.searchsorted(positions, numbers))


def renumber(index: FaissIndex, new: Callable[[np.ndarray], np.ndarray]) -> None:
    """Change the numbers of the rows (m,) in every inverted list, if the index has lists."""
    if (lists := inverted_file(index)) is None:
        return
    lists.set_direct_map_type(faiss.DirectMap.NoMap)  # it is made again when needed
    for number in range(lists.nlist):
        if size := lists.invlists.list_size(number):
            numbers = faiss.rev_swig_ptr(lists.invlists.get_ids(number), size)
            numbers[:] = new(numbers)


def _remove(index: FaissIndex, selector: faiss.IDSelector) -> None:
    if (lists := inverted_file(index)) is not None:
        lists.set_direct_map_type(faiss.DirectMap.NoMap)  # it is made again when needed
    index.remove_ids(selector)
    index.ntotal = innermost(index).ntotal


def stored(index: FaissIndex) -> np.ndarray:
    """What was added for the vectors of an index, in their order: codes (n, bytes), or the rows of an exact one."""
    inner = innermost(index)
    if isinstance(inner, faiss.IndexBinary):
        return flat_codes(inner).copy()
    if isinstance(inner, faiss.IndexIVF):
        places, width = places_in_lists(inner), inner.coarse_code_size()
        lists = np.ascontiguousarray(places[:, :1], "<u4").view(np.uint8)[:, :width]
        return np.hstack([lists, codes_at(inner, places)])
    codes = byte_codes(inner).copy()
    return codes.view(np.float32) if isinstance(inner, faiss.IndexFlat) else codes


def same_codes(one: FaissIndex, other: FaissIndex) -> bool:
    """Whether two indexes of floats trained the same: a code means the same vector in both."""
    mine, theirs = trained_arrays(one), trained_arrays(other)
    return mine.keys() == theirs.keys() and all(
        (_close if name == "lists" else _equal)(array, theirs[name]) for name, array in mine.items()
    )


def trained_arrays(index: FaissIndex) -> dict[str, np.ndarray]:
    """The arrays that FAISS trained and decodes with: "rotation" (d', d), "bias" (d',), "lists" (L, d') and the flat
    "codebooks" or "ranges", those of them that the index has."""
    found: dict[str, np.ndarray] = {}
    inner, lists = cast(Any, innermost(index)), inverted_file(index)
    index = index if isinstance(index, faiss.IndexBinary) else faiss.downcast_index(index)
    if isinstance(index, faiss.IndexPreTransform):
        turn = cast(faiss.LinearTransform, faiss.downcast_VectorTransform(index.chain.at(0)))
        found["rotation"] = faiss.vector_to_array(turn.A).reshape(turn.d_out, turn.d_in)
        if turn.have_bias:
            found["bias"] = faiss.vector_to_array(turn.b)
    if lists is not None:
        found["lists"] = lists.quantizer.reconstruct_n(0, lists.nlist)
    if hasattr(inner, "pq"):
        found["codebooks"] = faiss.vector_to_array(inner.pq.centroids)
    elif hasattr(inner, "aq"):
        found["codebooks"] = faiss.vector_to_array(inner.aq.codebooks)
    elif hasattr(inner, "sq"):
        found["ranges"] = faiss.vector_to_array(inner.sq.trained)
    return found


def codes_belong(index: FaissIndex, saved: Mapping[str, np.ndarray]) -> bool:
    """Whether the FAISS index was made by the quantizer whose saved arrays are given. Lists' centroids and the first
    codebook of residual codes are compared in number only: the index holds them rotated or shifted."""
    trained = trained_arrays(index)
    codebooks, coarse = saved.get("codebooks_"), saved.get("coarse_centroids_")
    if (0 if coarse is None else len(coarse)) != len(trained.get("lists", ())):
        return False
    if "rotation" in trained and not _equal(trained["rotation"].T, saved.get("rotation_")):
        return False
    if codebooks is None:
        scale = saved.get("scale_", np.empty(0))
        return "codebooks" not in trained and _equal(trained.get("ranges"), scale.ravel())
    if "codebooks" not in trained or hasattr(innermost(index), "pq") != (codebooks.ndim == 3):
        return False
    if codebooks.ndim == 3:  # product codes, whose centroids FAISS fills up to a power of two
        M, K, width = codebooks.shape
        pq, shift = cast(faiss.IndexPQ, innermost(index)).pq, trained.get("bias", np.zeros(width, np.float32))
        return (
            (pq.M, pq.dsub) == (M, width)
            and K <= pq.ksub < 2 * K
            and _equal(trained["codebooks"].reshape(M, -1, width)[:, :K], codebooks + shift.reshape(-1, 1, width))
        )
    return trained["codebooks"].size == codebooks.size and _equal(
        trained["codebooks"].reshape(codebooks.shape)[:, 1:], codebooks[:, 1:]
    )


def _equal(one: np.ndarray | None, other: np.ndarray | None) -> bool:
    return one is not None and other is not None and np.array_equal(one, other.astype(np.float32))


def _close(one: np.ndarray, other: np.ndarray) -> bool:
    """Whether both are one product, whose last bits differ between machines."""
    return one.shape == other.shape and bool(np.linalg.norm(one - other) <= 1e-5 * np.linalg.norm(one))


def byte_codes(index: faiss.Index) -> np.ndarray:
    """FAISS's own memory of the codes (n, bytes) of an index without lists, not a copy."""
    flat = cast(faiss.IndexPQ, index)  # or another one of flat codes
    codes = faiss.rev_swig_ptr(flat.codes.data(), flat.ntotal * flat.code_size)
    return codes.view(np.uint8).reshape(-1, flat.code_size)  # FAISS's array of no bytes is float32


def nearest_lists(index: faiss.IndexIVF, queries: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Scores float32 and numbers (q, min(count, L)) of the inverted lists nearest to queries (q, d)."""
    lists = faiss.downcast_index(index.quantizer)
    by = "l2" if index.metric_type == faiss.METRIC_L2 else "ip"
    scores, numbers = nearest(byte_codes(lists).view(np.float32), queries, count, by)
    return scores.astype(np.float32), numbers


def by_distance(index: faiss.Index) -> faiss.Index:
    """The index, or a view of it, that compares codes by squared distances; `follow` gives a view its rows."""
    if index.metric_type == faiss.METRIC_L2:
        return index
    view = faiss.clone_index(index)
    inner = cast(Any, innermost(view))
    for part in (view, inner):
        part.metric_type = faiss.METRIC_L2
    if hasattr(inner, "aq"):
        inner.aq.search_type = faiss.AdditiveQuantizer.ST_decompress
    if isinstance(inner, faiss.IndexIVF):
        inner.replace_invlists(innermost(index).invlists, False)
        if isinstance(inner, faiss.IndexIVFPQ):
            inner.precompute_table()
    return view


def follow(view: faiss.Index, index: faiss.Index, n_rows: int) -> None:
    """Let a view show the first rows of its index, whose memory it shares until rows change; in lists all rows."""
    inner, codes = cast(Any, innermost(view)), getattr(innermost(index), "codes", None)
    if codes is not None:
        size = n_rows * inner.code_size
        inner.codes = faiss.MaybeOwnedVectorUInt8.create_view(codes.data(), size, codes.owner)
    view.ntotal = inner.ntotal = n_rows


def shows(view: faiss.Index, index: faiss.Index) -> bool:
    """Whether the codes of a view are where those of its index are."""
    seen, codes = (getattr(innermost(part), "codes", None) for part in (view, index))
    return seen is None or codes is None or int(seen.data()) == int(codes.data())


def fast_scan(codes: faiss.IndexIVFPQ) -> faiss.IndexIVFPQFastScan:
    """FAISS's fast scan of 4-bit codes in lists, whose centres it shares. FAISS reads a null pointer where the codes do
    not own their lists, as in a view."""
    with alone:
        owns = codes.own_invlists
        try:
            codes.own_invlists = True
            return faiss.IndexIVFPQFastScan(codes)
        finally:
            codes.own_invlists = owns


def bias(index: faiss.Index) -> np.ndarray:
    """The bias that the transform in front of an index adds to rows, (d',), or (1,) if there is none."""
    if isinstance(index, faiss.IndexPreTransform):
        transform = faiss.downcast_VectorTransform(index.chain.at(0))
        if isinstance(transform, faiss.LinearTransform) and transform.have_bias:
            return faiss.vector_to_array(transform.b)
    return np.zeros(1, np.float32)
