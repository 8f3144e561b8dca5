"""Run as a program: every module is loaded, and an index used, where the system has no fork and no fcntl."""
# ruff: noqa: E402

import builtins
import ctypes
import importlib
import os
import pkgutil
import signal
import sys

for name in [name for name in sys.modules if name.partition(".")[0] == "nearkin"]:
    del sys.modules[name]

real, missing = builtins.__import__, {"fcntl", "grp", "posix", "pwd", "resource", "termios"}


def load(name, names=None, *more, **others):
    if name in missing and (names or {}).get("__name__", "").startswith("nearkin"):
        raise ImportError(f"No module named {name!r}")
    return real(name, names, *more, **others)


def library(name, *more, **others):
    if name is None:
        raise TypeError("argument of type 'NoneType' is not iterable")  # as on Windows
    return loaded(name, *more, **others)


builtins.__import__, loaded, ctypes.CDLL = load, ctypes.CDLL, library
for name in ["fork", "register_at_fork", "sched_getaffinity", "O_DIRECTORY", "uname"]:
    delattr(os, name)
del signal.SIGALRM, signal.pthread_kill
import nearkin as nk

for found in pkgutil.walk_packages(nk.__path__, "nearkin."):
    if found.name != "nearkin.__main__":
        try:
            importlib.import_module(found.name)
        except ImportError:
            if not found.name.startswith("nearkin.integrations."):  # their libraries may be missing
                raise
from nearkin.cli.app import app

index = nk.Index.build([[0.0, 1.0], [2.0, 3.0]], ids=["a", "b"])
index.add([[4.0, 5.0]], ids=["c"])
index.save(sys.argv[1])
assert nk.Index.load(sys.argv[1]).search([[4.0, 5.0]], 1)[1].tolist() == [["c"]]
for command in ["check", sys.argv[1]], ["remove", sys.argv[1], "a"]:
    try:
        app(command)
    except SystemExit as end:
        print("exit code", end.code)
