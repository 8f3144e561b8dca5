"""CPU seconds and peak memory of every main call against the size of its input, one thread.

    python -m benchmarks scale growth                                    # all calls
    python -m benchmarks scale growth --calls "Index.build(X, 16)"       # some of them
    python -m benchmarks scale growth --most 100000                      # up to a size

A cell is a process of its own: imports and input are there, and a small call has loaded what is loaded late. Memory is
the highest that was resident during the call beyond what was before it; a command's begins before it opens its file.
Vectors are SIFT descriptors, repeated with noise beyond 100,000. Sizes go as far as a call takes about a minute.
"""

import contextlib
import gc
import io
import multiprocessing
import tempfile
from argparse import Namespace
from collections.abc import Callable, Iterator
from functools import cache, partial
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np
import torch

import nearkin as nk
from benchmarks.harness import arrays, cpu_seconds, memory_mb
from benchmarks.jobs import Job, Row, command
from benchmarks.ordinal.problems import synthetic
from nearkin.cli.app import app
from nearkin.quantization import best

Work = Callable[[], object]
fork = multiprocessing.get_context("fork")
_BLOCK = 100_000  # rows of a file made at a time
_CHANGED = 1_000  # vectors that are added, removed or updated; queries of a search


@cache
def sift(data: Path) -> np.ndarray:
    return arrays(data, "sift_bsds", "base")[0].astype(np.float32)


def vectors(n: int, data: Path, first: int = 0) -> np.ndarray:
    """Rows `first` to `first` + n (n, 128) float32 of descriptors in cycles; later cycles have noise of 4."""
    X, rng = sift(data), np.random.default_rng(first)
    rows = X[np.arange(first, first + n) % len(X)]
    return rows + rng.normal(0, 4, rows.shape).astype(np.float32) if first + n > len(X) else rows


def file_of(n: int, data: Path, folder: Path, name: str = "X.npy", dtype: type = np.float16) -> str:
    """An .npy file of `vectors`."""
    X = np.lib.format.open_memmap(folder / name, mode="w+", dtype=dtype, shape=(n, 128))
    for first in range(0, n, _BLOCK):
        X[first : first + _BLOCK] = vectors(min(_BLOCK, n - first), data, first)
    X.flush()
    return str(folder / name)


def run(*words: object) -> None:
    """A command in this process."""
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()) as said:
        try:
            app(list(map(str, words)), prog_name="nearkin")
        except SystemExit as end:
            if end.code:
                raise RuntimeError(said.getvalue()) from end


def compress(n: int, data: Path, folder: Path, options: str = "") -> Work:
    return partial(run, "compress", file_of(n, data, folder), "--out", folder / "idx", *options.split())


def codes(n: int, data: Path, folder: Path) -> nk.Index:
    """An index of n vectors in plain product codes of 16 bytes, saved in the folder."""
    pq = nk.ProductQuantizer(16, rotation=None, max_iter=2, random_state=0).fit(sift(data)[:2_000])
    index = nk.Index.empty(128, pq)
    for first in range(0, n, _BLOCK):
        index.add(vectors(min(_BLOCK, n - first), data, first))
    index.save(folder / "idx")
    return index


def search(n: int, data: Path, folder: Path) -> Work:
    return partial(codes(n, data, folder).search, arrays(data, "sift_bsds", "query")[0].astype(np.float32), 10)


def on_index(n: int, data: Path, folder: Path, command: str) -> Work:
    """A command on a saved index of n vectors; X.npy are its vectors, Q.npy others, ids.txt ids of some of its own."""
    codes(n, data, folder)
    numbers = np.linspace(0, n - 1, min(n, _CHANGED)).astype(int)
    np.savetxt(folder / "ids.txt", numbers, fmt="%d")
    for name, count in (("X.npy", n), ("Q.npy", len(numbers))):
        if name in command:
            file_of(count, data, folder, name)
    return partial(run, *(folder / word if "idx" in word or "." in word else word for word in command.split()))


def pairs(n: int) -> nk.Interactions:
    """n pairs or fewer of n / 20 users and half as many items, popular ones often; planted groups of 20."""
    rng = np.random.default_rng(0)
    users, items = max(n // 20, 20), max(n // 40, 20)
    rows = rng.integers(users, size=n)
    group = np.where(rng.random(n) < 0.8, rows % 20, rng.integers(20, size=n))
    columns = (20 * (items // 20 * rng.random(n) ** 2).astype(int) + group) % items
    return nk.Interactions.from_pairs(rows, columns)


def orthogonal(n: int, *_: Path) -> Work:
    """A hundred steps of an n x n matrix as `torch.linalg.qr` returns it."""
    generator = torch.Generator().manual_seed(0)
    X = torch.nn.Parameter(torch.linalg.qr(torch.randn(n, n, generator=generator)).Q)
    X.grad = torch.empty_like(X).copy_(torch.randn(n, n, generator=generator))
    optimizer = nk.orthogonal.orthogonal_optimizer([X], lr=1e-3)
    return lambda: [optimizer.step() for _ in range(100)]


def comparisons(n: int, *_: Path) -> Work:
    """n answers about n / 100 objects in ten dimensions, without errors."""
    model, answers = nk.OrdinalEmbedding(10, random_state=0), synthetic(max(n // 100, 20), n, seed=0)[0]
    return partial(model.fit, answers)


THOUSANDS = (1_000, 10_000, 100_000)
MILLION = (*THOUSANDS, 1_000_000)
CALLS: dict[str, tuple[Callable[[int, Path, Path], Work], tuple[int, ...]]] = {
    "Index.build(X, 16)": (lambda n, *at: partial(nk.Index.build, vectors(n, at[0]), 16), THOUSANDS),
    "quantization.best(X, 16)": (lambda n, *at: partial(best, vectors(n, at[0]), 16, random_state=0), THOUSANDS),
    "nearkin compress": (compress, THOUSANDS),
    "compress --method opq": (partial(compress, options="--method opq"), MILLION),
    "compress --method pq --centroids 16 --bytes 1": (
        partial(compress, options="--method pq --centroids 16 --bytes 1"),
        (*MILLION, 10_000_000),
    ),
    "TwoTower(64).fit": (lambda n, *_: partial(nk.TwoTower(64, random_state=0).fit, pairs(n)), MILLION),
    "OrdinalEmbedding(10).fit": (comparisons, MILLION),
    "SemanticIds().fit": (lambda n, *at: partial(nk.SemanticIds(random_state=0).fit, vectors(n, at[0])), THOUSANDS),
    "100 orthogonal steps, by side": (orthogonal, (10, 100, 1_000)),
    "Index.search, 1,000 queries": (search, MILLION),
    "nearkin evaluate": (partial(on_index, command="evaluate idx Q.npy --base X.npy"), MILLION),
    "nearkin report": (partial(on_index, command="report idx --out page.html"), MILLION),
    "nearkin add": (partial(on_index, command="add idx X.npy"), MILLION),
    "nearkin remove, 1,000": (partial(on_index, command="remove idx --ids ids.txt"), MILLION),
    "nearkin update, 1,000": (partial(on_index, command="update idx Q.npy --ids ids.txt"), MILLION),
}


def cell(call: str, n: int, data: Path, answer: Connection) -> None:
    """Send seconds and memory of a call, and end."""
    make, sizes = CALLS[call]
    with tempfile.TemporaryDirectory() as first, tempfile.TemporaryDirectory() as folder:
        make(sizes[0], data, Path(first))()
        work = make(n, data, Path(folder))
        gc.collect()
        Path("/proc/self/clear_refs").write_text("5")  # the highest memory is that from now on
        before = memory_mb("VmRSS")
        seconds, _ = cpu_seconds(work)
        answer.send({"seconds": seconds, "mb": memory_mb("VmHWM") - before})


def measured(call: str, n: int, data: Path) -> Row:
    """Of a process that begins where this one is: all that is imported, nothing that was used."""
    here, there = fork.Pipe(duplex=False)
    process = fork.Process(target=cell, args=(call, n, data, there))
    process.start()
    there.close()
    try:
        return here.recv()
    finally:
        process.join()


def jobs(given: Namespace) -> Iterator[tuple[str, Job]]:
    for call in given.calls:
        sizes = CALLS[call][1][: 2 if given.quick else None]
        for n in [size for size in sizes if given.least <= size <= given.most]:
            yield "growth", Job({"call": call, "n": n}, partial(measured, call, n, given.data))


def main() -> None:
    command(__doc__, jobs, {}, calls=tuple(CALLS), least=1, most=10**7)
