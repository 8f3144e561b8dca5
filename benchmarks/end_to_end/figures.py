"""The paper's Figure 3 from the JSON."""

from benchmarks.drawing import OURS, REST, RIVAL, legend, panels, save, styles

_ROLES = {"GCD-R": OURS, "GCD-G": OURS, "GCD-S": OURS, "Cayley": RIVAL}


def draw(curves: dict[str, list[float]], name: str) -> None:
    """The distortion while towers, codebooks and rotation train (the paper's Figure 3)."""
    figure, ((panel,),) = panels(1, 1, 6.4, 4)
    for rule, style in styles({rule: _ROLES.get(rule, REST) for rule in curves}).items():
        panel.plot(range(1, len(curves[rule]) + 1), curves[rule], markevery=max(1, len(curves[rule]) // 8), **style)
    panel.set(xlabel="step", ylabel="distortion")
    legend(panel)
    save(figure, f"end_to_end_{name}")
