"""ESL (extreme similarity learning): its costs, eqs. 15 and 28, and what it says of convergence.

    python -m benchmarks.papers.extreme_similarity

The text at hand ends inside section 3.4, before the experiments: there are claims to judge, and no curves.
"""

import math

from benchmarks.papers.record import Claim, Figure, Paper, not_measured, show
from benchmarks.table import Results, number

TITLE = "ESL"
SAMPLED = ("in-batch softmax", "sampled bce")
WHOLE = ("als", "gauss-newton, alternating", "gauss-newton, joint", "adam, random start", "l-bfgs")


def cost(results: Results) -> Figure:
    """One gradient in O(m + n), beside all m n pairs, beside one value."""
    name, source = "Eqs. 15, 28: cost", "two_tower"
    rows = [row for row in (results.read(source) or {}).get("scaling", []) if "m" in row]
    if not rows:
        return not_measured(name, "Run `python -m benchmarks two_tower --scaling`.")
    brute = [row for row in rows if "brute force" in row]

    def slope(part: str, first: dict, last: dict) -> float:
        return math.log(last[part] / first[part]) / math.log(last["m"] / first["m"])

    first, last = brute[0], brute[-1]
    near, far = slope("gradient", first, last), slope("gradient", last, rows[-1])
    square = slope("brute force", first, last)
    claims = [
        Claim(f"the gradient's cost is linear in m + n, slope from {first['m']:,} to {last['m']:,} (at most 1.3)", "1",
              f"{near:.2f}", near <= 1.3),
        Claim(f"and from there to {rows[-1]['m']:,}", "1",
              f"{far:.2f}; the products it cannot do without {slope('floor', last, rows[-1]):.2f}", far <= 1.3),
        Claim("all m n pairs one by one cost m n, slope", "2", f"{square:.2f}", square > 1.7),
        Claim(f"at m = n = {last['m']:,}: all pairs over ours", "far more",
              f"{number(last['brute force'] / last['gradient'])} times", last["brute force"] > 10 * last["gradient"]),
    ]  # fmt: skip
    measured = results.read("papers_value_and_gradient")
    if measured:
        shares = [row["gradient"] / row["value"] for row in measured]
        claims.append(
            Claim("a value costs about what a gradient does (a third at least)", "similar",
                  f"the gradient {min(shares):.1f} to {max(shares):.1f} times the value", max(shares) <= 3)
        )  # fmt: skip
    why = "Random pairs, k = 64, 100 pairs a row, one thread."
    decides = (
        "The cache: the work is linear, but once a table does not fit it every pair fetches its row from memory; the "
        f"slope is {near:.2f} up to {last['m']:,} rows and {far:.2f} beyond, that of the products alone "
        f"{slope('floor', last, rows[-1]):.2f}."
    )
    return Figure(name, tuple(claims), why, f"{source}, papers_value_and_gradient", decides)


def all_pairs(results: Results) -> Figure:
    """All pairs against sampled ones (section 1)."""
    name, source = "Section 1: all pairs", "two_tower"
    found = results.read(source) or {}
    claims = []
    for data in ("ml100k", "gowalla"):
        rows = found.get(data, {})
        if not {"als", *SAMPLED} <= rows.keys():
            continue
        best = max(SAMPLED, key=lambda method: rows[method]["ndcg@100"])
        whole, sampled = rows["als"]["ndcg@100"], rows[best]["ndcg@100"]
        claims.append(
            Claim(f"{data}: sampling unobserved pairs is inferior, NDCG@100", "inferior",
                  f"{best} {sampled:.3f} against {whole:.3f} from all pairs", sampled < whole)
        )  # fmt: skip
    if not claims:
        return not_measured(name, "Run `python -m benchmarks two_tower`.")
    why = "ALS on id tables of 64 dimensions beside sampled losses within the time given, gowalla with one seed."
    return Figure(name, tuple(claims), why, source)


def convergence(results: Results) -> Figure:
    """Which solvers are efficient."""
    name, source = "Section 6: convergence", "two_tower"
    found = results.read(source) or {}
    claims = [
        Claim(f"{data}: NDCG@100 after CPU s", "", "; ".join(
            f"{way} {rows[way]['ndcg@100']:.3f} ({rows[way]['seconds']:.1f} s)" for way in WHOLE if way in rows))
        for data, rows in ((data, found.get(data, {})) for data in ("ml100k", "gowalla")) if rows
    ]  # fmt: skip
    why = (
        "The text at hand ends before the experiments, so that nothing can be laid beside our figures; from a random "
        "start on gowalla Gauss-Newton and L-BFGS need more than the seconds given."
    )
    return not_measured(name, why, source, tuple(claims))


def nonlinear(results: Results) -> Figure:
    """Towers that are networks on features."""
    del results
    return not_measured(
        "Section 2: nonlinear towers",
        "The paper's subject: networks on features beside id tables, sampled zeros of the same squared loss. The "
        "two-tower benchmark is the place for it (`python -m benchmarks two_tower`); no claim is judged here.",
        "two_tower",
    )


FIGURES: Paper = (cost, all_pairs, convergence, nonlinear)

if __name__ == "__main__":
    show(TITLE, FIGURES)
