"""SVRG-SBB (stochastic ordinal embedding): Tables I, II and Figures 2 to 5 (section 5)."""

import statistics
from typing import Any

from benchmarks.judging import interval, paired, told
from benchmarks.papers import theory_rows
from benchmarks.papers.record import Claim, Findings, Paper, from_json
from benchmarks.papers.svrg_printed import RUN, figure_1, figure_2_printed, figure_5, table_ii
from benchmarks.table import number

TITLE = "SVRG-SBB"
FEW = 12  # gradient passes
MUCH = 5  # points of error
BUDGET = 600  # passes after which a run has not arrived


@from_json("Table I", "papers_svrg_draws", f"{RUN} svrg_draws")
def table_i_printed(found: Any) -> Findings:
    """What Table I's text says of draws, steps, epsilon and starts, one departure of ours undone at a time."""
    sbb = {(r["loss"], r["uniform"], r["epsilon"], r["start"]): r for r in found if r["method"] == "SVRG-SBB"}
    sgd = {(r["loss"], r["decay"], r["start"]): r for r in found if r["method"] == "SGD" and r["uniform"]}
    fixed = {r["loss"]: r for r in found if r["method"] == "SVRG"}
    losses = list(dict.fromkeys(r["loss"] for r in found))
    ours, large, box = (False, 0.1, "N(0, .1)"), (False, 2.5, "N(0, .1)"), (False, 0.1, "U(0, 1)")
    drawn, printed = (True, 0.1, "N(0, .1)"), (True, 2.5, "U(0, 1)")
    seeds = len(found[0]["passes"])
    claims, ahead = [], []
    for loss in losses:
        one, other = sbb[loss, *printed], fixed[loss]
        claims.append(
            Claim(f"{loss}: SVRG-SBB with the printed draws, epsilon and starts reaches 0.15, runs", "all",
                  reached(one), None not in one["passes"])
        )  # fmt: skip
        gap = interval([b - a for a, b in zip(never(one), never(other), strict=True)])
        ahead.append(gap.ahead)
        claims.append(
            Claim(f"{loss}: it needs fewer passes than SVRG with the published step", "fewer",
                  f"{middle(one)} against {middle(other)}", gap.ahead and None not in one["passes"])
        )  # fmt: skip
        here, dash = sgd[loss, 0.0, "U(0, 1)"], loss == "gnmds"
        arrives = sum(p is not None for p in here["passes"]) * 2 > seeds
        claims.append(
            Claim(f"{loss}: SGD, published constant step, starts U(0, 1), "
                  f"{'does not reach' if dash else 'reaches'} 0.15, runs", "'-'" if dash else "reached",
                  f"{reached(here)}; decay .1: {reached(sgd[loss, 0.1, 'U(0, 1)'])}", arrives != dash)
        )  # fmt: skip
    for text, paper, one, other in (
        ("one shuffled order, then uniform draws", "uniform draws", ours, drawn),
        ("epsilon as printed, then ours", "2.5e-2", large, ours),
        ("starts U(0, 1), then N(0, .1)", "U(0, 1)", box, ours),
    ):
        shown = (" / ".join(middle(sbb[loss, *way]) for loss in losses) for way in (one, other))
        claims.append(Claim(f"{text}, median passes to 0.15 for {' / '.join(losses)}", paper, " against ".join(shown)))
    final = statistics.median(sbb["ckl", *printed]["final"])
    why = (
        f"The paper's data and setting, {seeds} seeds for its fifty, passes for its seconds, with its uniform draws, "
        "epsilon 2.5e-2 of the mean loss and starts U(0, 1); CKL is the crowd kernel itself. Seeds are paired; a run "
        "that never arrives counts as 600 passes. The paper's SGD has no decay."
    )
    decides = (
        f"CKL itself ends at {final:.3f}, above 0.15; t-STE's published step is 40 times the others': SVRG "
        f"{middle(fixed['t-ste'])} passes, SVRG-SBB {middle(sbb['t-ste', *printed])}."
    )
    return claims, why, decides


def never(row: dict[str, Any]) -> list[float]:
    """Passes of every seed, `BUDGET` for one that did not arrive."""
    return [BUDGET if count is None else count for count in row["passes"]]


def middle(row: dict[str, Any]) -> str:
    """The median of the passes, a dash if half of the runs never arrive."""
    return number(statistics.median(float("inf") if count is None else count for count in row["passes"]))


def reached(row: dict[str, Any]) -> str:
    return f"{sum(count is not None for count in row['passes'])} of {len(row['passes'])}"


@from_json("Fig. 3", "papers_eurodist", f"{RUN} eurodist")
def figure_3(found: Any) -> Findings:
    """The map of European cities."""
    rows: dict[str, dict[str, list[float]]] = {}
    for row in sorted(found, key=lambda row: row["seed"]):
        for key in ("rank correlation", "error"):
            rows.setdefault(row["method"], {}).setdefault(key, []).append(row[key])
    scaled = rows["metric scaling"]["rank correlation"]
    losses, worst = [method.split(",")[0] for method in rows if method.endswith("svrg-sbb")], []
    claims = []
    for loss in losses:
        free, gd, convex = (rows[f"{loss}, {solver}"] for solver in ("svrg-sbb", "gd", "projected-gram"))
        map_gap = interval(free["rank correlation"])
        harm = interval([100 * (a - b) for a, b in zip(free["error"], gd["error"], strict=True)])
        gap = paired(scaled, free["rank correlation"])
        worst.append(gap.mean)
        claims += [
            Claim(f"{loss}: the map is a reasonable one (rank correlation with the roads above 0.95)", "yes",
                  f"{map_gap.mean:.3f} ± {map_gap.half:.3f}", map_gap.above(0.95)),
            Claim(f"{loss}: sampling terms does not harm it: error on unseen answers against batch (within 1 point)",
                  "no harm", told(harm, "points more", "points less", ""), harm.within(1)),
            Claim(f"{loss}: metric scaling, which sees the distances, is better, rank correlation", "better",
                  told(gap, "higher", "lower", "", 3), gap.ahead),
            Claim(f"{loss}: convex form, correlation and error", "shown",
                  f"{statistics.mean(convex['rank correlation']):.3f}, {statistics.mean(convex['error']):.3f}"),
        ]  # fmt: skip
    why = (
        f"The paper's data, {len(scaled)} draws of 2,000 of 3,990 answers, paired; judged by ranks, as no map in the "
        "plane fits roads. Answers are ranks, and metric scaling fits lengths."
    )
    best = max(statistics.mean(rows[f"{loss}, svrg-sbb"]["rank correlation"]) for loss in losses)
    decides = f"By ranks metric scaling has {scaled[0]:.3f}, the best map from answers {best:.3f}: answers are ranks."
    return claims, why, decides


@from_json("Fig. 4", "papers_music", f"{RUN} music")
def figure_4(found: Any) -> Findings:
    """Held-out error on the music artists against gradient passes."""
    rows, claims = {(row["loss"], row["solver"]): row for row in found}, []
    for loss in dict.fromkeys(loss for loss, _ in rows):
        for solver, other in (("svrg", "step 1"), ("sgd", "SBB step")):
            early = (rows[loss, name]["early"] for name in (solver, "svrg-sbb"))
            gap = interval([100 * (a - b) for a, b in zip(*early, strict=True)])
            tuned = rows[loss, f"{solver}, {other}"]
            text = f"{loss}: SVRG-SBB falls much faster than {solver.upper()}, published step, error after {FEW} passes"
            claims += [
                Claim(f"{text} (by {MUCH} points)", "much faster", told(gap, "points lower", "points higher", ""),
                      gap.above(MUCH)),
                Claim(f"{loss}: median error of {solver.upper()} with {other}", "",
                      f"{tuned['median'][FEW // tuned['passes']]:.3f}"),
            ]  # fmt: skip
    diverged = [row["diverged"] for (_, solver), row in rows.items() if solver == "svrg-sbb0"]
    runs = rows["gnmds", "svrg-sbb0"]["of"]
    claims.append(
        Claim(f"SBB_0 tends to fail, diverged runs of {runs} by loss (half for some loss)", "steps of 1e35",
              ", ".join(map(str, diverged)), 2 * max(diverged) >= runs)
    )  # fmt: skip
    claims.append(Claim("a batch (projected gradient) falls slower", "slower", "not run on the artists"))
    why = (
        f"The paper's data, {runs} splits for fifty trials, paired. SVRG-SBB is level with SVRG of step 1 on the "
        "objective per object and with SGD by an SBB step."
    )
    decides = (
        f"SBB_0 breaks in {sum(diverged)} of {runs * len(diverged)} runs: among 400 artists snapshots hardly ever give "
        "a curvature near 0."
    )
    return claims, why, decides


FIGURES: Paper = (
    *(figure_1, table_i_printed, figure_2_printed),
    *(figure_3, figure_4, table_ii, figure_5, theory_rows.svrg_sbb),
)
