"""What the vectors are like, as far as it decides how well they compress."""

from dataclasses import asdict, dataclass

import numpy as np

from nearkin._types import Record
from nearkin._words import counted

_ROWS = 20_000  # of a sample: the figures below are averages


@dataclass(frozen=True)
class Diagnosis:
    """Facts of a set of vectors; all but the sizes are measured on a sample.

    unit_length: all rows have length 1, so that l2, ip and cosine rank alike.
    mean_share: share of the mean square that is the mean row's; near 1, rows differ in little.
    effective_dimension: (sum of variances)^2 / sum of their squares over the principal axes, 1 to d.
    constant_columns: columns that never change.
    query_shift: how far queries lie from the rows: squared distance between the mean query and the mean row, as a share
        of the rows' total variance; above about 0.1 the queries are of another kind than the rows.
    """

    rows: int
    dimensions: int
    unit_length: bool
    mean_share: float
    effective_dimension: float
    constant_columns: int
    query_shift: float

    def record(self) -> Record:
        """The facts as JSON holds them."""
        return asdict(self)

    def sentences(self) -> list[str]:
        """What they mean, for people."""
        said = [
            f"{counted(self.rows, 'vector')} of {counted(self.dimensions, 'column')}; the variance lies along about "
            f"{counted(round(self.effective_dimension), 'direction')}"
        ]
        if self.unit_length:
            said.append("all rows have length 1: l2, ip and cosine give the same neighbours")
        if self.mean_share > 0.5:
            said.append(f"{self.mean_share:.0%} of the squared length is the mean row; the codes are centred")
        if self.constant_columns:
            said.append(f"{counted(self.constant_columns, 'column')} without any change")
        if self.query_shift > 0.1:
            said.append(
                f"the queries are of another kind than the rows (their means are {self.query_shift:.2f} of the "
                "variance apart): judge by real queries only"
            )
        return said


def diagnose(X: np.ndarray, Q: np.ndarray) -> Diagnosis:
    """Look at rows X (n, d) and queries Q (q, d)."""
    few = X[:: max(1, len(X) // _ROWS)].astype(np.float64)
    lengths = np.linalg.norm(few, axis=1)
    mean = few.mean(axis=0)
    centred = few - mean
    variances = np.linalg.eigvalsh(centred.T @ centred / len(few)).clip(0)
    total, square = float(variances.sum()), float((few**2).sum(axis=1).mean())
    return Diagnosis(
        rows=len(X),
        dimensions=X.shape[1],
        unit_length=bool(np.allclose(lengths, 1.0, atol=1e-2)),
        mean_share=float(mean @ mean) / square if square else 0.0,
        effective_dimension=total**2 / float((variances**2).sum()) if total else 0.0,
        constant_columns=int((np.ptp(few, axis=0) == 0).sum()),
        query_shift=float(((Q.astype(np.float64).mean(axis=0) - mean) ** 2).sum()) / total if total else 0.0,
    )
