"""FAISS's codecs as good as they can be made, and ScaNN in the peers' environment."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import faiss
import numpy as np

from benchmarks.data import NEIGHBOURS, Problem
from benchmarks.harness import by_peer
from nearkin.metrics import recall_k_at_k

Add = Callable[[np.ndarray], object]
Made = Iterator[tuple[str, faiss.Index, Add]]  # name, trained empty index, and what adds rows to it
Make = Callable[[np.ndarray], Made]  # rows (n, d) to learn from

LONGEST = 32  # codebooks of a residual code that are still tried
_REFINED = 8  # and that are trained by FAISS's refinement too
_LOCAL = 8  # and by local search
_BEAMS = (5, 32)
_WIDE = 300  # columns from which OPQ gets 20 rounds instead of 50


def faiss_codecs(d: int, n_bytes: int) -> Iterator[tuple[str, Make]]:
    """All that FAISS offers at that size, the dearest last."""
    rounds = 20 if d >= _WIDE or n_bytes > _LOCAL else 50
    for text in _scalar(d, n_bytes):
        yield f"FAISS {text}", lambda X, text=text: _factory(X, f"FAISS {text}", text)
    yield "FAISS PQ", lambda X: _factory(X, "FAISS PQ", f"PQ{n_bytes}x8np")  # no polysemous training
    for start in ("identity", "random"):
        name = f"FAISS OPQ, {start}, {rounds} rounds"
        yield name, lambda X, n=name, s=start: _opq(X, n, n_bytes, s, rounds)
    for splits in range(2, d + 1):
        if n_bytes % splits == 0 and d % splits == 0 and 4 <= n_bytes // splits <= 8:
            yield f"FAISS PRQ {splits}", lambda X, s=splits: _product_residual(X, s, n_bytes // s)
            break
    if 8 * n_bytes >= d and n_bytes % 4 == 0 and d % (n_bytes // 4) == 0:  # short sums, of which many bits want more
        yield f"FAISS PRQ {n_bytes // 4} x 4", lambda X: _product_residual(X, n_bytes // 4, 4)
    if n_bytes <= LONGEST:
        yield "FAISS RQ", lambda X: _residual(X, n_bytes, refined=False)
    if n_bytes <= _REFINED:
        yield "FAISS RQ refined", lambda X: _residual(X, n_bytes, refined=True)
    if n_bytes <= _LOCAL:
        yield "FAISS LSQ", lambda X: _factory(X, "FAISS LSQ", f"LSQ{n_bytes}x8")


def faiss_sums(n_bytes: int) -> Iterator[tuple[str, Make]]:
    """The strongest of these without the last byte, which then holds the row's length as `nk.Index` would restore it.

    Columns must be padded to a multiple of the parts (`padded`).
    """
    n = n_bytes - 1
    if n <= LONGEST:
        yield "FAISS RQ", lambda X: _residual(X, n, refined=False)
    if n <= _LOCAL:
        yield "FAISS LSQ", lambda X: _factory(X, "FAISS LSQ", f"LSQ{n}x8")
    chains = [chain for chain in range(4, 10) if n >= 2 * chain]
    if chains:
        chain = max(chains, key=lambda chain: (n // chain * chain, chain))
        yield f"FAISS PRQ {n // chain}", lambda X: _product_residual(padded(X, n // chain), n // chain, chain)


def padded(X: np.ndarray, parts: int) -> np.ndarray:
    """Rows (n, d) with columns of zeros up to a multiple of `parts`."""
    return np.pad(X, ((0, 0), (0, -X.shape[1] % parts)))


def _scalar(d: int, n_bytes: int) -> Iterator[str]:
    """Scalar codes and RaBitQ along as many principal axes as the bytes hold, rotated at random (PCAR) or not.

    Below a bit a column they keep too few axes to be worth a row.
    """
    if 8 * n_bytes < 0.9 * d:
        return
    if 2 * n_bytes == d:
        yield from ("SQ4", "RR,SQ4")
    yield from (f"PCA{axes},SQ{bits}" for bits, axes in ((8, n_bytes), (6, 4 * n_bytes // 3)) if axes <= d)
    if 2 * n_bytes <= d:
        yield f"PCAR{2 * n_bytes},SQ4"
    for bits in range(1, 5):
        text = f"RaBitQ{bits}" if bits > 1 else "RaBitQ"
        axes = max((w for w in range(8, d + 1) if faiss.index_factory(w, text).sa_code_size() <= n_bytes), default=0)
        if 2 * axes >= n_bytes and (axes < d or (bits + 1) * d > 8 * n_bytes - 96):
            yield f"PCAR{axes},{text}"


def _factory(X: np.ndarray, name: str, text: str) -> Made:
    index = faiss.index_factory(X.shape[1], text)
    index.train(X)
    yield name, index, index.add


def faiss_opq(X: np.ndarray, M: int, bits: int, start: str, n_iter: int | None) -> Any:
    """A trained OPQ + PQ index; `start` "identity", or FAISS's own "random" one, `n_iter` None for its default."""
    d = X.shape[1]
    opq = faiss.OPQMatrix(d, M)
    if n_iter is not None:
        opq.niter = n_iter
    if start == "identity":
        faiss.copy_array_to_vector(np.eye(d, dtype=np.float32).ravel(), opq.A)
        opq.is_trained = True
    inner = faiss.IndexPQ(d, M, bits)
    index = faiss.IndexPreTransform(opq, inner)
    opq.train(X)  # by hand: an index does not train a transform that says it is trained
    inner.train(opq.apply(X))
    index.is_trained = True
    return index


def _opq(X: np.ndarray, name: str, n_bytes: int, start: str, rounds: int) -> Made:
    index = faiss_opq(X, n_bytes, 8, start, rounds)
    yield name, index, index.add


def _residual(X: np.ndarray, n_codebooks: int, *, refined: bool) -> Made:
    """Trained by a beam of 5, FAISS's default, then encoded by several: wider ones are slower and better."""
    index = faiss.IndexResidualQuantizer(X.shape[1], n_codebooks, 8)
    if refined:
        index.rq.train_type |= faiss.ResidualQuantizer.Train_refine_codebook
    index.train(X)
    for beam in (_BEAMS[-1],) if refined else _BEAMS:
        index.rq.max_beam_size = beam
        yield f"FAISS RQ{' refined' if refined else ''}, beam {beam}", index, index.add


def _product_residual(X: np.ndarray, n_splits: int, n_codebooks: int) -> Made:
    index = faiss.IndexProductResidualQuantizer(X.shape[1], n_splits, n_codebooks, 8)
    index.train(X)
    for beam in (5, 32):
        for part in range(n_splits):
            faiss.downcast_AdditiveQuantizer(index.prq.subquantizer(part)).max_beam_size = beam
        yield f"FAISS PRQ {n_splits} x {n_codebooks}, beam {beam}", index, index.add


def scann(python: Path | None, problem: Problem, columns: int) -> dict[str, Any]:
    """ScaNN's 4-bit codes of so many columns, by the peers' Python; it learns from the rows that it searches."""
    arrays = {"searched": problem.searched, "queries": problem.queries}
    row = by_peer(python, Path(__file__).with_name("peer_scann.py"), arrays, columns)
    if "found" in row:
        row["recall"] = recall_k_at_k(row.pop("found"), problem.truth, NEIGHBOURS)
    return {"codec": "ScaNN", **row}
