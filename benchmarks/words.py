"""Word vectors that anyone can make: the words of Python's standard library by what stands near them.

Positive pointwise mutual information of words within four of each other, contexts smoothed as word2vec does (power
.75), and the largest 304 directions of that matrix (Levy & Goldberg 2014). About 10,000 rows; the number depends on the
version of Python. A minute of one core.
"""

import re
import sysconfig
from collections import Counter
from functools import cache
from pathlib import Path

import numpy as np
from scipy.sparse import coo_matrix, csr_matrix
from sklearn.utils.extmath import randomized_svd

COLUMNS = 304  # of 300, the next that bytes and sixteens of columns fill
_FEWEST, _WINDOW, _POWER = 12, 4, 0.75


@cache
def word_vectors() -> np.ndarray:
    """Rows (n, 304) float32, one a word, in an order drawn once."""
    counts = _near_counts(_texts())
    words, contexts = np.asarray(counts.sum(axis=1)).ravel(), np.asarray(counts.sum(axis=0)).ravel() ** _POWER
    pairs = counts.tocoo()
    information = np.log(pairs.data / (words[pairs.row] * contexts[pairs.col] / contexts.sum()))
    kept = information > 0
    matrix = coo_matrix((information[kept], (pairs.row[kept], pairs.col[kept])), counts.shape).tocsr()
    directions, sizes, _ = randomized_svd(matrix, COLUMNS, random_state=0)
    return (directions * np.sqrt(sizes)).astype(np.float32)[np.random.default_rng(0).permutation(len(words))]


def _texts() -> list[list[str]]:
    """The words of each module, comments and names alike."""
    root = Path(sysconfig.get_paths()["stdlib"])
    files = (file for file in sorted(root.rglob("*.py")) if "site-packages" not in file.parts)
    return [re.findall(r"[a-z]{2,}", file.read_text(errors="ignore").lower()) for file in files]


def _near_counts(texts: list[list[str]]) -> csr_matrix:
    """How often words stand near each other (n, n), a pair s apart counted 1 / s, both ways."""
    often = Counter(word for text in texts for word in text)
    numbers = {word: number for number, word in enumerate(word for word, n in often.items() if n >= _FEWEST)}
    total = csr_matrix((len(numbers), len(numbers)))
    for apart in range(1, _WINDOW + 1):
        left, right = [], []
        for text in texts:
            row = np.array([numbers.get(word, -1) for word in text], np.int64)
            both = (row[:-apart] >= 0) & (row[apart:] >= 0)
            left.append(row[:-apart][both])
            right.append(row[apart:][both])
        places = np.concatenate(left), np.concatenate(right)
        total += coo_matrix((np.full(len(places[0]), 1 / apart), places), total.shape).tocsr()
    return (total + total.T).tocsr()
