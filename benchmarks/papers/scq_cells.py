"""SCQ's Table 2 as printed, and how cells of it are compared."""

from collections.abc import Iterable

from benchmarks.judging import Gap, paired, told
from benchmarks.papers.record import Claim

SETS = {"raw": "pixels", "network": "network features"}
METHODS = {"SpH": "spherical", "KMH": "k-means", "BA": "autoencoder", "ITQ": "ITQ", "SCQ-OnE": "OnE", "SCQ-OgE": "OgE"}
MEASURES = ("map", "prec@r2", "prec@1k")
RIVALS = ("SpH", "KMH", "BA", "ITQ")
BITS = (8, 16, 24, 32)
# Table 2: CIFAR-10, LabelMe-12-50k, SUN397, each at 8, 16, 24 and 32 bits
TABLE_2 = """
map SpH 17.09 18.77 20.19 20.96 11.68 13.24 14.39 14.97 9.13 13.53 16.63 19.07
map KMH 22.22 24.17 24.71 24.99 16.09 16.18 16.99 17.24 21.91 26.42 28.99 31.87
map BA 23.24 24.02 24.77 25.92 17.48 17.10 17.91 18.07 20.73 31.18 35.36 36.40
map ITQ 24.75 26.47 26.86 27.19 17.56 17.73 18.52 19.09 20.16 30.95 35.92 37.84
map SCQ-OnE 27.08 29.64 30.57 30.82 19.76 21.96 23.61 24.25 23.37 34.09 38.13 40.54
map SCQ-OgE 26.98 29.33 30.65 31.15 20.63 23.07 23.54 24.68 23.44 34.73 39.47 41.82
prec@r2 SpH 18.04 30.58 37.28 21.40 11.72 19.38 25.14 13.66 6.88 23.68 37.21 27.39
prec@r2 KMH 21.97 36.64 42.33 27.46 15.20 26.17 32.09 18.62 9.50 36.14 51.27 39.29
prec@r2 BA 23.67 38.05 42.95 23.49 16.22 25.75 31.35 13.14 10.50 37.75 50.38 41.11
prec@r2 ITQ 24.38 38.41 42.96 28.63 15.86 25.46 31.43 17.66 9.78 35.15 49.85 46.34
prec@r2 SCQ-OnE 24.48 36.49 41.53 43.90 16.69 27.30 34.63 33.04 8.68 30.12 43.54 50.41
prec@r2 SCQ-OgE 24.35 38.30 43.01 44.01 16.57 27.80 34.77 34.64 8.76 29.31 45.03 51.88
prec@1k SpH 22.93 26.99 29.50 31.98 14.07 16.78 18.52 19.27 10.79 15.36 18.21 20.07
prec@1k KMH 32.30 33.65 35.52 37.77 21.07 20.97 21.41 21.98 18.94 24.93 25.74 28.26
prec@1k BA 31.73 34.16 35.67 37.01 21.14 21.71 22.64 22.83 19.22 28.68 31.31 31.80
prec@1k ITQ 32.40 36.35 37.25 37.96 21.01 22.00 22.98 23.63 18.86 28.62 31.56 32.74
prec@1k SCQ-OnE 33.38 37.82 39.13 40.40 22.91 25.39 26.55 27.16 19.26 29.95 32.72 34.08
prec@1k SCQ-OgE 33.41 38.33 39.54 40.70 23.94 25.94 26.99 27.46 20.10 29.95 33.43 35.00
"""
Cells = dict[int, list[dict[str, dict[str, float]]]]  # bits -> cells: method -> measure -> value


def paper_cells() -> Cells:
    """Table 2, three cells for each number of bits."""
    cells: Cells = {bits: [{method: {} for method in METHODS} for _ in range(3)] for bits in BITS}
    for line in TABLE_2.split("\n")[1:-1]:
        measure, method, *values = line.split()
        for place, value in enumerate(values):
            cells[BITS[place % 4]][place // 4][method][measure] = float(value)
    return cells


def wins(cells: Cells, measure: str, bits: Iterable[int] = BITS) -> tuple[int, int]:
    """In how many cells OnE or OgE is ahead of all four others, and of how many."""
    ahead = [
        cell[method][measure] > max(cell[other][measure] for other in RIVALS)
        for b in bits if b in cells for cell in cells[b] for method in ("SCQ-OnE", "SCQ-OgE")
    ]  # fmt: skip
    return sum(ahead), len(ahead)


def oge_ahead(cells: Cells) -> tuple[int, int]:
    ahead = [cell["SCQ-OgE"]["map"] > cell["SCQ-OnE"]["map"] for of_bits in cells.values() for cell in of_bits]
    return sum(ahead), len(ahead)


def share(counts: tuple[int, int]) -> str:
    return f"{counts[0]} of {counts[1]}"


def gap_to_rivals(cells: Cells, method: str, measure: str, bits: Iterable[int] = BITS) -> Gap:
    """Points by which OnE or OgE is ahead of the best of the four others, paired over the numbers of bits."""
    chosen = [cell for b in bits if b in cells for cell in cells[b]]
    best = [max(cell[other][measure] for other in RIVALS) for cell in chosen]
    return paired([cell[method][measure] for cell in chosen], best)


def table_2_claims(ours: Cells, *, judged: bool = True) -> list[Claim]:
    """What the paper says of Table 2, and whether our cells show it: ahead in every cell, and by the interval."""
    paper, claims, points = paper_cells(), [], ("points ahead", "points behind", "")
    for text, measure in (("in mAP", "map"), ("in precision at 1000", "prec@1k")):
        count = wins(ours, measure)
        for method in ("SCQ-OnE", "SCQ-OgE"):
            gap = gap_to_rivals(ours, method, measure)
            claims.append(
                Claim(f"{method.removeprefix('SCQ-')} is ahead of the best of the four others {text}",
                      f"{share(wins(paper, measure))} cells of both", told(gap, *points), gap.ahead if judged else None)
            )  # fmt: skip
        claims.append(Claim(f"cells in which OnE or OgE is ahead of all four {text}", share(wins(paper, measure)),
                            share(count), count[0] == count[1] if judged else None))  # fmt: skip
    count = wins(ours, "prec@r2", (32,))
    if count[1]:
        claims.append(Claim("the same in precision within radius 2, at 32 bits", share(wins(paper, "prec@r2", (32,))),
                            share(count), count[0] == count[1] if judged else None))  # fmt: skip
    chosen = [cell for of_bits in ours.values() for cell in of_bits]
    gap = paired([cell["SCQ-OgE"]["map"] for cell in chosen], [cell["SCQ-OnE"]["map"] for cell in chosen])
    claims.append(Claim("OgE is ahead of OnE in mAP", f"{share(oge_ahead(paper))} cells", told(gap, *points),
                        gap.ahead if judged else None))  # fmt: skip
    most = max(ours)
    claims.append(
        Claim(f"mAP at {most} bits, %: ITQ / OnE / OgE (paper: CIFAR-10)", trio(paper[most][0]), trio(ours[most][0]))
    )
    return claims


def kind_decides(cell: dict[str, dict[str, float]]) -> str:
    """The sentence under Table 2: how far apart the best rival and the better of OnE and OgE are."""
    ours = max(cell[method]["map"] for method in ("SCQ-OnE", "SCQ-OgE"))
    rival = max(RIVALS, key=lambda method: cell[method]["map"])
    why = (
        "pixels' digits lie along large variances, which ITQ keeps whole"
        if ours < cell[rival]["map"] + 2
        else "the kind of features that the claim is about"
    )
    return f"The features: mAP {ours:.1f} of the better of OnE and OgE, {cell[rival]['map']:.1f} of {rival}; {why}."


def trio(cell: dict[str, dict[str, float]]) -> str:
    return " / ".join(f"{cell[method]['map']:.1f}" for method in ("ITQ", "SCQ-OnE", "SCQ-OgE"))
