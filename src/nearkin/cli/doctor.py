"""`nearkin doctor`: what nearkin runs on, and what is missing."""

import os
import platform
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import typer

import nearkin
from nearkin._fields import Fields
from nearkin.cli.screen import NEGATIVE, Screen, pairs, table, threads_used

FAILED = "cannot be loaded"
LIBRARIES = ("numpy", "scipy", "sklearn", "numba", "faiss", "torch", "matplotlib")
EXTRAS: dict[str, tuple[tuple[str, ...], str]] = {  # extra -> (its modules, what needs them)
    "excel": (("openpyxl",), "tables in .xlsx files"),
    "hdf5": (("h5py",), "vectors in .h5 files"),
    "web": (("PIL", "starlette", "uvicorn"), "explore, ask"),
    "lance": (("lance",), "export --to lance"),
    "pgvector": (("pgvector", "psycopg"), "export --to pgvector"),
    "ray": (("ray", "pandas", "pyarrow"), "nk.export.BatchEncoder in Ray Data"),
    "langchain": (("langchain_core",), "nk.integrations.LangChainStore"),
    "llama-index": (("llama_index",), "nk.integrations.LlamaIndexStore"),
    "haystack": (("haystack",), "nk.integrations.HaystackStore"),
    "rl": (("gymnasium",), "examples/evolution_strategies.py"),
}


def doctor(screen: Screen) -> None:
    """Print what nearkin runs on: versions, threads, SIMD levels, the cache folder, and which extras are missing.

    Add the output to every report of a fault. The exit code is 1 if a library that nearkin needs cannot be loaded.

    Example:

    - nearkin doctor
    """
    libraries = {name: _attempt(lambda name=name: import_module(name).__version__) for name in LIBRARIES}
    broken = [name for name, version in libraries.items() if version.startswith(FAILED)]
    folder = None
    if not {"numba", "numpy"} & {*broken}:  # the folder that numba has written compiled loops to
        folder = import_module("nearkin.index.compiled").candidate_sums.stats.cache_path
    about: Fields = {
        "python": platform.python_version(),
        "platform": platform.platform(),
        "cores": os.cpu_count(),
        "threads": threads_used(),
        "cache_folder": folder,
    }
    simd = {name: _attempt(level) for name, level in SIMD.items()}
    found = import_module("threadpoolctl").threadpool_info()
    pools: list[Fields] = [
        {"kind": pool["user_api"], "threads": pool["num_threads"], "file": "/".join(Path(pool["filepath"]).parts[-2:])}
        for pool in sorted(found, key=lambda pool: (pool["user_api"], pool["filepath"]))
    ]
    missing = {extra: use for extra, (modules, use) in EXTRAS.items() if not all(map(find_spec, modules))}
    record = {"nearkin": nearkin.__version__, **about, "libraries": libraries, "simd": simd}
    tables = [
        pairs(f"nearkin {nearkin.__version__}", {name.replace("_", " "): value for name, value in about.items()}),
        pairs("Libraries", libraries),
        pairs("SIMD levels", simd),
        table("Copies of OpenMP and BLAS", ["kind", "threads", "file"], [list(pool.values()) for pool in pools]),
    ]
    if missing:
        tables.append(pairs("Missing extras", {f"pip install 'nearkin[{name}]'": use for name, use in missing.items()}))
    screen.finish({**record, "thread_pools": pools, "missing_extras": missing}, *tables)
    if folder is None:
        screen.say("nearkin: every process compiles again; set NUMBA_CACHE_DIR and MPLCONFIGDIR to writable folders")
    if broken:
        screen.say(f"nearkin: cannot load {', '.join(broken)}; install it again")
        raise typer.Exit(NEGATIVE)


def _attempt(function: Callable[[], str]) -> str:
    try:
        return function()
    except Exception as error:  # whatever a broken installation raises
        return f"{FAILED}: {type(error).__name__}: {error}"


def _numpy_level() -> str:
    found = import_module("numpy").show_config(mode="dicts")["SIMD Extensions"]
    return " ".join([*found["baseline"], *found["found"]])


SIMD: dict[str, Callable[[], str]] = {
    "numpy": _numpy_level,
    "faiss": lambda: import_module("faiss").SIMDConfig.get_level_name(),
    "torch": lambda: import_module("torch").backends.cpu.get_cpu_capability(),
    "numba": lambda: import_module("numba").config.CPU_NAME or import_module("llvmlite.binding").get_host_cpu_name(),
}
