"""The page in a real browser: search, click, slider, keys; hostile names stay text; the mailed file works alone."""

from pathlib import Path
from typing import Any

import pytest

from nearkin.web.explore import Columns, Explorer, explore_app, open_collection
from nearkin.web.explore.server import single_page
from tests.web.browser import complaints, served, wait_until
from tests.web.explore.conftest import HOSTILE


def run(browser: Any, script: str) -> Any:
    return browser.execute_script(script)


def names(browser: Any, column: int) -> list[str]:
    return run(browser, f"return [...$('lists').children[{column}].querySelectorAll('b')].map((b) => b.textContent)")


def use_the_page(browser: Any, explorer: Explorer) -> None:
    there = "typeof about !== 'undefined' && about !== null"  # a frame may not have run its script
    wait_until(lambda: run(browser, f"return {there} && !$('legend').matches(':empty')"))
    answer = explorer.item(0)
    run(browser, "$('text').value = 'onerror'; $('search').requestSubmit()")
    wait_until(lambda: run(browser, "return current !== null"))
    assert names(browser, 0) == [answer["about"][row]["id"] for row in answer["exact"]]
    assert HOSTILE not in names(browser, 0)  # the row itself is no neighbour
    assert run(browser, "return $('chosen').querySelector('b').textContent") == HOSTILE
    for at in (0, 1, 3):
        run(browser, f"$('oversample').value = {at}; $('oversample').dispatchEvent(new Event('input'))")
        for number in (0, 1):
            found = answer["found"][number][at]
            assert names(browser, 1 + number) == [answer["about"][row]["id"] for row in found]
        lost = [answer["about"][row]["id"] for row in answer["exact"] if not all(row in f[at] for f in answer["found"])]
        marked = run(browser, "return [...document.querySelectorAll('#lists .lost b')].map((b) => b.textContent)")
        assert sorted(set(marked)) == sorted(lost)
    run(browser, "$('lists').querySelectorAll('button')[2].click()")  # a neighbour leads on
    wait_until(lambda: run(browser, "return current.row") == answer["exact"][2])
    row = run(browser, "const [x, y] = map.at(9); map.pick(x, y, 16); return rows[9]")  # as a click does
    wait_until(lambda: run(browser, "return current.row") == row)
    run(browser, "$('map').focus(); $('map').dispatchEvent(new KeyboardEvent('keydown', {key: '+'}))")
    assert run(browser, "return map.view.scale") == pytest.approx(1.4)
    run(browser, "$('map').dispatchEvent(new KeyboardEvent('keydown', {key: '0'}))")
    assert run(browser, "return map.view.scale") == 1
    run(browser, "$('colour').value = 'lost0'; $('colour').dispatchEvent(new Event('change'))")
    wait_until(
        lambda: (
            "grey" not in run(browser, "return $('legend').textContent")
            and run(browser, "return drawn.colour.startsWith('lost0')")
        )
    )
    run(browser, "$('worst-part').open = true")
    wait_until(lambda: run(browser, "return $('worst').children.length") == 100)
    assert not run(browser, "return document.title").isdigit()  # what the hostile name would have set
    assert run(browser, "return $('status').textContent") == ""


def test_the_served_page(browser: Any, explorer: Explorer) -> None:
    with served(explore_app(explorer, "token")) as address:
        browser.get(f"{address}/token/")
        use_the_page(browser, explorer)
        assert not complaints(browser)
        browser.get(f"{address}/token/#7")
        browser.refresh()
        wait_until(lambda: run(browser, "return current?.row") == 7)


def test_the_mailed_file(browser: Any, explorer: Explorer, tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    file.write_text(single_page(explorer), encoding="utf-8")
    browser.get(file.as_uri())
    use_the_page(browser, explorer)
    assert not complaints(browser)


def test_a_row_that_a_file_does_not_hold_is_said(browser: Any, explorer: Explorer, tmp_path: Path) -> None:
    few = Columns(explorer.collection, most=10)
    few.run()
    row = next(row for row in range(120) if row not in few.rows)
    file = tmp_path / "few.html"
    file.write_text(single_page(Explorer("few", explorer.collection, few)), encoding="utf-8")
    browser.get(f"{file.as_uri()}#{row}")
    wait_until(lambda: "holds no neighbours of that vector" in run(browser, "return $('status').textContent"))


def test_without_exact_vectors_no_hit_is_called_kept(browser: Any, folder: Path, tmp_path: Path) -> None:
    """Every hit was drawn in the colour of what is kept, though nobody knows."""
    collection = open_collection(folder / "finer", k=5)
    columns = Columns(collection)
    columns.run()
    file = tmp_path / "bare.html"
    file.write_text(single_page(Explorer("bare", collection, columns)), encoding="utf-8")
    browser.get(f"{file.as_uri()}#3")
    wait_until(lambda: run(browser, "return current !== null && map.marks.length === 6"))
    kinds = run(browser, "return [...document.querySelectorAll('#lists button')].map((one) => one.className)")
    assert kinds == ["unknown"] * 5
    style = "getComputedStyle(document.documentElement).getPropertyValue"
    kept = run(browser, f"return map.marks.filter(([, colour]) => colour === {style}('--kept')).length")
    assert kept == 0
    assert not columns.colours  # an empty menu was shown
    assert run(browser, "return [$('colour'), $('layout')].map((one) => one.parentElement.hidden)") == [True, False]


def test_nothing_sticks_out(browser: Any, explorer: Explorer, tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    file.write_text(single_page(explorer), encoding="utf-8")
    try:
        for width in (360, 1200, 2560):
            sizes = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
            browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", sizes)
            browser.get("about:blank")
            browser.get(f"{file.as_uri()}#0")
            wait_until(lambda: run(browser, "return current !== null"))
            assert run(browser, "return document.documentElement.scrollWidth") <= width
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
