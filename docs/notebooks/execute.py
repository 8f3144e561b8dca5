"""Run the notebooks of this folder, cell after cell, and write what they print and draw into them.

`python docs/notebooks/execute.py` does all of them, without Jupyter: cells run in this process, one namespace for a
notebook. The tests run them too and compare what is printed.
"""

import ast
import base64
import contextlib
import io
import json
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.figure import Figure

HERE = Path(__file__).parent


def run(notebook: dict[str, Any]) -> dict[str, Any]:
    """The notebook with new outputs of its code cells."""
    names: dict[str, Any] = {"__name__": "notebook"}
    count = 0
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            count += 1
            cell["execution_count"], cell["outputs"] = count, outputs_of("".join(cell["source"]), names, count)
    return notebook


def outputs_of(code: str, names: dict[str, Any], count: int) -> list[dict[str, Any]]:
    """What a cell prints, its last expression's value (a figure as its picture), and the pictures that it left open."""
    tree = ast.parse(code)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed, open_before = io.StringIO(), set(plt.get_fignums())
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, "cell", "exec"), names)
        value = None if last is None else eval(compile(ast.Expression(last.value), "cell", "eval"), names)
    found: list[dict[str, Any]] = []
    if printed.getvalue():
        found.append({"name": "stdout", "output_type": "stream", "text": lines(printed.getvalue())})
    if isinstance(value, Figure):
        found.append(picture(value))
    elif value is not None:
        text = {"text/plain": lines(repr(value))}
        found.append({"data": text, "execution_count": count, "metadata": {}, "output_type": "execute_result"})
    for number in sorted(set(plt.get_fignums()) - open_before):
        found.append(picture(plt.figure(number)))
        plt.close(number)
    return found


def picture(figure: Figure) -> dict[str, Any]:
    """A figure as an output."""
    target = io.BytesIO()
    figure.savefig(target, format="png", dpi=80, bbox_inches="tight", facecolor="white", metadata={"Software": None})
    data = {"image/png": base64.b64encode(target.getvalue()).decode(), "text/plain": ["<Figure>"]}
    return {"data": data, "metadata": {}, "output_type": "display_data"}


def lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def written(cells: list[tuple[str, str]]) -> dict[str, Any]:
    """A new notebook of ("markdown" or "code", text) cells, in Jupyter's format 4.5."""
    made = []
    for number, (kind, text) in enumerate(cells):
        cell: dict[str, Any] = {
            "cell_type": kind,
            "id": f"cell-{number}",
            "metadata": {},
            "source": lines(text.strip()),
        }
        made.append(cell | ({"execution_count": None, "outputs": []} if kind == "code" else {}))
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    about = {"kernelspec": kernel, "language_info": {"name": "python"}}
    return {"cells": made, "metadata": about, "nbformat": 4, "nbformat_minor": 5}


def save(notebook: dict[str, Any], path: Path) -> None:
    path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    for file in sorted(HERE.glob("*.ipynb")):
        save(run(json.loads(file.read_text(encoding="utf-8"))), file)
