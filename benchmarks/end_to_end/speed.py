"""What a step of the layer costs."""

from typing import Any

import torch

from benchmarks.harness import median_ms
from nearkin.quantization import IndexingLayer, optimizers
from nearkin.quantization.layer.layer import nearest

KINDS = {
    "greedy": "givens-greedy", "greedy, every fourth": ("givens-greedy", 4), "Cayley": "cayley", "frozen": "frozen",
    "exact": "exact",
}  # fmt: skip
SEVERAL = 4  # steps are timed together


def speed() -> list[dict[str, Any]]:
    """CPU milliseconds of a step at batch 1,024: the floor, the layer forward, with backward, with its update."""
    table = []
    for d in (64, 128, 512):
        M, x, g = d // 8, torch.randn(1024, d), torch.randn(1024, d)
        made = {}
        for name, kind in KINDS.items():
            layer = IndexingLayer(d, M, rotation=kind, buffer_size=1024, max_iter=3)
            layer.start(torch.randn(2048, d).numpy())
            made[name] = (layer, optimizers(layer, [torch.nn.Parameter(torch.zeros(1))]))
        R, C = made["frozen"][0].rotation_matrix, made["frozen"][0].codebooks.detach()
        rows = x.clone().requires_grad_()

        def floor(R: Any = R, C: Any = C, x: Any = x) -> None:
            z = x @ R
            nearest(z, C)
            z @ R.T

        def forward(layer: Any, rows: Any = rows) -> None:
            with torch.no_grad():
                layer(rows)

        def steps(layer: Any, moving: list, rows: Any = rows, g: Any = g) -> None:
            for _ in range(SEVERAL):
                for optimizer in moving:
                    optimizer.zero_grad()
                rows.grad = None
                T, distortion = layer(rows)
                ((T * g).sum() + distortion).backward()
                for optimizer in moving:
                    optimizer.step()

        functions: dict[str, Any] = {"floor": floor, "forward": lambda layer=made["frozen"][0]: forward(layer)}
        functions |= {name: (lambda pair=pair: steps(*pair)) for name, pair in made.items()}
        found = median_ms(functions, 5)
        table.append({"d": d, "M": M, **found, **{name: found[name] / SEVERAL for name in made}})
        print(table[-1], flush=True)
    return table
