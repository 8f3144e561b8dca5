"""Where a map puts the rows: their own two columns, two principal axes, or a layout that keeps neighbours together."""

import numpy as np
from sklearn.decomposition import PCA
from sklearn.manifold import TSNE

from nearkin.index import Index
from nearkin.index.rescoring import normalised
from nearkin.web.explore.collection import Collection

SAMPLE = 3_000  # rows that t-SNE lays out; it takes half a minute on two cores
_FIT = 20_000  # rows by which the principal axes are found
_BATCH = 8_192
_AXES = 50  # principal axes that t-SNE sees: the usual number, van der Maaten and Hinton (2008), Section 4.2


def principal(collection: Collection, rows: np.ndarray) -> np.ndarray:
    """The two leading principal components of `rows` (m,), (m, 2); rows as they are asked."""
    rng = np.random.default_rng(0)
    some = rows if len(rows) <= _FIT else rng.choice(rows, _FIT, replace=False)
    X = _rows(collection, some)
    if X.shape[1] == 1:
        return np.hstack([_rows(collection, rows), np.zeros((len(rows), 1))])
    model = PCA(n_components=min(2, *X.shape), svd_solver="randomized", random_state=0).fit(X)
    parts = [model.transform(_rows(collection, rows[i : i + _BATCH])) for i in range(0, len(rows), _BATCH)]
    placed = np.concatenate(parts)
    return placed if placed.shape[1] == 2 else np.hstack([placed, np.zeros((len(placed), 1))])


def neighbour_preserving(collection: Collection, rows: np.ndarray) -> np.ndarray:
    """`rows` (m,) by scikit-learn's t-SNE, (m, 2).

    Of more than `SAMPLE` rows so many are drawn at random and laid out; each other one is put at the mean, weighted by
    1 / distance, of the three nearest of them.
    """
    rng = np.random.default_rng(0)
    drawn = np.arange(len(rows)) if len(rows) <= SAMPLE else np.sort(rng.choice(len(rows), SAMPLE, replace=False))
    X = _rows(collection, rows[drawn])
    seen = PCA(n_components=_AXES, random_state=0).fit_transform(X) if min(X.shape) > _AXES else X
    perplexity = min(30.0, max(2.0, (len(X) - 1) / 3))
    made = TSNE(init="pca", perplexity=perplexity, random_state=0, n_jobs=1).fit_transform(seen)
    if len(drawn) == len(rows):
        return made
    index, places = Index.build(X), np.empty((len(rows), 2))
    for first in range(0, len(rows), _BATCH):
        far, near = index.search(_rows(collection, rows[first : first + _BATCH]), 3)
        weight = 1 / np.sqrt(np.maximum(far, 1e-12))
        places[first : first + _BATCH] = (made[near] * weight[:, :, None]).sum(axis=1) / weight.sum(axis=1)[:, None]
    places[drawn] = made
    return places


def _rows(collection: Collection, rows: np.ndarray) -> np.ndarray:
    X = collection.vectors(rows)
    return normalised(X) if collection.metric == "cosine" else X
