"""Processes that fit and encode together: a thin group over torch.distributed (gloo), or this process alone.

`torchrun` (and with it Slurm, Kubernetes, Ray Train, SageMaker) starts the same program several times and gives each
copy its RANK and the WORLD_SIZE. `join_processes()` makes them one `Group`; inside it every fit takes its rows as one
process's part of them all, and the sums of `nearkin.statistics` are merged over the group. Outside it, or with one
process, `current()` is a group of one, whose operations do nothing.
"""

from __future__ import annotations  # the command line loads this before it needs NumPy or torch

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any, NoReturn, Protocol, TypeVar

if TYPE_CHECKING:
    import numpy as np


class _Sums(Protocol):
    def totals(self) -> list[np.ndarray]: ...


Sums = TypeVar("Sums", bound=_Sums)


class PeerError(ConnectionError):
    """Another process of the group ended, or did not answer in time."""


class Group:
    """A group of this process alone, the default outside `join_processes`; all that ranks exchange goes through
    `all_reduce`."""

    rank: int = 0
    size: int = 1

    def all_reduce(self, *arrays: np.ndarray) -> None:
        """Replace each array, of the same shape on all ranks, by the sum over the ranks."""

    def broadcast(self, *arrays: np.ndarray) -> None:
        """Overwrite each array with rank 0's."""
        import numpy as np

        for array in arrays if self.size > 1 else ():
            sent = np.ascontiguousarray(array) if self.rank == 0 else np.zeros(array.shape, array.dtype)
            self.all_reduce(sent.reshape(-1).view(np.uint8))  # bytes, to which the others add zeros
            array[...] = sent

    def gather(self, X: np.ndarray) -> list[np.ndarray]:
        """Every rank's X (any number of rows, the same width and type), in the order of the ranks, on all of them."""
        import numpy as np

        lengths = np.zeros(self.size, np.int64)
        lengths[self.rank] = len(X)
        self.all_reduce(lengths)
        ends = np.cumsum(lengths)
        rows = np.zeros((int(ends[-1]), *X.shape[1:]), X.dtype)
        rows[ends[self.rank] - len(X) : ends[self.rank]] = X
        if rows.size:
            self.all_reduce(rows.reshape(-1).view(np.uint8))
        return np.split(rows, ends[:-1])

    def exchange(self, value: object) -> list[Any]:
        """Every rank's value (anything that JSON holds), in the order of the ranks, on all of them."""
        if self.size == 1:
            return [value]
        import numpy as np

        text = np.frombuffer(json.dumps(value).encode(), np.uint8)
        return [json.loads(part.tobytes()) for part in self.gather(text)]

    def barrier(self) -> None:
        """Wait until all ranks are here."""
        self.exchange(None)

    def merge(self, sums: Sums) -> Sums:
        """Sums with those of all ranks added up: one all-reduce of their totals."""
        self.all_reduce(*sums.totals())
        return sums

    def share(self, n: int, unit: int = 1) -> tuple[int, int]:
        """First and last + 1 of the n rows that fall to this rank: equal parts, cut at multiples of `unit`."""
        units = -(-n // unit)
        return tuple(min(n, unit * (units * r // self.size)) for r in (self.rank, self.rank + 1))  # pyright: ignore[reportReturnType]

    def agree(self, value: object, what: str) -> None:
        """ValueError on all ranks, which names one that differs, unless all were given the same value."""
        for rank, other in enumerate(values := self.exchange(value)):
            if other != values[0]:
                raise ValueError(f"rank {rank} has {what} {other}, rank 0 has {values[0]}; all ranks need the same")


ALONE = Group()
_current: Group = ALONE


def current() -> Group:
    return _current


class ProcessGroup(Group):
    """Several processes over gloo; made by `join_processes`."""

    def __init__(self, rank: int, size: int) -> None:
        self.rank, self.size = rank, size

    def all_reduce(self, *arrays: np.ndarray) -> None:
        import torch
        import torch.distributed as dist

        for array in arrays:
            if not array.flags.c_contiguous or not array.flags.writeable:
                raise ValueError("arrays that processes exchange must be contiguous and writable")
            try:
                dist.all_reduce(torch.from_numpy(array))
            except RuntimeError as error:
                raise PeerError(
                    f"rank {self.rank} stopped: another rank ended or hangs ({str(error).splitlines()[0]}); torchrun "
                    "prints which one. NEARKIN_TIMEOUT sets how long to wait"
                ) from error


@contextmanager
def join_processes(timeout: float | None = None) -> Iterator[Group]:
    """Join the processes that torchrun started, until the block ends; a group of one without torchrun.

    Every rank must take the same steps in the block, with its own part of the vectors.

    Parameters
    ----------
    timeout: seconds to wait for a rank that hangs; None for `NEARKIN_TIMEOUT`, or 1800.

    Returns
    -------
    group: context manager of a `Group` with rank and size.

    Raises
    ------
    PeerError: another rank ended, or did not answer in time.

    Examples
    --------
    >>> with nk.join_processes() as group:
    ...     group.rank, group.size
    (0, 1)
    """
    global _current
    if _current is not ALONE or int(os.environ.get("WORLD_SIZE", "1")) == 1:
        yield _current
        return
    import torch.distributed as dist

    text = os.environ.get("NEARKIN_TIMEOUT", "1800") if timeout is None else str(timeout)
    if not text.replace(".", "", 1).isdecimal() or not 0 < float(text) < 1e9:
        raise ValueError(f"NEARKIN_TIMEOUT is {text!r}; it must be a number of seconds above 0, for example 1800")
    dist.init_process_group("gloo", timeout=timedelta(seconds=float(text)))
    _current = ProcessGroup(dist.get_rank(), dist.get_world_size())
    try:
        yield _current
    finally:
        _current = ALONE
        dist.destroy_process_group()


def leave(code: int) -> NoReturn:
    """Flush and end this process now, without clean-up at exit: a thread of torch's may still run while the interpreter
    ends, and the C++ runtime then aborts (seen in one of 25 runs)."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
