"""Reading and writing `index.faiss`: the one place where FAISS meets a file."""

from pathlib import Path

import faiss

from nearkin._faiss import FaissIndex
from nearkin._storage import open_file
from nearkin.index.faiss_format import check_format


def read_faiss(path: Path, *, binary: bool = False, first_row: int = 0) -> FaissIndex:
    """The FAISS index in a file; `binary` is for packed bits.

    ValueError for a file that is no regular one, is damaged, or holds anything but what nearkin writes, above all lists
    on disk, which could name any path: FAISS is given the bytes only after `check_format` has read them.
    """
    with open_file(path) as file:
        try:
            check_format(file, binary=binary, first_row=first_row)
            reader = faiss.PyCallbackIOReader(file.read)
            found = (faiss.read_index_binary if binary else faiss.read_index)(reader)
        except (ValueError, RuntimeError) as error:
            what = str(error) if isinstance(error, ValueError) else "FAISS refuses it"
            raise ValueError(
                f"{path} cannot be read as nearkin's index of {'bits' if binary else 'vectors'} ({what}); the file is "
                "damaged or of another program"
            ) from error
    lists = inverted_file(found)
    if lists is not None:  # a fast scan makes room for as many as are to be visited
        lists.nprobe = min(lists.nprobe, lists.nlist)
    if lists is not None and not lists.direct_map.no():  # it says where rows lie, and is made again when needed
        lists.set_direct_map_type(faiss.DirectMap.NoMap)
    return found


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
