"""A real browser for the tests of pages; they skip, with the reason, where there is none."""

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from starlette.applications import Starlette

CHROMIUM, DRIVER = Path(os.environ.get("CHROMIUM", "/usr/bin/chromium")), Path("/usr/bin/chromedriver")
# whether a script or a style of the page has no answer of the server
LOST = """performance.getEntriesByType("resource").some(
    (one) => ["script", "link"].includes(one.initiatorType) && !one.responseStatus)"""


@contextmanager
def opened_browser() -> Iterator[Any]:
    """Chromium without a window, driven by Selenium; its console is kept."""
    pytest.importorskip("selenium")
    if not (CHROMIUM.is_file() and DRIVER.is_file()):
        pytest.skip(f"no browser: {CHROMIUM} and {DRIVER} (Debian: apt install chromium chromium-driver)")
    from selenium import webdriver
    from selenium.common.exceptions import WebDriverException
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = str(CHROMIUM)
    for option in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--window-size=1200,900"):
        options.add_argument(option)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})

    class Chromium(webdriver.Chrome):
        def get(self, url: str) -> None:
            """Open a page, again where a script did not arrive: Chromium drops every request when a network changes."""
            for _ in range(5):
                super().get(url)
                if not self.execute_script(f"return {LOST}"):
                    break
                complaints(self)  # of what is loaded again

    try:
        driver = Chromium(options=options, service=Service(str(DRIVER)))
    except WebDriverException as error:  # a container that lets no browser start
        pytest.skip(f"the browser does not start here: {str(error).splitlines()[0]}")
    try:
        yield driver
    finally:
        driver.quit()


@contextmanager
def served(app: Starlette) -> Iterator[str]:
    """The address of an application that runs in a thread of this process, on a free port."""
    server = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=0, log_level="error"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    wait_until(lambda: server.started)
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join()


def wait_until(done: Callable[[], Any], seconds: float = 600) -> Any:
    """What `done` returns once it is true. The limit only ends what hangs: a busy machine may take its time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = done()
        if found:
            return found
        time.sleep(0.02)
    raise AssertionError(f"nothing happened for {seconds} s")


def complaints(driver: Any) -> list[str]:
    """What the browser's console holds: errors of scripts and breaches of the policy."""
    return [entry["message"] for entry in driver.get_log("browser")]
