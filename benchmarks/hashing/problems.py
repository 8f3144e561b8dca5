"""Vectors for the hashing benchmark: raw pixels, features of a network that never saw the classes, GIST, SIFT,
sentences; for fits with labels alone digits, kinds of WordNet's entries, and tumours.

The network is trained here, on the digits 0 to 4 of MNIST's training half. Codes of its features are trained and judged
on the digits 5 to 9 alone, so no label of the evaluation has leaked into the features.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from sklearn.datasets import load_breast_cancer, load_digits
from torch import nn

from nearkin._exact import nearest

SEEN = 5  # digits below this train the network


@dataclass(frozen=True)
class Features:
    """Vectors to hash, with labels: the database, which is also what methods train on, and queries apart from it."""

    name: str
    base: np.ndarray  # (n, d) float32
    base_labels: np.ndarray  # (n,)
    queries: np.ndarray  # (q, d) float32
    query_labels: np.ndarray  # (q,)


def raw_pixels(data: Path) -> Features:
    """MNIST as it is: 60,000 x 784 and 10,000 queries."""
    with np.load(data / "mnist.npz") as mnist:
        base, queries = mnist["X_train"].astype(np.float32), mnist["X_test"].astype(np.float32)
        return Features("raw", base, mnist["y_train"], queries, mnist["y_test"])


def gist(data: Path) -> Features:
    """512 GIST descriptors of images: 15,000 or so of the training part and about 1,000 of the test part."""
    with np.load(data / "cifar10_gist512.npz") as z:
        X, y, asked = z["X"].astype(np.float32), z["y"], z["test"].astype(bool)
    return Features("gist", X[~asked], y[~asked], X[asked], y[asked])


def digits(data: Path) -> Features:
    """scikit-learn's images of 8 x 8 pixels: 1,297 and 500 queries."""
    del data
    X, y = map(np.asarray, load_digits(return_X_y=True))
    return _split("digits", X, y, 500)


def cancer(data: Path) -> Features:
    """scikit-learn's measurements of tumours, 30 columns in units of their spread, two classes: 419 and 150 queries."""
    del data
    X, y = map(np.asarray, load_breast_cancer(return_X_y=True))
    return _split("cancer", (X - X.mean(axis=0)) / X.std(axis=0), y, 150)


def kinds(data: Path) -> Features:
    """Sentence vectors of WordNet's entries whose widest hypernym has most entries below it, 20 classes: 1,798
    and 400 queries."""
    with np.load(data / "wordnet_minilm.npz") as z:
        X, wider = z["X"], np.arange(len(z["X"]))
        wider[z["hypernym"][:, 0]] = z["hypernym"][:, 1]
    for _ in range(6):  # 64 steps up
        wider = wider[wider]
    _, y, counts = np.unique(wider, return_inverse=True, return_counts=True)
    rows = np.flatnonzero(np.isin(y, np.argsort(-counts, kind="stable")[:20]) & (wider != np.arange(len(X))))
    return _split("kinds", X[rows], y[rows], 400)


def _split(name: str, X: np.ndarray, y: np.ndarray, n_queries: int) -> Features:
    order = np.random.default_rng(0).permutation(len(X))
    X, y = X[order].astype(np.float32), y[order]
    return Features(name, X[n_queries:], y[n_queries:], X[:n_queries], y[:n_queries])


def sentences(data: Path) -> Features:
    """40,000 entries of WordNet and 1,000 sentences that use them; the label is the entry."""
    with np.load(data / "wordnet_minilm.npz") as z:
        X, Q, rows = z["X"].astype(np.float32), z["Q"].astype(np.float32), z["answer"]
    return Features("sentences", X, np.arange(len(X)), Q[:1000], rows[:1000])


def sift(data: Path) -> Features:
    """40,000 SIFT descriptors of photos and 1,000 of others; the label is the nearest one's."""
    with np.load(data / "sift_bsds.npz") as z:
        X, Q = z["base"][:40_000].astype(np.float32), z["query"].astype(np.float32)
    return Features("sift", X, np.arange(len(X)), Q, nearest(X, Q, 1)[1][:, 0])


def network_features(data: Path, cache: Path) -> Features:
    """512 features (after ReLU) of a small network: 29,404 x 512 and 4,861 queries of unseen classes; cached."""
    file = cache / "mnist_network_features.npz"
    pixels = raw_pixels(data)
    if not file.exists():
        cache.mkdir(parents=True, exist_ok=True)
        network = train_network(pixels)
        base, queries = (extract(network, X) for X in (pixels.base, pixels.queries))
        np.savez(file, base=base, queries=queries)
    unseen, unseen_queries = pixels.base_labels >= SEEN, pixels.query_labels >= SEEN
    with np.load(file) as stored:
        return Features(
            "network",
            stored["base"][unseen],
            pixels.base_labels[unseen],
            stored["queries"][unseen_queries],
            pixels.query_labels[unseen_queries],
        )


def train_network(pixels: Features, epochs: int = 3, seed: int = 0) -> nn.Sequential:
    """A small convolutional classifier of the seen digits."""
    torch.manual_seed(seed)
    network = nn.Sequential(
        *(nn.Conv2d(1, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Flatten(), nn.Linear(64 * 49, 512), nn.ReLU(), nn.Linear(512, SEEN)),
    )
    seen = pixels.base_labels < SEEN
    X, y = as_images(pixels.base[seen]), torch.from_numpy(pixels.base_labels[seen].astype(np.int64))
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-3)
    for _ in range(epochs):
        for rows in torch.randperm(len(X)).split(128):
            optimizer.zero_grad()
            nn.functional.cross_entropy(network(X[rows]), y[rows]).backward()
            optimizer.step()
    return network


@torch.no_grad()
def extract(network: nn.Sequential, X: np.ndarray) -> np.ndarray:
    """The activations (n, 512) below the classifier."""
    return torch.cat([network[:-1](rows) for rows in as_images(X).split(1000)]).numpy()


def as_images(X: np.ndarray) -> torch.Tensor:
    """Rows of 784 pixel values as images in [0, 1]."""
    return torch.from_numpy(X / 255).reshape(-1, 1, 28, 28)
