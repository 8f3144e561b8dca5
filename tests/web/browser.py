"""A real browser for the tests of pages; they skip, with the reason, where there is none."""

import json
import os
import re
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from starlette.applications import Starlette

STARTED = 60.0  # seconds in which Firefox starts: without a home of its user it may stay silent for ever
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


class Firefox:
    """What tests use of Selenium's driver, by WebDriver BiDi, which Firefox speaks itself."""

    def __init__(self, socket: Any) -> None:
        self._socket, self._number, self.errors = socket, 0, []
        self._call("session.new", capabilities={})
        self._context = self._call("browsingContext.getTree")["contexts"][0]["context"]
        self._call("session.subscribe", events=["log.entryAdded"])

    def get(self, address: str) -> None:
        self._call("browsingContext.navigate", context=self._context, url=address, wait="complete")

    def refresh(self) -> None:
        self._call("browsingContext.reload", context=self._context, wait="complete")

    def execute_script(self, script: str, *given: object) -> Any:
        call = f"(function () {{ {script} }})(...{json.dumps(given)})"
        return self._run(f"async () => JSON.stringify(await {call} ?? null)")

    def execute_async_script(self, script: str, *given: object) -> Any:
        call = f"(function () {{ {script} }})(...{json.dumps(given)}, done)"
        return self._run(f"() => new Promise((done) => {call}).then((found) => JSON.stringify(found ?? null))")

    def _run(self, function: str) -> Any:
        where = {"context": self._context}
        said = self._call("script.callFunction", functionDeclaration=function, awaitPromise=True, target=where)
        assert said["type"] == "success", said
        return json.loads(said["result"]["value"])

    def _call(self, method: str, **params: object) -> Any:
        self._number += 1
        self._socket.send(json.dumps({"id": self._number, "method": method, "params": params}))
        while True:
            said = json.loads(self._socket.recv())
            if said.get("method") == "log.entryAdded" and said["params"]["level"] == "error":
                self.errors.append(said["params"]["text"])
            if said.get("id") == self._number:
                assert said["type"] == "success", said
                return said["result"]


@contextmanager
def opened_firefox(profile: Path) -> Iterator[Firefox]:
    """Firefox without a window, with a profile of its own."""
    websocket, program = pytest.importorskip("websocket"), shutil.which("firefox-esr") or shutil.which("firefox")
    if program is None:
        pytest.skip("no Firefox (Debian: apt install firefox-esr)")
    words = [program, "--headless", "--no-remote", "--profile", str(profile), "--remote-debugging-port", "0"]
    options = {"stderr": subprocess.PIPE, "stdout": subprocess.DEVNULL, "text": True}
    with subprocess.Popen(words, env=os.environ | {"HOME": str(profile)}, **options) as process:
        lines: list[str] = []
        reader = threading.Thread(target=lambda: lines.extend(process.stderr or ()))  # so that it can go on writing
        reader.start()
        try:
            end = time.monotonic() + STARTED
            while not (match := re.search(r"BiDi listening on (ws://\S+)", "".join(lines))):
                if process.poll() is not None or time.monotonic() > end:
                    pytest.skip("Firefox does not start here")
                time.sleep(0.05)
            connected = websocket.create_connection(f"{match[1]}/session", suppress_origin=True, timeout=600)
            with closing(connected) as socket:
                yield Firefox(socket)
        finally:
            process.kill()
            reader.join()


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
    if isinstance(driver, Firefox):
        found, driver.errors = driver.errors, []
        return found
    return [entry["message"] for entry in driver.get_log("browser")]
