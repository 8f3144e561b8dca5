"""The raters' page in a real browser: answers by key, undo, reload; a hostile name of an item does not run."""

from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from nearkin.web.ask import Plan, Texts, ask_app
from nearkin.web.ask.questions import Items
from tests.web.ask.conftest import OpenSurvey
from tests.web.browser import complaints, served, wait_until

HOSTILE = '<img src=x onerror="document.title=1"><script>document.title=2</script>'
SIZES = [(1440, 900), (1024, 768), (390, 664), (320, 568), (844, 390)]
NAMES = [HOSTILE, *(f"thing {number}" for number in range(1, 12))]


def press(browser: Any, key: str) -> None:
    browser.execute_script(f"document.dispatchEvent(new KeyboardEvent('keydown', {{key: '{key}'}}))")


def answered(browser: Any) -> int:
    """How many answers the page says are kept; -1 while one is on its way."""
    return browser.execute_script("return busy || current === null ? -1 : current.answered")


@pytest.mark.parametrize("form", ["triplet", "odd-one-out", "pairs"])
def test_all_buttons_are_in_sight(browser: Any, open_survey: OpenSurvey, tmp_path: Path, form: str) -> None:
    """Undo and "Can't say" lay below the window at every size."""
    files = [tmp_path / f"{number}.png" for number in range(5)]
    for file in files:
        Image.new("RGB", (900, 700), "grey").save(file)
    items = Items([file.stem for file in files], ["with a text", "", "", "", ""], files, [None] * 5)
    survey = open_survey(Plan(form=form, active=False), items=items)
    images = "[...document.querySelectorAll('#ask img')]"
    with served(ask_app(survey, Texts(goal=100))) as address:
        browser.get(f"{address}/{survey.tokens[0]}/r/{survey.join().key}")
        wait_until(lambda: browser.execute_script(f"return {images}.length > 2 && {images}.every((i) => i.complete)"))
        for width, height in SIZES:
            metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 900}
            browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
            boxes = browser.execute_script(
                "return [...document.querySelectorAll('#ask button, #progress, #ask img')].map((one) => "
                "{ const box = one.getBoundingClientRect(); return [box.left, box.top, box.right, box.bottom]; })"
            )
            assert len(boxes) >= 8
            for left, top, right, bottom in boxes:
                assert min(left, top) >= 0, (width, height, boxes)
                assert right <= width, (width, height, boxes)
                assert bottom <= height, (width, height, boxes)
                assert min(right - left, bottom - top) >= 20, (width, height, boxes)
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_thirty_answers_undo_and_reload(browser: Any, open_survey: OpenSurvey) -> None:
    survey = open_survey(names=NAMES)
    app = ask_app(survey, Texts(goal=100))
    with served(app) as address:
        browser.get(f"{address}/{survey.tokens[0]}/")
        wait_until(lambda: browser.execute_script("return !document.getElementById('start').hidden"))
        browser.execute_script("$('name').value = 'anna'; $('join').requestSubmit()")
        seen = set()
        for number in range(30):
            wait_until(lambda wanted=number: answered(browser) == wanted)
            seen.update(browser.execute_script("return current.items.map((item) => item.text)"))
            press(browser, "12"[number % 2])
        wait_until(lambda: answered(browser) == 30)
        asked = browser.execute_script("return current.question")
        press(browser, "u")
        wait_until(lambda: answered(browser) == 29)
        browser.refresh()  # the address holds who it is
        wait_until(lambda: browser.execute_script("return typeof about !== 'undefined'") and answered(browser) == 29)
        assert browser.execute_script("return current.question") != asked
        assert len(survey.answered()) == 29
        assert HOSTILE in seen
        assert browser.execute_script("return document.querySelectorAll('#ask img, #ask script').length") == 0
        assert not browser.execute_script("return document.title").isdigit()
        browser.get(f"{address}/{survey.tokens[1]}/results/")
        wait_until(
            lambda: browser.execute_script("return document.getElementById('summary').textContent.startsWith('29')")
        )
        assert not complaints(browser)
    assert survey.out.read_text(encoding="utf-8").count("\n") == 30  # the head, and 29 lines
