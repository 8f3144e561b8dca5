"""Kits of other projects have tests that are coroutines: they run here without a plugin."""

import asyncio
import inspect

import pytest


def pytest_configure(config: pytest.Config) -> None:
    for marker in ("benchmark", "vcr"):
        config.addinivalue_line("markers", f"{marker}: of a plugin that langchain-tests imports")


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = pyfuncitem._fixtureinfo.argnames
    asyncio.run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names}))
    return True
