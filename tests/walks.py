"""How many files of nearkin a call enters, and how many functions: `python -m tests.walks [--names]`.

A reader of the call opens these files. Imports are not counted: each call is made twice, and the second one is traced.
"""

import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import numpy as np
from typer.testing import CliRunner

import nearkin as nk
from nearkin.cli.app import app

HOME = Path(nk.__file__).parent


def entered(call: Callable[[], Any]) -> dict[CodeType, str]:
    """The functions that a call enters, each with its file below `nearkin`; lambdas and comprehensions count too."""
    found = dict[CodeType, str]()

    def look(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(str(HOME)) and code.co_name != "<module>":
            found[code] = Path(code.co_filename).relative_to(HOME).as_posix()

    call()
    threading.setprofile(look)
    sys.setprofile(look)
    try:
        call()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return found


def calls(folder: Path) -> dict[str, Callable[[], Any]]:
    """The calls by name, on small data in a folder."""
    X = np.random.default_rng(0).normal(size=(2_000, 32)).astype(np.float32)
    pairs = nk.data.planted_interactions(60, 50, random_state=0).interactions
    np.save(folder / "X.npy", X)
    lines = (f"{user},{item}" for user, item in zip(pairs.rows, pairs.indices, strict=True))
    (folder / "pairs.csv").write_text("\n".join(["user,item", *lines]) + "\n")
    index = nk.Index.build(X, 8)
    command = ["compress", str(folder / "X.npy"), "--out", str(folder / "index"), "--bytes", "8", "--overwrite"]
    return {
        "PQ.fit": lambda: nk.ProductQuantizer(8, 16, random_state=0).fit(X),
        "TwoTower.fit": lambda: nk.TwoTower(8).fit(pairs),
        "Index.search": lambda: index.search(X[:5], 10),
        "Index.build(X, 8)": lambda: nk.Index.build(X, 8),
        "nearkin compress": lambda: CliRunner().invoke(app, command, catch_exceptions=False),
        "pairs from a CSV": lambda: nk.read_interactions(folder / "pairs.csv"),
    }


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        for name, call in calls(Path(folder)).items():
            functions = entered(call)
            print(f"{name:20} {len(set(functions.values())):3} files, {len(functions):4} functions")
            for file in sorted(set(functions.values())) if "--names" in sys.argv else ():
                print(f"    {file}: {', '.join(code.co_name for code, where in functions.items() if where == file)}")


if __name__ == "__main__":
    main()
