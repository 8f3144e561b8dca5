"""Makers of semantic ids: the codes of rows before and after each row has an id that no other row has."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import faiss
import numpy as np

import nearkin as nk


@dataclass(frozen=True)
class Made:
    """`nearest` (n, levels) codes before rows are told apart, `ids` after, `error` (2,) mean squared, of both."""

    nearest: np.ndarray
    ids: np.ndarray
    error: tuple[float, float]


Maker = Callable[[np.ndarray, int, int, int], Made]  # of rows, levels, codes and a seed


def nearkin(X: np.ndarray, levels: int, codes: int, seed: int) -> Made:
    made = nk.SemanticIds(levels, codes, random_state=seed).fit(X)
    return Made(made.transform(X), made.ids_, (float(made.distortion_[0]), float(made.distortion_[1])))


def faiss_residual(X: np.ndarray, levels: int, codes: int, seed: int) -> Made:
    """FAISS's residual codes with its default training and a beam of 8."""
    quantizer = faiss.ResidualQuantizer(X.shape[1], levels, codes.bit_length() - 1)
    quantizer.max_beam_size, quantizer.cp.seed = 8, seed + 1
    quantizer.train(X)
    packed = quantizer.compute_codes(X)
    nearest = faiss.unpack_bitstrings(packed, levels, codes.bit_length() - 1).astype(np.int64)
    return counted(nearest, ((X - quantizer.decode(packed)) ** 2).sum(1).mean())


def plain_kmeans(X: np.ndarray, levels: int, codes: int, seed: int) -> Made:
    """k-means of what the levels before leave, the nearest centroid at each level: what most recommenders use."""
    left, found = X.copy(), []
    for level in range(levels):
        kmeans = faiss.Kmeans(X.shape[1], codes, niter=25, seed=seed + level, min_points_per_centroid=1)
        kmeans.train(left)
        found.append(kmeans.index.search(left, 1)[1][:, 0])
        left -= kmeans.centroids[found[-1]]
    return counted(np.column_stack(found), (left**2).sum(1).mean())


def semantic_id(X: np.ndarray, levels: int, codes: int, seed: int) -> Made:
    """`RQKMeans` of semantic-id 0.2.5, one start of k-means in place of ten, which take ten times as long."""
    from semantic_id import RQKMeans

    encoder = RQKMeans(n_levels=levels, n_clusters=codes, random_state=seed, n_init=1).fit(X)
    nearest = np.asarray(encoder.encode(X)).astype(np.int64)
    return counted(nearest, ((X - np.asarray(encoder.decode(nearest))) ** 2).sum(1).mean())


def counted(nearest: np.ndarray, error: float) -> Made:
    """Ids made different by a counter as one more code."""
    _, key = np.unique(nearest, axis=0, return_inverse=True)
    order = np.argsort(key, kind="stable")
    starts = np.flatnonzero(np.diff(key[order], prepend=-1))
    counter = np.empty(len(key), np.int64)
    counter[order] = np.arange(len(key)) - np.repeat(starts, np.diff(starts, append=len(key)))
    return Made(nearest, np.column_stack([nearest, counter]), (float(error), float(error)))


MAKERS: dict[str, Maker] = {
    "nearkin": nearkin,
    "FAISS residual, counter": faiss_residual,
    "residual k-means, counter": plain_kmeans,
    "semantic-id, counter": semantic_id,
}


def find_semantic_id(folder: Path | None) -> bool:
    """Whether semantic-id can be imported, from a folder of packages if one is given."""
    if folder is not None:
        sys.path.append(str(folder))
    try:
        import semantic_id  # noqa: F401
    except ImportError:
        return False
    return True
