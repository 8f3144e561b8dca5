"""The page as a first look: colours by any column, the legend, the card, selections and what they export, the link."""

import csv
import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nearkin as nk
from nearkin.web.explore import Collection, Columns, Explorer, explore_app
from nearkin.web.explore.server import single_page
from tests.web.browser import complaints, served, wait_until
from tests.web.explore.conftest import HOSTILE, N, short_maps

RARE = [f"common {n % 4}" if n < 80 else f"rare {n}" for n in range(N)]


@pytest.fixture(scope="module")
def table(rows: np.ndarray) -> Explorer:
    columns = {
        "label": np.array([str(n % 12) for n in range(N)]),
        "kind": np.array(RARE),
        "price (EUR)": np.array(["" if n == 5 else f"{n / 2}" for n in range(N)]),
        "note": np.array([f'{HOSTILE}, "{n}"' for n in range(N)]),
    }
    pictures = list(np.zeros((N, 8, 8), np.uint8))
    index = nk.Index.build(rows, nk.ProductQuantizer(2, 8, random_state=0), keep_vectors=True)
    collection = Collection(index, texts=columns, pictures=pictures, k=5)
    made = Columns(collection)
    with short_maps():
        made.run()
    return Explorer("table", collection, made)


@pytest.fixture(params=["served", "file"])
def page(request: pytest.FixtureRequest, table: Explorer, tmp_path: Path, browser: Any) -> Any:
    """The page of the table, served, and as a file."""
    (tmp_path / "page.html").write_text(single_page(table) if request.param == "file" else "", encoding="utf-8")
    with served(explore_app(table, "token")) as address:
        browser.get((tmp_path / "page.html").as_uri() if request.param == "file" else f"{address}/token/")
        wait_until(lambda: run(browser, "return about !== null && drawn.colour !== undefined"))
        yield browser
        assert not complaints(browser)


def run(browser: Any, script: str, *given: object) -> Any:
    return browser.execute_script(script, *given)


def colour_by(browser: Any, name: str) -> None:
    run(browser, "$('colour').value = arguments[0]; $('colour').dispatchEvent(new Event('change'))", name)
    wait_until(lambda: run(browser, "return drawn.colour.startsWith(arguments[0])", name))


def exported(browser: Any) -> list[dict[str, str]]:
    """What the button CSV writes."""
    script = "const done = arguments[0]; exported([ID, ...colours().filter((one) => one.name !== 'more')]).then(done)"
    return list(csv.DictReader(io.StringIO(browser.execute_async_script(script), newline="")))


def drag(browser: Any, mode: str, *path: tuple[float, float]) -> None:
    """A drag of the mouse over the map, whose corners are (0, 0) and (1, 1)."""
    run(
        browser,
        """const [mode, path] = arguments, box = $("map").getBoundingClientRect();
        document.querySelector(`[data-mode=${mode}]`).click();
        $("map").setPointerCapture = () => null;
        const send = (type, [x, y]) => $("map").dispatchEvent(new PointerEvent(type, {
          pointerId: 1, clientX: box.left + x * box.width, clientY: box.top + y * box.height,
          buttons: type === "pointerup" ? 0 : 1 }));
        send("pointerdown", path[0]);
        path.slice(1).forEach((at) => send("pointermove", at));
        send("pointerup", path.at(-1));""",
        mode,
        path,
    )


def test_categories_are_numbers_in_order_or_the_frequent_ones(page: Any) -> None:
    assert run(page, "return names") == [str(n) for n in range(12)]
    assert run(page, "return [...values]") == [n % 12 for n in range(N)]
    colour_by(page, "column:kind")
    names = run(page, "return names")
    assert len(names) == 20
    assert names[-1] == "25 others"
    values = run(page, "return [...values]")
    assert all(names[int(value)] in (RARE[n], "25 others") for n, value in enumerate(values))
    assert names[int(values[2])] == "common 2"
    other = run(page, "return names.others[3]")  # which one has a colour can be chosen
    run(page, "const more = $('legend').querySelector('select'); more.value = arguments[0];", other)
    run(page, "$('legend').querySelector('select').dispatchEvent(new Event('change'))")
    wait_until(lambda: run(page, "return names.includes(arguments[0])", other))
    assert len(run(page, "return names")) == 20


def test_numbers_have_a_ramp_with_name_and_unit(page: Any) -> None:
    colour_by(page, "column:price (EUR)")
    assert run(page, "return names") is None
    seen = run(page, "return $('legend').innerText.replace(/\\s+/g, ' ')")
    assert seen.startswith("price (EUR)")
    assert seen.endswith("EUR grey: missing")
    assert run(page, "return $('legend').querySelectorAll('.ramp').length") == 1


def test_a_click_on_the_legend_filters_and_the_rest_is_exported(page: Any) -> None:
    run(page, "$('legend').children[3].click()")
    run(page, "$('legend').children[5].click()")
    assert run(page, "return $('how-many').textContent") == "20 of 120 vectors"
    wait_until(lambda: run(page, "return $('grid').querySelectorAll('img').length") == 20)
    assert len(run(page, "map.paint(); return map.named.groups")) == 2  # the names on the map follow
    found = exported(page)
    assert [row["id"] for row in found] == [str(n) for n in range(N) if n % 12 in (3, 5)]
    assert list(found[0])[:5] == ["id", "label", "kind", "price (EUR)", "note"]
    assert found[2]["note"] == f'{HOSTILE}, "15"'
    assert {"quantization error", "neighbours lost"} <= set(found[0])
    assert run(page, "return [...$('legend').children].map((key) => key.ariaPressed).indexOf('true')") == 3
    colour_by(page, "column:price (EUR)")
    assert run(page, "return [...facets.keys()]") == ["column:label"]  # filters stay when the colour changes
    assert run(page, "return $('how-many').textContent") == "20 of 120 vectors"
    run(page, "$('clear').click()")
    assert run(page, "return $('picked').hidden && map.faded === null")
    assert run(page, "return document.querySelectorAll('img[src=x]').length") == 0


def test_filters_by_several_columns_combine_and_one_click_resets(page: Any) -> None:
    page.execute_async_script(
        """const done = arguments[0];
        (async () => { await opened("column:price (EUR)"); await opened("column:label"); fade(); done(); })()"""
    )
    typing = """const input = document.querySelectorAll(".ends input")[arguments[0]];
        input.value = arguments[1];
        input.dispatchEvent(new Event("change"))"""
    run(page, typing, 0, 20)
    run(page, typing, 1, 40)
    assert run(page, "return $('how-many').textContent") == "41 of 120 vectors"
    run(page, "[...document.querySelectorAll('.options button')].find((one) => one.title === '3').click()")
    ids = [n for n in range(40, 81) if n % 12 == 3]
    assert [int(row["id"]) for row in exported(page)] == ids
    counts = run(
        page, "return [...document.querySelectorAll('.options button')].map((one) => one.lastChild.textContent)"
    )
    assert sum(map(int, counts)) == 41  # a column's own filter does not count in its list
    run(page, "$('table-part').open = true")
    wait_until(lambda: run(page, "return $('lines').children.length") == len(ids))
    run(page, "$('clear').click()")
    assert run(page, "return map.faded === null && $('facets').matches(':empty')")


@pytest.mark.parametrize("mode", ["box", "lasso"])
def test_a_box_or_a_line_selects_the_rows_inside(page: Any, mode: str) -> None:
    if mode == "box":
        drag(page, mode, (0, 0), (0.3, 0.2), (0.5, 1))
    else:
        drag(page, mode, (0, 0), (0.5, 0), (0.5, 1), (0, 1))
    inside = run(page, "return [...rows.keys()].filter((i) => map.at(i)[0] < $('map').clientWidth / 2)")
    assert 10 < len(inside) < N - 10
    assert [int(row["id"]) for row in exported(page)] == inside
    assert run(page, "return map.view.scale") == 1  # and the map did not move
    drag(page, "move", (0.5, 0.5), (0.6, 0.5), (0.7, 0.5))
    assert run(page, "return map.view.x") != pytest.approx(run(page, "return map.home.x"))
    assert len(exported(page)) == len(inside)


def test_the_card_shows_the_row_under_the_mouse(page: Any) -> None:
    colour_by(page, "column:price (EUR)")
    send = """const [x, y] = arguments[0] < 0 ? [1, 1] : map.at(arguments[0]);
        const box = $("map").getBoundingClientRect(), at = { clientX: box.left + x, clientY: box.top + y };
        $("map").dispatchEvent(new PointerEvent("pointermove", { pointerType: "mouse", ...at }))"""
    run(page, send, 8)
    wait_until(lambda: not run(page, "return $('card').hidden"))
    row = run(page, "return rows[over]")
    seen = run(page, "return $('card').innerText")
    assert seen.split("\n")[0] == str(row)
    assert f"price (EUR): {row / 2:g}" in seen
    assert run(page, "return $('card').querySelectorAll('img').length") == 1
    assert run(page, "return getComputedStyle($('card')).pointerEvents") == "none"
    run(page, send, -1)
    assert run(page, "return $('card').hidden")


def test_the_worst_rows_lose_most(page: Any, table: Explorer) -> None:
    run(page, "$('worst-part').open = true")
    wait_until(lambda: run(page, "return $('worst').children.length") == 100)
    ids = run(page, "return [...$('worst').querySelectorAll('b')].map((one) => Number(one.textContent))")
    lost, error = (table.columns.colours[name].values for name in ("lost0", "error0"))
    assert ids == np.lexsort((-error.astype("f4"), -lost))[:100].tolist()


def test_the_link_holds_row_map_colour_and_view_and_back_goes_back(page: Any) -> None:
    run(page, "choose(3)")
    wait_until(lambda: run(page, "return current?.row") == 3)
    colour_by(page, "column:kind")
    run(page, "choose(7)")
    wait_until(lambda: run(page, "return current?.row") == 7)
    run(page, "map.zoom(3, 100, 100)")
    wait_until(lambda: "at=" in run(page, "return location.hash"))
    view, link = run(page, "return map.view"), run(page, "return location.href")
    run(page, "history.back()")
    wait_until(lambda: run(page, "return current?.row") == 3)
    page.get("about:blank")
    page.get(link)
    wait_until(lambda: run(page, "return typeof current !== 'undefined' && current?.row") == 7)
    assert run(page, "return $('colour').value") == "column:kind"
    assert run(page, "return map.view") == pytest.approx(view, rel=1e-3)


def test_many_points_show_how_many_lie_on_a_pixel(page: Any) -> None:
    """Of 30,000 points the last one drawn hid what lay below it."""
    run(
        page,
        """const places = new Float32Array(60000);  // all but three of them at one place
        places.set([1, 0, 0, 1, 1, 1], 0);
        map.set(places);
        map.colours = new Uint32Array(30000).fill(pixel(10, 20, 200));
        map.paint();""",
    )
    opacity = """const [x, y] = map.at(arguments[0]).map((at) => Math.round(at * devicePixelRatio));
        return map.image.data[4 * (y * map.image.width + x) + 3]"""
    single, crowd = run(page, opacity, 0), run(page, opacity, 10)
    assert 60 < single < 200
    assert crowd == 255
