"""What every test gets: one thread, no screen, no global randomness."""

import os

os.environ.setdefault("MPLBACKEND", "Agg")
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("NUMBA_NUM_THREADS", "1")

import gc
import re
import subprocess
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:  # the process that only hands tests to others loads no library
    from pathlib import Path

    import numpy as np

gc.disable()  # until all tests are collected: imports take a fifth less

# Files that start programs by `tests.processes`, or a browser. One process runs them all: one server, one browser.
FORKING = (
    *("tests/distributed/", "tests/faults/", "tests/web/", "tests/cli/test_app.py", "tests/test_guard.py"),
    *("tests/contracts/test_optimizers_ddp.py", "tests/test_packaging.py"),
)
# The other files that take longest, the longest first.
LONG = [
    *("test_examples", "test_docs", "jobs/test_sweep", "quantization/test_product", "quantization/test_residual"),
    *("contracts/test_optimizers", "test_other_cpus", "index/test_changes", "contracts/test_tower_solvers"),
    *("index/test_coarse_scan", "embedding/two_tower/test_choice", "journeys/test_stumbling_blocks"),
    *("cli/test_renumbering", "cli/test_evaluate", "contracts/test_ecosystem"),
]


class Failures:
    """Each failure is shown when it happens, and not only at the end."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            screen = self.config.pluginmanager.get_plugin("terminalreporter")
            screen.write_line(f"\nFAILED {report.nodeid}\n{report.longreprtext[-1_500:]}")


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Failures(config))


def changed(root: "Path") -> set[str]:
    """Files of tests of what the last commit or the working tree changed."""
    command = "git diff --name-only HEAD~1; git ls-files --others --exclude-standard"
    names = subprocess.run(command, shell=True, cwd=root, capture_output=True, encoding="latin-1").stdout.splitlines()
    return {re.sub(r"^src/nearkin/(.*/)?_?(\w+\.py)$", r"tests/\1test_\2", name) for name in names}


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Tests of what has changed come first, then long files: when two processes share the tests, neither waits for the
    other's last file."""
    places = {f"tests/{name}.py": place for place, name in enumerate(LONG)}
    places |= dict.fromkeys(changed(config.rootpath), -3)
    last = "tests/contracts/test_optimizers_ddp.py"  # of those that fork: others have compiled its loops by then

    def place(item: pytest.Item) -> int:
        if item.nodeid.startswith(FORKING):
            return -1 if item.nodeid.startswith(last) else -2
        return places.get(item.nodeid.partition("::")[0], len(LONG))

    items.sort(key=place)
    _spare()
    gc.enable()
    gc.freeze()  # collections pass over the libraries
    gc.set_threshold(10_000)


def _spare() -> None:
    """What is slow and the same in every test is done once, or not: a disk is not waited for.

    Programs that tests start do all of it.
    """
    import torch
    import typer.testing

    torch.set_num_threads(1)
    os.fsync = os.fstat  # which refuses what is no open file, too
    typer.testing._get_command = cache(typer.testing._get_command)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """A file is for one process, so that its fixtures are made once; files start in the order above."""
    from xdist.scheduler import LoadFileScheduling

    class Scheduling(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return "forking" if nodeid.startswith(FORKING) else super()._split_scope(nodeid)

    config.option.loadscopereorder = False
    return Scheduling(config, log)


@pytest.fixture
def few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is learned for the order of near rows and for a map takes few steps: for tests of what is done with it."""
    from sklearn.manifold import TSNE

    order = import_module("nearkin.quantization.order")
    monkeypatch.setattr(order, "DEFAULTS", replace(order.DEFAULTS, steps=60, code_steps=30))
    monkeypatch.setitem(TSNE.__init__.__kwdefaults__, "max_iter", 250)


@pytest.fixture
def few_rounds(few_steps: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Codebooks are learned from one start in few rounds too: for tests that do not look at how well codes
    do."""
    training = import_module("nearkin.quantization.training")
    start_rotation = training.start_rotation

    def first_start(plan: Any, *given: Any) -> dict[str, Any]:
        named = training.STARTS[0] if plan.init == "auto" else plan.init
        return {plan.init: start_rotation(replace(plan, init=named), *given)[named]}

    monkeypatch.setattr(training, "start_rotation", first_start)
    for module, place, name, most in (("product", 1, "max_iter", 6), ("residual", 3, "max_iter", 4)):
        learn = import_module(f"nearkin.quantization.{module}").learn
        monkeypatch.setattr(f"nearkin.quantization.{module}.learn", _capped(learn, place, name, most))


@pytest.fixture
def few_fits(few_rounds: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Few codecs are compared at a size too."""
    best = import_module("nearkin.quantization.best")
    listed = best.candidates
    few = {"product", "float16"}
    monkeypatch.setattr(best, "candidates", lambda *given, **how: [one for one in listed(*given, **how) if one in few])


def _capped(learn: Callable[..., Any], place: int, name: str, most: int) -> Callable[..., Any]:
    """`learn` with no more rounds than `most`, which the field `name` of its argument number `place` gives."""

    def capped(*given: Any) -> Any:
        plan = replace(given[place], **{name: min(getattr(given[place], name), most)})
        return learn(*given[:place], plan, *given[place + 1 :])

    return capped


@pytest.fixture
def few_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ellipses of a map are drawn from few fits: for tests of the commands that draw them."""
    from nearkin import OrdinalEmbedding

    monkeypatch.setattr(OrdinalEmbedding.bootstrap, "__defaults__", (8,))


@pytest.fixture
def few_curves(few_draws: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of a map's curves has one fit."""
    monkeypatch.setattr("nearkin.jobs.embed_comparisons.SHARES", (0.5,))
    monkeypatch.setattr("nearkin.jobs.embed_comparisons.DIMENSIONS", (1,))


@pytest.fixture
def no_pictures(few_curves: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """A map's pictures are empty too: for tests of what else is written."""

    def save(figure: object, stem: "Path") -> None:
        for ending in (".svg", ".pdf", ".png"):
            stem.with_suffix(ending).write_text("<svg></svg>")

    monkeypatch.setattr("nearkin.jobs.embed_comparisons._save", save)


@pytest.fixture
def quick_faiss(monkeypatch: pytest.MonkeyPatch) -> None:
    """FAISS's factory without what takes seconds: 50 rounds of OPQ by 8 bits, and polysemous numbers of centroids."""
    import faiss

    from nearkin._faiss import innermost

    factory = faiss.index_factory

    def quick(*words: Any) -> Any:
        index = factory(*words)
        if isinstance(index, faiss.IndexPreTransform) and words[1].startswith("OPQ"):
            first = faiss.downcast_VectorTransform(index.chain.at(0))
            first.niter, first.pq = 2, faiss.ProductQuantizer(first.d_out, first.M, 4)
            first.own_fields = False
        codes = innermost(index)
        if isinstance(codes, faiss.IndexPQ | faiss.IndexIVFPQ):
            codes.do_polysemous_training = False
        return index

    monkeypatch.setattr(faiss, "index_factory", quick)


@pytest.fixture
def rng() -> "np.random.Generator":
    import numpy as np

    return np.random.default_rng(0)
