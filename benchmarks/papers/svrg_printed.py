"""SVRG-SBB as printed: Figure 2 over fifty starts, Table II and Figure 5 over seeds and gradient passes."""

from statistics import mean, median, stdev
from typing import Any

from benchmarks.papers.record import Claim, Findings, from_json
from benchmarks.table import number

# Table II at 5 % and 10 % of noise: mAP of batch, SGD, SVRG, SBB_0 and the best SVRG-SBB
TABLE_II = {
    "gnmds": ((0.0474, 0.3120, 0.3460, 0.4659, 0.4872), (0.0386, 0.1865, 0.2112, 0.2971, 0.3085)),
    "ckl": ((0.0376, 0.4830, 0.5445, 0.4662, 0.5653), (0.0338, 0.1765, 0.2149, 0.2037, 0.2810)),
    "ste": ((0.0304, 0.2820, 0.5265, 0.4637, 0.6387), (0.0306, 0.1948, 0.3783, 0.0070, 0.4584)),
    "t-ste": ((0.0270, 0.3864, 0.7198, 0.0070, 0.8898), (0.0273, 0.2381, 0.5241, 0.0070, 0.6865)),
}
RIVALS = ("batch", "sgd", "svrg", "svrg-sbb0", "svrg-sbb")
JUDGED = 30  # gradient passes at which Table II is judged; the whole axis stands beside
BROKEN = 5  # of fifty runs, from which on a method is said to break
RUN = "python -m benchmarks.papers --run"


@from_json("Fig. 2", "papers_svrg_figure_2", f"{RUN} svrg_figure_2")
def figure_2_printed(found: Any) -> Findings:
    """Held-out error against gradient passes, fifty starts on one synthetic set."""
    rows = {(row["loss"], row["method"]): row for row in found}
    losses, runs = list(dict.fromkeys(row["loss"] for row in found)), found[0]["of"]

    def passes(loss: str, method: str) -> float:
        """The median of the passes to 0.15; infinite if half of the runs never arrive."""
        row = rows[loss, method]
        return median(row["reached"] + [float("inf")] * (row["of"] - len(row["reached"])))

    def each(method: str) -> str:
        return " / ".join(number(passes(loss, method)) for loss in losses)

    claims = []
    for loss in losses:
        sbb, svrg = passes(loss, "SVRG-SBB"), passes(loss, "SVRG")
        claims.append(
            Claim(f"{loss}: SVRG-SBB ahead of SVRG with its fixed step, median passes to 0.15", "clear margins",
                  f"{number(sbb)} against {number(svrg)}; with our epsilon "
                  f"{number(passes(loss, 'SVRG-SBB, our epsilon'))}",
                  sbb < svrg)
        )  # fmt: skip
    broken = {
        method: [runs - len(rows[loss, method]["reached"]) + rows[loss, method]["rose again"] for loss in losses]
        for method in ("SVRG-SBB_0", "SVRG-SBB, our epsilon", "SVRG-SBB")
    }
    risen = {method: [rows[loss, method]["rose again"] for loss in losses] for method in broken}
    claims += [
        Claim(f"SBB_0's error rises again, runs of {runs} by loss ({BROKEN} at least for some loss)", "it rises",
              listed(risen["SVRG-SBB_0"]), max(risen["SVRG-SBB_0"]) >= BROKEN),
        Claim(f"SBB_epsilon's never does, runs of {runs} by loss", "does not vibrate",
              listed(risen["SVRG-SBB"]), not any(risen["SVRG-SBB"])),
        Claim("mini-batches of 10 as fast as single terms, median passes by loss", "similar",
              f"{each('SVRG-SBB, batches of 10')} against {each('SVRG-SBB')}",
              all(passes(loss, "SVRG-SBB, batches of 10") <= 1.1 * passes(loss, "SVRG-SBB") for loss in losses)),
        Claim(f"median passes to 0.15 for {' / '.join(losses)}: batch, SGD, SVRG", "slower",
              "; ".join(each(method) for method in ("batch", "SGD", "SVRG"))),
        Claim("SVRG-SBB with our epsilon from U(0, 1), from N(0, .1)", "",
              f"{each('SVRG-SBB, our epsilon')}; {each('SVRG-SBB, our epsilon and start')}"),
    ]  # fmt: skip
    why = (
        f"The paper's data and setting, {runs} starts on one set of answers, uniform draws, {JUDGED * 5} gradient "
        "passes; it gives no step of the batch, ours is the longest that all losses bear."
    )
    decides = (
        f"epsilon and one published step: for t-STE SVRG's, 40 times that of the other losses, needs "
        f"{number(passes('t-ste', 'SVRG'))} passes, SVRG-SBB at the printed epsilon "
        f"{number(passes('t-ste', 'SVRG-SBB'))} and at a twenty-fifth of it "
        f"{number(passes('t-ste', 'SVRG-SBB, our epsilon'))}; SBB_0 rises again in {sum(risen['SVRG-SBB_0'])} of "
        f"{runs * len(losses)} runs."
    )
    return claims, why, decides


def listed(values: list[int]) -> str:
    return ", ".join(map(str, values))


Table = dict[tuple[str, float, str, int], list[dict[str, float]]]  # (loss, noise, solver, passes) -> a row a seed


def by_cell(found: list[dict[str, Any]]) -> Table:
    """The rows of every cell, seed by seed."""
    table: Table = {}
    for row in found:
        table.setdefault((row["loss"], row["noise"], row["solver"], row["passes"]), []).append(row)
    return table


def spread(rows: list[dict[str, float]], key: str = "map") -> str:
    values = [row[key] for row in rows]
    return f"{mean(values):.3f} ± {stdev(values):.3f}" if len(values) > 1 else f"{mean(values):.3f}"


def level(rows: list[dict[str, float]], key: str = "map") -> float:
    return mean(row[key] for row in rows)


@from_json("Table II", "papers_svrg_retrieval", f"{RUN} svrg_retrieval")
def table_ii(found: Any) -> Findings:
    """mAP of retrieval by every loss and solver after as many gradient passes."""
    table = by_cell(found)
    losses, noises = (list(dict.fromkeys(row[key] for row in found)) for key in ("loss", "noise"))
    claims = []
    for noise in noises:
        for loss in losses:
            theirs = dict(zip(RIVALS, TABLE_II[loss][noise == 0.1], strict=True))
            sbb = table[loss, noise, "svrg-sbb", JUDGED]
            for rival, ours in (("batch", "batch, SVRG's step"), ("sgd", "sgd"), ("svrg", "svrg"), ("svrg-sbb0",) * 2):
                other = table.get((loss, noise, ours, JUDGED), [])
                said = spread(other) if other else "overflows"
                claims.append(
                    Claim(f"{loss}, {noise:.0%}: SVRG-SBB ahead of {ours}, {JUDGED} passes",
                          f"{theirs['svrg-sbb']:.3f} against {theirs[rival]:.3f}", f"{spread(sbb)} against {said}",
                          not other or level(sbb) > level(other))
                )  # fmt: skip
        best = max(losses, key=lambda loss: level(table[loss, noise, "svrg-sbb", JUDGED]))
        convex = [level(table[loss, noise, "cvx", 12]) for loss in losses]
        claims += [
            Claim(f"{noise:.0%}: the best loss of SVRG-SBB", "t-ste", best, best == "t-ste"),
            Claim(f"{noise:.0%}: the convex form finds next to nothing (chance is 0.1)", "mAP 0.03",
                  f"mAP {min(convex):.2f} to {max(convex):.2f} after 12 passes", max(convex) < 0.2),
        ]  # fmt: skip
    axis = sorted({passes for _, _, _, passes in table})
    claims += [
        Claim(f"{loss}, 10%: mAP after {' / '.join(map(str, axis))} passes, {solver}", "",
              " / ".join(f"{level(table[key]):.2f}" if (key := (loss, 0.1, solver, k)) in table else "-" for k in axis))
        for loss in losses for solver in ("batch", "svrg", "svrg-sbb0", "svrg-sbb", "svrg-sbb, ours")
    ]  # fmt: skip
    seeds = len({row["seed"] for row in found})
    why = (
        f"MNIST for SUN397 (600 images of ten classes for 1,080 of eighteen), {seeds} seeds, judged after {JUDGED} "
        "passes, as the paper does not give its own; published constant steps, the printed epsilon, starts U(0, 1), "
        "the convex form (two seeds) with the STE implementation's fixed step."
    )
    fixed, free = (level(table["t-ste", 0.1, "batch" + ending, JUDGED]) for ending in (", SVRG's step", ""))
    decides = (
        f"Steps: at 10 % and t-STE a batch with SVRG's published step has mAP {fixed:.2f}, chance, as in the paper, "
        f"and with step .5 {free:.2f}. The printed epsilon is short for t-STE: "
        f"{level(table['t-ste', 0.1, 'svrg-sbb', JUDGED]):.2f} where SVRG's step has "
        f"{level(table['t-ste', 0.1, 'svrg', JUDGED]):.2f} and SBB_0, which does not break here, "
        f"{level(table['t-ste', 0.1, 'svrg-sbb0', JUDGED]):.2f}."
    )
    return claims, why, decides


@from_json("Fig. 5", "papers_svrg_retrieval", f"{RUN} svrg_retrieval")
def figure_5(found: Any) -> Findings:
    """Recall at K with a tenth of the answers flipped."""
    table = by_cell(found)
    losses = list(dict.fromkeys(row["loss"] for row in found))
    rivals = ("batch, SVRG's step", "sgd", "svrg", "svrg-sbb0")
    claims, behind = [], {}
    for loss in losses:
        ours = table[loss, 0.1, "svrg-sbb", JUDGED]
        for group, text in ((rivals[:2], "batch (SVRG's step) and SGD"), (rivals[2:3], "SVRG"), (rivals[3:], "SBB_0")):
            said, ahead = [], []
            for k in (40, 60, 100):
                key = f"recall@{k}"
                others = [table[loss, 0.1, rival, JUDGED] for rival in group if (loss, 0.1, rival, JUDGED) in table]
                best = max(others, key=lambda rows: level(rows, key))
                said.append(f"{spread(ours, key)} against {spread(best, key)}")
                ahead.append(level(ours, key) > level(best, key))
            claims.append(
                Claim(f"{loss}: SVRG-SBB's recall at 40, 60, 100; {text}", "superior at every K", ", ".join(said),
                      all(ahead))
            )  # fmt: skip
        behind[loss] = level(ours, "recall@60") - level(table[loss, 0.1, "svrg-sbb0", JUDGED], "recall@60")
    seeds = len({row["seed"] for row in found})
    why = f"MNIST for SUN397, {seeds} seeds, after {JUDGED} gradient passes, as in Table II."
    early, late = (level(table["ste", 0.1, "svrg-sbb0", passes]) for passes in (12, JUDGED))
    decides = (
        f"SBB_0 does not break on these answers: recall at 60 of SVRG-SBB less SBB_0's is "
        f"{', '.join(f'{value:+.2f} ({loss})' for loss, value in behind.items())}. Where it is behind it is past its "
        f"best (STE: mAP {early:.2f} after 12 passes, {late:.2f} after {JUDGED}), which SVRG-SBB has not reached yet."
    )
    return claims, why, decides
