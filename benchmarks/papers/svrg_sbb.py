"""SVRG-SBB (stochastic ordinal embedding): Tables I, II and Figures 2 to 5 (section 5).

python -m benchmarks.papers.svrg_sbb
"""

from typing import Any

from benchmarks.papers.record import Claim, Figure, Findings, Paper, from_json, not_measured, show
from benchmarks.papers.svrg_printed import figure_2_printed, figure_5, table_ii
from benchmarks.table import Results, number

TITLE = "SVRG-SBB"
# Table I, mean seconds to error 0.15: SVRG, SVRG-SBB with b = 1, the fastest mini-batch, the largest
TABLE_I = {
    "gnmds": (7.9204, 0.9119, 0.4581, 1.0431),
    "ckl-printed": (2.4075, 1.1720, 0.6013, 1.3083),
    "ste": (3.2328, 1.0656, 0.5414, 1.1346),
    "t-ste": (3.4525, 0.5935, 0.3541, 0.5802),
}
TARGET = 0.15
FEW = 12  # gradient passes


def counted(flags: list[bool]) -> str:
    return f"{sum(flags)} of {len(flags)}"


@from_json("Table I, our settings", "ordinal_table1", "python -m benchmarks ordinal --table1")
def table_i(found: Any) -> Findings:
    """Time to a held-out error of 0.15 on 100 points and 10,000 answers."""
    rows = {(row["loss"], row["method"]): row for row in found["rows"]}
    claims, gains = [], []
    for loss, (svrg, single, best, large) in TABLE_I.items():
        ms = {b: rows[loss, f"svrg-sbb b={b}"]["mean"] for b in (1, 5, 10, 20, 50, 100, 200)}
        published, tuned = (rows[loss, f"svrg {step}"]["mean"] for step in ("published step", "hand-tuned"))
        gains.append(ms[1] / min(ms.values()))
        claims += [
            Claim(f"{loss}: mini-batch SVRG-SBB at least 4 times faster than SVRG", f"{number(svrg / best)} times",
                  f"{number(published / min(ms.values()))} times the published step, "
                  f"{number(tuned / min(ms.values()))} times a hand-tuned one", published >= 4 * min(ms.values())),
            Claim(f"{loss}: SVRG / b = 1 / best b / largest b",
                  f"{svrg:.2f} / {single:.2f} / {best:.2f} / {large:.2f} s",
                  " / ".join(number(value) for value in (published, ms[1], min(ms.values()), ms[200])) + " ms"),
        ]  # fmt: skip
    cvx = [rows[loss, "projected-gram (60 steps)"]["reached"] > 0 for loss in TABLE_I]
    slower = [rows[loss, "svrg-sbb b=200"]["mean"] > rows[loss, "svrg-sbb b=20"]["mean"] for loss in TABLE_I]
    claims += [
        Claim("mini-batches are much faster than b = 1 (1.5 times at least, every loss)", "1.7 to 2.0 times",
              f"{min(gains):.2f} to {max(gains):.2f} times", min(gains) >= 1.5),
        Claim("too large a batch is slower, losses", "4 of 4", counted(slower), all(slower)),
        Claim("the convex form does not reach 0.15, losses that do", "0 of 4", counted(cvx), not any(cvx)),
    ]  # fmt: skip
    why = (
        "Ours: ten seeds for fifty, compiled code for MATLAB, the convex form with an SBB step; CKL is STE as printed "
        "(eq. 47), CKL itself never reaches 0.15."
    )
    decides = (
        "Lazy rows make batches of one as cheap as of a hundred (their gain is "
        f"{min(gains):.2f} to {max(gains):.2f} times), SVRG is slow by its published step, t-STE apart, and with an "
        f"SBB step the convex form arrives for {counted(cvx)} losses."
    )
    return claims, why, decides


@from_json("Table I", "papers_svrg_draws", "python -m benchmarks.papers --run svrg_draws")
def table_i_printed(found: Any) -> Findings:
    """What Table I's text says of draws, steps, epsilon and starts, one departure of ours undone at a time."""
    sbb = {(r["loss"], r["uniform"], r["epsilon"], r["start"]): r for r in found if r["method"] == "SVRG-SBB"}
    sgd = {(r["loss"], r["uniform"], r["decay"]): r for r in found if r["method"] == "SGD"}
    fixed = {r["loss"]: r for r in found if r["method"] == "SVRG"}
    losses = list(dict.fromkeys(r["loss"] for r in found))
    ours, large, box = (False, 0.1, "N(0, .1)"), (False, 2.5, "N(0, .1)"), (False, 0.1, "U(0, 1)")
    drawn, printed = (True, 0.1, "N(0, .1)"), (True, 2.5, "U(0, 1)")

    def passes(way: tuple[bool, float, str]) -> list[float]:
        return [sbb[loss, *way]["passes"] or float("inf") for loss in losses]

    def text(values: list[float]) -> str:
        return " / ".join(number(value) for value in values)

    def runs(rows: list[dict[str, Any]]) -> str:
        return f"{sum(r['reached'] for r in rows)} of {sum(r['of'] for r in rows)}"

    all_printed = [sbb[loss, *printed] for loss in losses]
    arriving = {decay: [sgd[loss, True, decay] for loss in losses] for decay in (0.0, 0.01, 0.1)}
    steps = [fixed[loss]["passes"] or float("inf") for loss in losses]
    ahead = [a < b for a, b in zip(passes(printed), steps, strict=True)]
    claims = [
        Claim("SVRG-SBB reaches 0.15 with uniform draws, epsilon 2.5e-2 of the mean loss and starts U(0, 1), runs",
              "all", runs(all_printed), all(r["reached"] == r["of"] for r in all_printed)),
        Claim("so set, it needs fewer passes than SVRG with the published step, losses", "4 of 4",
              f"{counted(ahead)}: {text(passes(printed))} against {text(steps)} for {' / '.join(losses)}", all(ahead)),
        Claim("SGD with the published step, constant, reaches 0.15, losses", "3 of 4",
              counted([r["reached"] > 0 for r in arriving[0.0]]), sum(r["reached"] > 0 for r in arriving[0.0]) >= 3),
        Claim("the same, runs, and with a decay of .01 and of .1", "constant",
              ", ".join(runs(rows) for rows in arriving.values())),
        Claim("one shuffled order instead of uniform draws, passes to 0.15", "uniform draws",
              f"{text(passes(ours))} against {text(passes(drawn))}"),
        Claim("epsilon as printed, passes to 0.15", "2.5e-2", f"{text(passes(large))} against {text(passes(ours))}"),
        Claim("starts U(0, 1), passes to 0.15", "U(0, 1)", f"{text(passes(box))} against {text(passes(ours))}"),
    ]  # fmt: skip
    why = f"The paper's data and setting, {all_printed[0]['of']} seeds for its fifty, passes for its seconds."
    decides = (
        "t-STE's published step, 40 times that of the other losses: with it SVRG needs "
        f"{number(steps[losses.index('t-ste')])} passes and SVRG-SBB at the printed epsilon "
        f"{number(passes(printed)[losses.index('t-ste')])}. SGD's row is decided by the decay, which the paper has "
        f"not: {runs(arriving[0.0])} runs arrive without, {runs(arriving[0.1])} with .1."
    )
    return claims, why, decides


def passes(curve: dict[str, list[float]]) -> float | None:
    """Gradient passes until the median error is at most 0.15."""
    return next((x for x, error in zip(curve["x"], curve["median"], strict=True) if error <= TARGET), None)


@from_json("Fig. 2, our epsilon", "ordinal_table1", "python -m benchmarks ordinal --table1")
def figure_2(found: Any) -> Findings:
    """Held-out error against gradient passes on the synthetic points."""
    rows = {(row["loss"], row["method"]): row for row in found["rows"]}
    claims = []
    for loss in TABLE_I:
        ours, published, tuned = (
            passes(found["curves"][loss][method])
            for method in ("svrg-sbb b=1", "svrg published step", "svrg hand-tuned")
        )
        claims.append(
            Claim(f"{loss}: SVRG-SBB ahead of SVRG with a fixed step, passes to 0.15", "clear margins",
                  f"{number(ours)} against {number(published)} (published step), {number(tuned)} (hand-tuned)",
                  ours is not None and (published is None or ours < published))
        )  # fmt: skip
    ends = [rows[loss, "svrg-sbb0"]["final_error"] for loss in TABLE_I]
    failed, steady = (
        [rows[loss, method]["of"] - rows[loss, method]["reached"] for loss in TABLE_I]
        for method in ("svrg-sbb0", "svrg-sbb b=1")
    )
    claims += [
        Claim("SBB_0 breaks down: its median error ends above 0.15 for some loss", "its error rises",
              f"medians {', '.join(f'{end:.3f}' for end in ends)}; broken runs of {found['seeds']}: "
              f"{', '.join(map(str, failed))}", max(ends) > TARGET),
        Claim("SBB_epsilon never does, broken runs", "stable", ", ".join(map(str, steady)), not any(steady)),
    ]  # fmt: skip
    why = "Ours: ten seeds with separate data, starts N(0, .1), epsilon .1 on our sum per object, one shuffled order."
    decides = (
        f"SBB_0 breaks in single runs ({', '.join(map(str, failed))} of {found['seeds']}), not in the median; but for "
        "t-STE one fixed step tuned by hand comes level with SVRG-SBB, whose gain is that nothing needs tuning."
    )
    return claims, why, decides


@from_json("Fig. 3", "papers_eurodist", "python -m benchmarks.papers --run eurodist")
def figure_3(found: Any) -> Findings:
    """The map of European cities."""
    rows = {row["method"]: row for row in found}
    scaled = rows["metric scaling"]["rank correlation"]
    losses = [method.split(",")[0] for method in rows if method.endswith("svrg-sbb")]
    claims = []
    for loss in losses:
        free, gd, convex = (rows[f"{loss}, {solver}"] for solver in ("svrg-sbb", "gd", "projected-gram"))
        claims += [
            Claim(f"{loss}: the map is a reasonable one (rank correlation with the roads > 0.95)", "yes",
                  f"{free['rank correlation']:.3f}, {free['km from metric scaling']:.0f} km from metric scaling",
                  free["rank correlation"] > 0.95),
            Claim(f"{loss}: sampling terms does not harm it, error on unseen answers", "no harm",
                  f"{free['error']:.3f} against {gd['error']:.3f} in batch", free["error"] < gd["error"] + 0.01),
            Claim(f"{loss}: convex form, correlation and error", "shown",
                  f"{convex['rank correlation']:.3f}, {convex['error']:.3f}"),
        ]  # fmt: skip
    best = max(rows[f"{loss}, svrg-sbb"]["rank correlation"] for loss in losses)
    claims.append(
        Claim("metric scaling, which sees the distances, is better than all", "better",
              f"rank correlation {scaled:.3f} against {best:.3f} at best", scaled > best)
    )  # fmt: skip
    why = "The paper's data, 2,000 of 3,990 answers, one seed; judged by ranks, as no map in the plane fits roads."
    decides = (
        f"What is asked: by ranks the best map from answers has {best:.3f} and metric scaling {scaled:.3f}; answers "
        "are ranks, and metric scaling fits lengths."
    )
    return claims, why, decides


def figure_4(results: Results) -> Figure:
    """Held-out error on the music artists against gradient passes."""
    name, source = "Fig. 4", "papers_music"
    found = results.read(source)
    beside = results.read("ordinal_music")
    if not found or not beside:
        return not_measured(
            name, "Run `python -m benchmarks ordinal --music` and `python -m benchmarks.papers --run music`."
        )
    rows = {(row["loss"], row["solver"]): row for row in found}

    def early(loss: str, solver: str) -> float:
        row = rows[loss, solver]
        return row["median"][FEW // row["passes"]]

    claims = []
    for loss in dict.fromkeys(loss for loss, _ in rows):
        ours, curves = early(loss, "svrg-sbb"), beside["curves"][loss]
        tuned = {"svrg": curves["svrg"]["median"][FEW // 3], "sgd": curves["sgd"]["median"][FEW]}
        for solver, other in (("svrg", "step 1"), ("sgd", "SBB step")):
            published = early(loss, solver)
            claims.append(
                Claim(f"{loss}: SVRG-SBB falls much faster than {solver.upper()}, error after {FEW} passes",
                      "much faster",
                      f"{ours:.3f} against {published:.3f} (published step), {tuned[solver]:.3f} ({other})",
                      ours < published - 0.05)
            )  # fmt: skip
    diverged = [row["diverged"] for (_, solver), row in rows.items() if solver == "svrg-sbb0"]
    claims.append(
        Claim("SBB_0 tends to fail, diverged runs of 10 by loss (5 at least)", "steps of 1e35",
              ", ".join(map(str, diverged)), max(diverged) >= 5)
    )  # fmt: skip
    why = "The paper's data, ten splits for fifty trials ('much' asks for 0.05)."
    decides = (
        f"SBB_0 breaks in {sum(diverged)} of {10 * len(diverged)} runs: among 400 artists two snapshots hardly ever "
        "give a curvature near 0. Against the published steps SVRG-SBB is far ahead, level with SVRG of step 1 on the "
        "objective per object and with SGD by an SBB step."
    )
    return Figure(name, tuple(claims), why, f"{source}, ordinal_music", decides)


FIGURES: Paper = (table_i_printed, table_i, figure_2_printed, figure_2, figure_3, figure_4, table_ii, figure_5)

if __name__ == "__main__":
    show(TITLE, FIGURES)
