"""The plain call, `nk.Index.build(X, n_bytes)`, next to FAISS's OPQ and residual codes at equal bytes.

    python -m benchmarks codecs plain --sets "GIST, 16" --codecs "ours, Index.build"

A seed draws 1,000 queries, the vectors to train on and, but for "known", others to be found. FAISS's codes are OPQ from
both starts, residual codes by beams of 5 and 32, and LSQ; where norms differ, the last byte may be the norm, and
vectors of norm 1 get it back. PQ is what squared errors are compared with. Two of the sets have no other benchmark:
word counts of WordNet's entries along principal directions, and patches of scikit-learn's two photographs.
"""

from argparse import Namespace
from collections.abc import Callable, Iterator
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np
from sklearn.datasets import load_sample_images
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.image import extract_patches_2d
from sklearn.feature_extraction.text import TfidfVectorizer

from benchmarks.codecs.run import made
from benchmarks.data import NEIGHBOURS, QUERIES, Problem, load
from benchmarks.harness import arrays
from benchmarks.jobs import Job, command
from nearkin._exact import nearest
from nearkin.linalg.orthonormal import unit_rows

MOST = 6_144  # vectors trained on, and other vectors to be found
CODECS = (
    "ours, Index.build", "FAISS PQ", "FAISS OPQ, identity", "FAISS OPQ, random", "FAISS RQ", "FAISS RQ, byte of length",
    "FAISS LSQ",
)  # fmt: skip


def entries(folder: Path) -> np.ndarray:
    """(40,000, 192): longer where words are rare."""
    counts = TfidfVectorizer(sublinear_tf=True, min_df=3, norm=None)  # pyright: ignore[reportArgumentType]
    weights = counts.fit_transform(arrays(folder, "wordnet_minilm", "text")[0])
    return TruncatedSVD(192, random_state=0).fit_transform(weights)


def patches(_: Path) -> np.ndarray:
    """(30,000, 192): 8 x 8 pixels in three colours."""
    cut = partial(extract_patches_2d, patch_size=(8, 8), max_patches=15_000, random_state=0)
    return np.concatenate([cut(image).reshape(15_000, -1) for image in load_sample_images().images])


def _all(name: str, folder: Path) -> np.ndarray:
    parts = load(name, folder, 10**6, 10**6)
    return np.concatenate([parts.learned, *([parts.searched] * (name != "vocabulary")), parts.queries])


class Case(NamedTuple):
    """Vectors (n, d), scaled to norm 1 for "cosine", and bytes; `known`: the vectors trained on are to be found; and
    `most` of them."""

    vectors: Callable[[Path], np.ndarray]
    n_bytes: int
    unit: bool = False
    known: bool = False
    most: int = MOST


CASES = {
    "sentences, cosine, 12": Case(partial(_all, "sentences"), 12, unit=True),
    "sentences, cosine, 24": Case(partial(_all, "sentences"), 24, unit=True),
    "known words, cosine, 10": Case(partial(_all, "vocabulary"), 10, unit=True, known=True),
    "SIFT, 100,000 vectors, 8": Case(partial(_all, "sift"), 8, known=True, most=100_000),
    "words, 12": Case(partial(_all, "vocabulary"), 12),
    "GIST, 16": Case(partial(_all, "gist"), 16),
    "200 clusters, 8": Case(partial(_all, "blobs"), 8),
    "WordNet entries, 12": Case(entries, 12),
    "photo patches, 12": Case(patches, 12),
}
_vectors = cache(lambda name, folder: CASES[name].vectors(folder).astype(np.float32))


def problem(name: str, folder: Path, seed: int, most: int) -> Problem:
    case, X = CASES[name], _vectors(name, folder)
    X = unit_rows(X) if case.unit else X
    order = np.random.default_rng(seed).permutation(len(X))
    size = min(most, (len(X) - QUERIES) // (2 - case.known))
    queries, learned, others = np.split(np.ascontiguousarray(X[order[: QUERIES + 2 * size]]), [QUERIES, QUERIES + size])
    searched = learned if case.known else others
    return Problem(learned, searched, queries, nearest(searched, queries, NEIGHBOURS)[1])


def jobs(given: Namespace) -> Iterator[tuple[str, Job]]:
    first = 1 if given.quick else None
    for name, seed in product(given.sets[:first], given.seeds[:first]):
        data = problem(name, given.data, seed, 2_048 if given.quick else CASES[name].most)
        for codec, work in made(data, CASES[name].n_bytes, ("ours", "faiss", "length")):
            if any(f"{codec},".startswith(f"{asked},") for asked in given.codecs):
                key = {"data": name, "seed": seed, "vectors": len(data.searched), "asked": codec}
                yield "codecs_plain", Job(key, work)


def main() -> None:
    settings = {"queries": QUERIES, "neighbours": NEIGHBOURS}
    command(__doc__, jobs, settings, sets=tuple(CASES), seeds=(0, 1, 2), codecs=CODECS)
