"""How do answers get into R? Tables for its packages loe and smacof, from the answers of any file that nearkin reads.

python examples/answers_for_r.py --answers answers.csv --out tables

In R, loe takes the answers themselves, as numbers of objects from 1, in the order of objects.csv:

    SOE(as.matrix(read.csv("tables/loe.csv")), N)

smacof takes a summary: for each pair the share of its comparisons in which it was the far one, NA where it was in none:

    d <- as.matrix(read.csv("tables/smacof.csv", row.names = 1, check.names = FALSE))
    w <- 1 - is.na(d); d[is.na(d)] <- 1
    mds(d, type = "ordinal", weightmat = w)
"""

import argparse
import csv
from pathlib import Path

import numpy as np

import nearkin as nk
from nearkin.records import Comparisons


def votes_of(answers: Comparisons) -> np.ndarray:
    """(m,) how often each answer was given."""
    return np.ones(len(answers)) if answers.weights is None else answers.weights.astype(np.float64)


def for_loe(answers: Comparisons) -> np.ndarray:
    """(votes, 4) rows i, j, k, l of numbers from 1, d(i, j) < d(k, l); ValueError for weights that are no votes."""
    votes = votes_of(answers)
    if (votes != np.round(votes)).any():
        raise ValueError("answers have weights that are no whole numbers; loe takes votes only")
    return np.repeat(answers.quadruplets().astype(np.int64) + 1, votes.astype(np.int64), axis=0)


def for_smacof(answers: Comparisons) -> np.ndarray:
    """(n, n) shares in which each pair was the far one, NaN for a pair that was never compared."""
    rows, n = answers.quadruplets().astype(np.int64), answers.n_objects
    counts = np.zeros((2, n, n))  # of each pair's comparisons: it is near, it is far
    for far, pairs in enumerate((rows[:, :2], rows[:, 2:])):
        for a, b in (pairs.T, pairs.T[::-1]):
            np.add.at(counts[far], (a, b), votes_of(answers))
    total = counts.sum(axis=0)
    shares = np.divide(counts[1], total, out=np.full(total.shape, np.nan), where=total > 0)
    np.fill_diagonal(shares, 0.0)
    return shares


def write(path: Path, header: list[str], rows: list[list]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([header, *rows])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--answers", default=None, help="table of comparisons (default: random ones about points)")
    parser.add_argument("--out", type=Path, default=Path("tables"), help="folder to write the tables to")
    given = parser.parse_args()
    if given.answers is None:
        points = np.random.default_rng(0).normal(size=(20, 2))
        answers = nk.data.comparisons_from_vectors(points, 500, random_state=0)
    else:
        answers = nk.read_comparisons(given.answers)
    given.out.mkdir(parents=True, exist_ok=True)
    names = [str(name) for name in answers.objects.tolist()]
    write(given.out / "objects.csv", ["number", "object"], [[r, name] for r, name in enumerate(names, 1)])
    write(given.out / "loe.csv", ["i", "j", "k", "l"], for_loe(answers).tolist())
    shares = [["NA" if np.isnan(share) else f"{share:.6g}" for share in row] for row in for_smacof(answers).tolist()]
    write(given.out / "smacof.csv", ["", *names], [[name, *row] for name, row in zip(names, shares, strict=True)])
    print(f"{len(answers)} answers about {len(names)} objects: loe.csv, smacof.csv and objects.csv in {given.out}")


if __name__ == "__main__":
    main()
