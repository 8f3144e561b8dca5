"""Programs in processes of their own that start warm: forked from a server that has imported the libraries.

Python with torch and scikit-learn takes 4 CPU seconds to start, a fork of the server some hundredths. For tests of what
a process does: ranks, signals, exit codes. A test of what an import loads starts Python itself.
"""

import gc
import multiprocessing
import os
import runpy
import signal
import sys
from contextlib import suppress
from multiprocessing import forkserver, reduction
from socket import socket
from threading import Thread
from typing import Any, TextIO

os.environ.setdefault("OMP_NUM_THREADS", "1")  # the server starts no thread: its forks may fork in turn
FORKSERVER = multiprocessing.get_context("forkserver")
LIBRARIES = [
    *("faiss", "numba", "pytest", "scipy.optimize", "sklearn.base", "torch._dynamo", "torch.distributed"),
    *("nearkin.cli.app", "nearkin.embedding.two_tower.estimator", "nearkin.hashing.linear", "nearkin.index.index"),
    *("nearkin.jobs.compress", "nearkin.quantization.product", "nearkin.quantization.residual"),
    *("matplotlib.figure", "pyarrow.csv", "pyarrow.parquet", "pydantic.type_adapter", "uvicorn"),
    *("tests.distributed.jobs", "tests.faults.jobs", "tests.warm", "torch._decomp.decompositions_for_jvp"),
]
FORKSERVER.set_forkserver_preload(LIBRARIES)


def free_port() -> int:
    """A port that nobody listens on, below those that the system gives to connections: none takes it meanwhile."""
    for port in range(20_000 + os.getpid() % 8_000, 32_768):
        with socket() as probe, suppress(OSError):
            probe.bind(("", port))
            return port
    raise OSError("no port is free")


class _Descriptor:
    """A file descriptor that may be an argument of a process."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __reduce__(self) -> tuple[Any, ...]:
        return _Received, (reduction.DupFd(self.number),)


class _Received:
    def __init__(self, duplicate: Any) -> None:
        self.number: int = duplicate.detach()


class Program:
    """`python -m module words` in its own process: the part of `subprocess.Popen` that tests use."""

    def __init__(self, module: str, *words: object, env: dict[str, str] | None = None) -> None:
        (from_in, into), (out, to_out), (error, to_error) = os.pipe(), os.pipe(), os.pipe()
        self.stdin = os.fdopen(into, "w", encoding="utf-8")
        self.stdout, self.stderr = (os.fdopen(number, encoding="utf-8") for number in (out, error))
        arguments = ([module, *map(str, words)], dict(env or os.environ), os.getcwd())
        theirs = from_in, to_out, to_error
        self._process = FORKSERVER.Process(target=_run, args=(*arguments, [_Descriptor(number) for number in theirs]))
        try:
            forkserver.ensure_running()
            self._process.start()
        finally:
            for number in theirs:
                os.close(number)

    @property
    def pid(self) -> int:
        assert self._process.pid is not None
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        return self._process.exitcode

    def send_signal(self, number: int) -> None:
        os.kill(self.pid, number)

    def wait(self) -> int | None:
        self._process.join()
        return self._process.exitcode

    def close(self) -> None:
        """Kill it if it runs."""
        self._process.kill()
        self._process.join()
        with suppress(BrokenPipeError):
            self.stdin.close()
        self.stdout.close()
        self.stderr.close()

    def communicate(self, timeout: float = 120) -> tuple[str, str]:
        """What it wrote since the last line read, once it has ended; TimeoutError if it does not."""
        texts = ["", ""]
        self.stdin.close()

        def read(place: int, stream: TextIO) -> None:
            with stream:
                texts[place] = stream.read()

        readers = [Thread(target=read, args=pair, daemon=True) for pair in enumerate((self.stdout, self.stderr))]
        for reader in readers:
            reader.start()
        self._process.join(timeout)
        if self._process.exitcode is None:
            self._process.kill()
            raise TimeoutError(f"the process did not end within {timeout} seconds")
        for reader in readers:
            reader.join(timeout)
        return texts[0], texts[1]


def _run(words: list[str], env: dict[str, str], folder: str, streams: list[_Received]) -> None:
    gc.freeze()  # a collection would copy every page of the server
    for number, given in enumerate(streams):
        os.dup2(given.number, number)
        os.close(given.number)
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    os.environ.clear()
    os.environ.update(env)
    os.chdir(folder)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a run in the background ignores it
    sys.argv = words
    runpy.run_module(words[0], run_name="__main__", alter_sys=True)
