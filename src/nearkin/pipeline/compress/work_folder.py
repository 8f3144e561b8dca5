"""The rows of a file to an index of codes: one process as it reads, several each its blocks, to be joined at the end.

Blocks lie at fixed row numbers in a *work folder*, which holds the fitted quantizer and one FAISS index a block, each
written whole or not at all, with its checksums in a file beside it: a damaged block is made again. So a run that was
interrupted goes on where it stopped, with any number of processes.
"""

import json
import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

from nearkin._distributed import Group
from nearkin._storage import checksums_of, read_config, recover, replacing, saving_folder, sweep
from nearkin._types import Record
from nearkin.contracts import Callback, Quantizer
from nearkin.data import VectorFile
from nearkin.index import Index
from nearkin.index.faiss_file import read_faiss, write_faiss
from nearkin.index.saved_quantizer import load_quantizer

_KIND = "compress checkpoint"
_CONFIG, _OTHERS = "config.json", ("arrays.safetensors", "manifest.json")  # of the folder, and of its quantizer's
_FEWEST, _MOST = 4096, 2**20  # rows of a block
_BLOCKS_PER_RANK = 8


class WorkFolder:
    """What a compression has done so far: its quantizer, and the codes of the blocks that are finished.

    `job` says what is compressed and how; a folder of another job is refused with ValueError. Only rank 0 makes or
    changes anything but the blocks, so the folder must lie where all ranks see it.
    """

    def __init__(self, path: str | os.PathLike, job: Record, n_rows: int, group: Group) -> None:
        self.path, self.group, self.n_rows = Path(path), group, n_rows
        if group.rank == 0:
            self._start(job)
        group.barrier()
        self.block_rows = int(self._config()["block_rows"])

    def _start(self, job: Record) -> None:
        recover(self.path)
        _end_removal(self.path)
        if self.path.exists() and any(self.path.iterdir()):
            found = read_config(self.path, _KIND)["job"]
            if found != job:
                key = next(key for key in job if found.get(key) != job[key])
                raise ValueError(
                    f"{self.path} is of another run ({key} was {found.get(key)}, is {job[key]}); "
                    "give another folder or remove it"
                )
            return
        parts = _BLOCKS_PER_RANK * self.group.size
        rows = min(_MOST, max(_FEWEST, -(-self.n_rows // parts)))
        with saving_folder(self.path, _KIND, {"job": job, "block_rows": rows}, growing=True):
            pass

    def _config(self) -> Record:
        if not self.path.exists():
            raise ValueError(
                f"rank {self.group.rank} does not see {self.path}, which rank 0 has made; "
                "it must lie on a file system that all ranks share"
            )
        return read_config(self.path, _KIND)

    def load_quantizer(self) -> Quantizer | None:
        """The quantizer that was learned before the interruption, if it was."""
        path = self.path / "quantizer"
        if not (path / "config.json").is_file():
            return None
        return load_quantizer(path)

    def save_quantizer(self, quantizer: Quantizer) -> None:
        if self.group.rank == 0:
            path = self.path / "quantizer"
            if not (path / _CONFIG).is_file():  # a removal that was killed
                _unlink(path / name for name in _OTHERS)
            quantizer.save(path)

    def encode(self, file: VectorFile, empty: Callable[[], Index], callback: Callback) -> None:
        """Make the blocks that are missing, each rank its share; `empty()` gives an index without rows."""
        n_blocks = -(-self.n_rows // self.block_rows)
        missing = self.group.exchange([b for b in range(n_blocks) if not self._is_whole(b)])[0]
        first, stop = self.group.share(len(missing))
        total = sum(self._rows(b)[1] - self._rows(b)[0] for b in missing[first:stop])
        done = 0
        for block in missing[first:stop]:
            index = empty()
            for chunk in file.part(*self._rows(block)).chunks():
                index.add(chunk)
                done += len(chunk)
                callback(done, {"total": total})
            with replacing(self._file(block)) as fresh:
                write_faiss(index.faiss_index, fresh)
                with replacing(_sums(self._file(block))) as sums:
                    sums.write_text(checksums_of(fresh))
        self.group.barrier()

    def join(self, index: Index, callback: Callback) -> Index:
        """All blocks, in their order, behind each other in `index`."""
        for block in range(-(-self.n_rows // self.block_rows)):
            found = read_faiss(self._file(block), binary=index.metric == "hamming")
            part = Index(found, index.n_features, index.metric, index.quantizer, None)
            index.merge(part)
            callback(len(index), {"total": self.n_rows})
        return index

    def _rows(self, block: int) -> tuple[int, int]:
        return block * self.block_rows, min((block + 1) * self.block_rows, self.n_rows)

    def _is_whole(self, block: int) -> bool:
        file, sums = self._file(block), _sums(self._file(block))
        return file.is_file() and sums.is_file() and sums.read_bytes() == checksums_of(file).encode()

    def _file(self, block: int) -> Path:
        return self.path / f"rows-{block * self.block_rows:013d}.faiss"


def _sums(file: Path) -> Path:
    """Where the checksums of a block stand."""
    return file.with_name(f"{file.name}.crc32")


def remove_work(path: Path) -> None:
    """Remove what a `WorkFolder` wrote, and the folder if nothing else lies in it; any other folder stays as it is."""
    try:
        read_config(path, _KIND)
    except (ValueError, FileNotFoundError):
        return
    sweep(path)
    quantizer, blocks = path / "quantizer", sorted((*path.glob("rows-*.faiss"), *path.glob("rows-*.faiss.crc32")))
    # config.json first where the rest is no longer whole, and last where it says what the folder is
    _unlink((quantizer / _CONFIG, *(quantizer / name for name in _OTHERS)))
    _rmdir(quantizer)
    _unlink((*blocks, *(path / name for name in _OTHERS), path / _CONFIG))
    _rmdir(path)


def _end_removal(path: Path) -> None:
    """Finish a removal that was killed before its last step: a config.json of ours lies there alone."""
    if path.is_dir() and os.listdir(path) == [_CONFIG]:
        with suppress(ValueError, RecursionError):
            found = json.loads((path / _CONFIG).read_text(encoding="utf-8"))
            if isinstance(found, dict) and found.get("kind") == _KIND:
                _unlink([path / _CONFIG])


def _rmdir(folder: Path) -> None:
    with suppress(OSError):  # not there, or not empty: it holds something of the user's
        folder.rmdir()


def _unlink(files: Iterable[Path]) -> None:
    for file in files:
        file.unlink(missing_ok=True)
