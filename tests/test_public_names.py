import inspect
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from types import FunctionType, ModuleType
from typing import Any

import pytest

import nearkin


def test_every_public_name_is_there():
    for name in nearkin.__all__:
        assert getattr(nearkin, name) is not None
    assert set(dir(nearkin)) == set(nearkin.__all__)


def test_an_unknown_name_lists_the_known():
    with pytest.raises(AttributeError, match=r"no attribute 'Indx'; public names are .*Index"):
        nearkin.Indx  # noqa: B018


def test_import_loads_nothing_heavy():
    heavy = "torch", "faiss", "sklearn", "scipy", "numba", "matplotlib"
    code = f"import sys, nearkin; print([name for name in {heavy!r} if name in sys.modules])"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "[]"


@pytest.mark.parametrize("given", [None, "4"])
def test_two_openmp_of_macos_get_one_thread_unless_the_user_chose(given: str | None) -> None:
    code = (
        "import os, sys; sys.platform = 'darwin'; import nearkin; print({n: os.environ.get(n) for n in sys.argv[1:]})"
    )
    names = "OMP_NUM_THREADS", "KMP_DUPLICATE_LIB_OK"
    env = {name: value for name, value in os.environ.items() if name not in names}
    env |= {"OMP_NUM_THREADS": given} if given else {}
    printed = subprocess.check_output([sys.executable, "-c", code, *names], text=True, env=env)
    assert printed.strip() == str(dict(zip(names, (given, None) if given else ("1", "TRUE"), strict=True)))


def unknown(name: str, value: object) -> Iterator[str]:
    """What a type checker does not know of a function or of a class's own methods: a parameter or a result."""
    if isinstance(value, type):
        for key, inner in vars(value).items():
            inner = inner.fget if isinstance(inner, property) else getattr(inner, "__func__", inner)
            if (
                isinstance(inner, FunctionType)
                and inner.__module__.startswith("nearkin")
                and (key == "__init__" or key[0] != "_")
            ):
                yield from unknown(f"{name}.{key}", inner)
    elif callable(value) and value.__module__.startswith("nearkin"):
        for one in inspect.signature(value).parameters.values():
            if one.annotation is one.empty and one.name not in ("self", "cls"):
                yield f"{name}: {one.name}"
        result = inspect.get_annotations(value).get("return", "Any")
        if result in (Any, "Any"):
            yield f"{name}: its result"


def test_a_type_checker_knows_every_public_name() -> None:
    known = dict[str, object]()
    for name in nearkin.__all__:
        value = getattr(nearkin, name)
        if isinstance(value, ModuleType):
            for key in vars(value)["__all__"]:
                with suppress(ImportError) if name == "integrations" else nullcontext():  # libraries that are not there
                    known[f"{name}.{key}"] = getattr(value, key)
        else:
            known[name] = value
    assert len(known) > 140
    assert [line for name, value in known.items() for line in unknown(name, value)] == []
