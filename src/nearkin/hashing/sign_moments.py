"""The one product pass that learning needs, over rows in memory or streamed from elsewhere: X^T sign(X V)."""

from typing import Protocol

import numpy as np

from nearkin._distributed import ALONE, Group
from nearkin.hashing.spectrum import Blocks, Spectrum, row_blocks
from nearkin.statistics import CrossProduct

BLOCK = 1024  # rows and their projections stay in the cache between the two products: one pass over memory, not two


class CentredRows(Protocol):
    """Centred data in principal coordinates, of which only sign moments are ever asked."""

    spectrum: Spectrum

    def sign_moment(self, V: np.ndarray) -> np.ndarray:
        """Return Z^T sign(Z V) / n (m, L) float64 for rows Z (n, m) in principal coordinates and V (m, L)."""
        ...

    def truncate(self, n_components: int) -> "CentredRows":
        """Return the same rows along their first `n_components` axes."""
        ...


class StoredRows:
    """Rows kept in memory, rotated once into principal coordinates: an iteration costs 2 n m L multiply-adds."""

    def __init__(self, spectrum: Spectrum, coordinates: np.ndarray, group: Group = ALONE) -> None:
        self.spectrum = spectrum
        self.coordinates = coordinates  # (n, m), of a group each process has its own rows
        self.group = group

    @classmethod
    def of(cls, X: np.ndarray, spectrum: Spectrum, group: Group = ALONE) -> "StoredRows":
        """Rotate X (n, d) into the axes of its spectrum."""
        mean, axes = spectrum.mean.astype(X.dtype), spectrum.axes.astype(X.dtype)
        coordinates = np.empty((len(X), spectrum.rank), X.dtype)
        for block, out in zip(row_blocks(X), row_blocks(coordinates), strict=True):
            np.matmul(block - mean, axes, out=out)
        return cls(spectrum, coordinates, group)

    def sign_moment(self, V: np.ndarray) -> np.ndarray:
        """See `CentredRows`."""
        moment = CrossProduct(*V.shape)
        V = V.astype(self.coordinates.dtype)
        for block in row_blocks(self.coordinates, BLOCK):
            moment.update(block, _signs_in_place(block @ V))
        return self.group.merge(moment).finalize()

    def truncate(self, n_components: int) -> "StoredRows":
        """See `CentredRows`; the columns are copied, as an iteration reads them many times."""
        return StoredRows(
            self.spectrum.truncate(n_components),
            np.ascontiguousarray(self.coordinates[:, :n_components]),
            self.group,
        )


class StreamedRows:
    """Rows read anew in every pass, so that n is bounded by the source and not by memory: 2 n d L per iteration."""

    def __init__(self, spectrum: Spectrum, blocks: Blocks, group: Group = ALONE) -> None:
        self.spectrum = spectrum
        self.blocks = blocks
        self.group = group

    def sign_moment(self, V: np.ndarray) -> np.ndarray:
        """See `CentredRows`."""
        spectrum = self.spectrum
        moment = CrossProduct(len(spectrum.mean), V.shape[1])
        for block in self.blocks():
            P, mean = (spectrum.axes @ V).astype(block.dtype), spectrum.mean.astype(block.dtype)
            for rows in row_blocks(block, BLOCK):
                centred = rows - mean
                moment.update(centred, _signs_in_place(centred @ P))
        return spectrum.axes.T @ self.group.merge(moment).finalize()

    def truncate(self, n_components: int) -> "StreamedRows":
        """See `CentredRows`."""
        return StreamedRows(self.spectrum.truncate(n_components), self.blocks, self.group)


def _signs_in_place(Y: np.ndarray) -> np.ndarray:
    """Replace Y by its signs with sign(0) = +1 (SCQ, eq. 4)."""
    np.greater_equal(Y, 0, out=Y, casting="unsafe")
    Y *= 2
    Y -= 1
    return Y
