"""One browser for all tests of pages."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.web.browser import complaints, opened_browser


@pytest.fixture(scope="session")
def _driver() -> Iterator[Any]:
    with opened_browser() as driver:
        yield driver


@pytest.fixture
def browser(_driver: Any) -> Iterator[Any]:
    """The browser, which leaves a test's page before its server ends."""
    yield _driver
    _driver.get("about:blank")
    complaints(_driver)  # which empties the console
