"""Reading and writing `index.faiss`: the one place where FAISS meets a file.

FAISS (from 1.15.1 on) checks lengths while it reads. Three things are left to do here: a file may name lists on disk,
which a later `add` would write to; it may hold kinds of indexes that nearkin does not write; and its parts may
contradict each other, so that a search reads outside its memory.
"""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportAttributeAccessIssue=false

import os
import re
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import faiss
import numpy as np

from nearkin._faiss import FaissIndex
from nearkin._storage import open_file

_ON_DISK = b"ilod"  # FAISS's mark of inverted lists in another file
_FLAT = (faiss.IndexFlat, faiss.IndexFlatL2, faiss.IndexFlatIP)
_KINDS = (
    faiss.IndexBinaryFlat,
    *_FLAT,
    *(faiss.IndexPQ, faiss.IndexScalarQuantizer, faiss.IndexResidualQuantizer, faiss.IndexProductResidualQuantizer),
    *(faiss.IndexIVFPQ, faiss.IndexIVFResidualQuantizer, faiss.IndexIVFProductResidualQuantizer),
    *(faiss.IndexPQFastScan, faiss.IndexResidualQuantizerFastScan, faiss.IndexProductResidualQuantizerFastScan),
    *(faiss.IndexIVFPQFastScan, faiss.IndexIVFResidualQuantizerFastScan),
    faiss.IndexIVFProductResidualQuantizerFastScan,
)
_reading = threading.Lock()  # FAISS's limits belong to the process


def read_faiss(path: Path, *, binary: bool = False) -> FaissIndex:
    """The FAISS index in a file; `binary` is for packed bits.

    The lists of an inverted file must name each row once. ValueError for a file that is not a regular one, is damaged,
    or holds anything that nearkin does not write.
    """
    with open_file(path) as file:
        try:
            found = _read(file, binary)
            check_parts(found)
        except (ValueError, RuntimeError) as error:
            what = str(error) if isinstance(error, ValueError) else "FAISS refuses it"
            raise ValueError(
                f"{path} cannot be read as nearkin's index of {'bits' if binary else 'vectors'} ({what}); the file is "
                "damaged or of another program"
            ) from error
    lists = inverted_file(found)
    if lists is not None:
        lists.nprobe = min(lists.nprobe, lists.nlist)  # a fast scan allocates memory for each
        lists.set_direct_map_type(faiss.DirectMap.NoMap)  # a map of rows is made again when it is needed
        if isinstance(lists, faiss.IndexIVFPQ):
            lists.precompute_table()
    return found


def _read(file: BinaryIO, binary: bool) -> FaissIndex:
    on_disk = False

    def read(size: int) -> bytes:
        nonlocal on_disk
        data = file.read(size)
        on_disk |= data == _ON_DISK
        return b"" if on_disk else data

    size, reader = os.fstat(file.fileno()).st_size, faiss.PyCallbackIOReader(read)
    try:
        with _limited(size):
            # tables are made when the sizes that they depend on are checked
            found = (faiss.read_index_binary if binary else faiss.read_index)(
                reader, faiss.IO_FLAG_SKIP_PRECOMPUTE_TABLE
            )
    except RuntimeError as error:
        _need(not on_disk, "its lists are in another file")
        raise ValueError(re.split(r"\.cpp:\d+: (?:Error: )?", str(error))[-1][:200]) from error
    _need(not file.read(1), "more bytes follow the index")
    return found


@contextmanager
def _limited(size: int) -> Generator[None]:
    """FAISS allocates no array longer than the file, and makes no more lists than it has bytes."""
    limits = (faiss.set_deserialization_vector_byte_limit, faiss.set_deserialization_loop_limit)
    with _reading:
        before = faiss.get_deserialization_vector_byte_limit(), faiss.get_deserialization_loop_limit()
        try:
            for limit in limits:
                limit(size)
            yield
        finally:
            for limit, value in zip(limits, before, strict=True):
                limit(value)


def write_faiss(index: FaissIndex, path: Path) -> None:
    """Write a FAISS index, of floats or of bits; OSError where the disk is full."""
    with path.open("wb") as file:
        failed: list[OSError] = []

        def write(data: bytes) -> None:
            try:
                file.write(data)
            except OSError as error:
                failed.append(error)
                raise

        try:
            if isinstance(index, faiss.IndexBinary):
                faiss.write_index_binary(index, faiss.PyCallbackIOWriter(write))
            else:
                faiss.write_index(index, faiss.PyCallbackIOWriter(write))
        except RuntimeError:
            if failed:
                raise failed[0] from None
            raise


def inverted_file(index: FaissIndex) -> faiss.IndexIVF | None:
    """The inverted file inside an index of floats, or None."""
    if isinstance(index, faiss.IndexBinary):
        return None
    index = faiss.downcast_index(index)
    if isinstance(index, faiss.IndexPreTransform | faiss.IndexIDMap):
        return inverted_file(index.index)
    return index if isinstance(index, faiss.IndexIVF) else None


def check_parts(index: FaissIndex) -> None:
    """ValueError unless the index is of a kind that nearkin writes, and its parts agree."""
    downcast: Any = faiss.downcast_IndexBinary if isinstance(index, faiss.IndexBinary) else faiss.downcast_index
    rows, part = index.ntotal, downcast(index)
    if isinstance(part, faiss.IndexIDMap | faiss.IndexBinaryIDMap):
        _need(part.id_map.size() == rows == part.index.ntotal, "it has another number of ids than of rows")
        part = downcast(part.index)
    if isinstance(part, faiss.IndexPreTransform):
        part = _behind_rotation(part)
    _need(type(part) in _KINDS, f"nearkin does not write a {type(part).__name__}")
    _need(part.is_trained and part.ntotal == rows, "it is not trained, or counts other rows than its parts")
    if isinstance(part, faiss.IndexBinary):
        _need(part.xb.size() == rows * part.code_size and part.d == 8 * part.code_size, "it has lost codes")
        return
    _need(part.metric_type in (faiss.METRIC_L2, faiss.METRIC_INNER_PRODUCT), "its metric is not known")
    if isinstance(part, faiss.IndexIVF):
        _check_lists(part)
    elif isinstance(part, faiss.IndexFastScan):
        _check_blocks(part)
        padded = -(-rows // part.bbs) * part.bbs
        _need(part.ntotal2 == padded, f"it has blocks for {part.ntotal2} rows, not {padded}")
        _need(part.codes.size() == padded * part.M2 // 2, "it has another number of codes")
    else:
        _need(part.codes.size() == rows * part.code_size, f"{rows} rows have {part.codes.size()} bytes of codes")


def _behind_rotation(index: Any) -> Any:
    _need(index.chain.size() == 1, f"it has {index.chain.size()} transforms")
    turn: Any = faiss.downcast_VectorTransform(index.chain.at(0))
    inner: Any = faiss.downcast_index(index.index)
    _need(type(turn) is faiss.LinearTransform, f"nearkin does not write a {type(turn).__name__}")
    shapes = (turn.d_in, turn.d_out, turn.A.size(), turn.b.size())
    expected = (index.d, inner.d, index.d * inner.d, inner.d if turn.have_bias else 0)
    _need(shapes == expected and inner.d >= index.d, "its rotation has another size than its vectors")
    return inner


def _check_blocks(index: Any) -> None:
    """The settings of a fast scan: 4-bit codes, in blocks of 32 rows or a multiple."""
    _need(index.bbs > 0 and index.bbs % 32 == 0 and index.nbits == 4, "it has blocks of an unknown size")
    _need(0 < index.M <= index.M2 <= index.M + 1, f"it has {index.M2} codes a row, not {index.M}")


def _check_lists(index: Any) -> None:
    """Every row is in one list, and the lists are as wide as the codes."""
    coarse: Any = faiss.downcast_index(index.quantizer)
    lists: Any = faiss.downcast_InvertedLists(index.invlists)
    _need(type(coarse) in _FLAT and (coarse.ntotal, coarse.d) == (index.nlist, index.d), "it has other lists")
    scanned = isinstance(index, faiss.IndexIVFFastScan)
    kind = faiss.BlockInvertedLists if scanned else faiss.ArrayInvertedLists
    _need(type(lists) is kind and lists.nlist == index.nlist, "it has lists of another index")
    if scanned:
        _check_blocks(index)
        _need((lists.n_per_block, lists.block_size) == (index.bbs, index.bbs * index.M2 // 2), "its blocks differ")
    else:
        _need(lists.code_size == index.code_size and index.by_residual, "its lists hold other codes")
    sizes = [lists.list_size(number) for number in range(index.nlist)]
    _need(sum(sizes) == index.ntotal, f"its lists have {sum(sizes)} rows, not {index.ntotal}")
    seen = np.zeros(index.ntotal, bool)
    for number in np.flatnonzero(sizes).tolist():
        ids = faiss.rev_swig_ptr(lists.get_ids(number), sizes[number])
        _need(bool(((ids >= 0) & (ids < len(seen))).all()), "a list names a row that does not exist")
        seen[ids] = True
    _need(bool(seen.all()), "a row is in two lists")


def _need(good: bool, what: str) -> None:
    """ValueError that names what is wrong unless `good`."""
    if not good:
        raise ValueError(what)
