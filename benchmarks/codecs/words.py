"""Word vectors that need no download: factors of how often words stand near each other in Python's standard library.

Positive pointwise mutual information in windows of four words, contexts smoothed by the power 3/4 (Levy & Goldberg
2014), then a truncated SVD, U sqrt(S). Other versions of Python have other words.
"""

import collections
import re
import sysconfig
from pathlib import Path

import numpy as np
from scipy.sparse import coo_matrix, csr_matrix
from sklearn.utils.extmath import randomized_svd

_FEWEST = 12  # times that a word occurs
_WINDOW = 4
_COLUMNS = 300


def vectors() -> np.ndarray:
    """(n, 300) float32, a row a word."""
    texts = _texts()
    counts = collections.Counter(word for text in texts for word in text)
    number = {word: i for i, word in enumerate(word for word, count in counts.items() if count >= _FEWEST)}
    near = csr_matrix((len(number), len(number)))
    for text in texts:
        ids = np.array([number.get(word, -1) for word in text])
        for step in range(1, _WINDOW + 1):
            one, other = ids[:-step], ids[step:]
            both = (one >= 0) & (other >= 0)
            pairs, times = np.unique(one[both].astype(np.int64) * len(number) + other[both], return_counts=True)
            found = coo_matrix((times / step, (pairs // len(number), pairs % len(number))), shape=near.shape).tocsr()
            near = near + found + found.T
    U, S, _ = randomized_svd(_information(near), _COLUMNS, random_state=0)
    return (U * np.sqrt(S)).astype(np.float32)


def _texts() -> list[list[str]]:
    root = Path(sysconfig.get_paths()["stdlib"])
    files = sorted(path for path in root.rglob("*.py") if "site-packages" not in path.parts)
    return [[word.lower() for word in re.findall("[A-Za-z]{2,}", path.read_text(errors="ignore"))] for path in files]


def _information(near: csr_matrix) -> csr_matrix:
    """What is positive of log(n(i, j) n / (n(i) m(j))), m the smoothed counts of contexts."""
    cells, words = near.tocoo(), np.asarray(near.sum(axis=1)).ravel()
    contexts = words**0.75 / (words**0.75).sum()
    values = np.log(cells.data / (words[cells.row] * contexts[cells.col]))
    kept = values > 0
    return coo_matrix((values[kept], (cells.row[kept], cells.col[kept])), shape=near.shape).tocsr()
