"""One index of a collection: what it finds by its codes, and how far its codes lie from the rows."""

import faiss
import numpy as np

from nearkin.export.source import Source
from nearkin.index import Index
from nearkin.index.faiss_file import inverted_file
from nearkin.index.rescoring import KeptVectors, normalised


class Coded:
    """An index whose rows are known by the collection's row numbers.

    `kept` are the exact rows in the order of this index, or None; `rows` (n,) says which row of the collection stands
    at each position of this index, None where they are the same. The index itself is not changed.
    """

    def __init__(self, name: str, index: Index, kept: KeptVectors | None, rows: np.ndarray | None = None) -> None:
        view = Index(index.faiss_index, index.n_features, index.metric, index.quantizer, kept)
        self.name, self.index, self.source = name, view, Source(view)
        self._rows, self._places = rows, None if rows is None else np.argsort(rows)

    @property
    def what(self) -> str:
        """The code in words."""
        quantizer = self.index.quantizer
        lists = f", {self.index.n_probe} of {self.index.n_lists} lists visited" if self.index.n_lists else ""
        name = "exact vectors" if quantizer is None else type(quantizer).__name__
        return f"{name}, {self.index.bytes_per_vector} bytes a row{lists}"

    def search(self, Q: np.ndarray, k: int, oversample: int | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Scores and rows (q, k) as `Index.search` gives them; row -1 where it finds none."""
        scores, places = self.index.search(Q, k, oversample=oversample)
        return scores, places if self._rows is None else np.where(places < 0, -1, self._rows[places])

    def scores(self, Q: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Scores (q, c) of queries Q (q, d) with the codes of `rows` (q, c); nan where a row is -1."""
        far = self.source.distances(self.source.asked(Q), self._at(rows))
        return np.where(rows < 0, np.nan, far if self.index.metric in ("l2", "hamming") else -far)

    def decoded(self, rows: np.ndarray) -> np.ndarray:
        """What the codes of `rows` (b,) stand for, (b, d)."""
        return self.source.decoded(self._at(rows))

    def signs(self, rows: np.ndarray) -> np.ndarray:
        """The bits of `rows` (b,) as float32 0 and 1, (b, n_bits)."""
        return np.unpackbits(self.source.codes[self._at(rows)], axis=1).astype(np.float32)

    def errors(self, X: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Squared distance (b,) between exact rows X (b, d) and what their codes stand for."""
        X = normalised(X) if self.index.metric == "cosine" else X
        return ((X - self.decoded(rows)) ** 2).sum(axis=1)

    def lists(self) -> np.ndarray | None:
        """The list (n,) of the inverted file that holds each row, None where there is none."""
        found = inverted_file(self.index.faiss_index)
        if found is None:
            return None
        lists = np.full(len(self.index), -1)
        for number in range(found.nlist):
            size = found.invlists.list_size(number)
            if size:
                places = faiss.rev_swig_ptr(found.invlists.get_ids(number), size)
                lists[places if self._rows is None else self._rows[places]] = number
        return lists

    def _at(self, rows: np.ndarray) -> np.ndarray:
        return rows if self._places is None else np.where(rows < 0, -1, self._places[rows])
