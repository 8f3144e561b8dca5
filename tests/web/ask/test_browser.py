"""The raters' page in a real browser: answers by key, undo, reload; a hostile name of an item does not run."""

import wave
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from nearkin.web.ask import Plan, ask_app
from nearkin.web.ask.plan import shipped
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
    survey = open_survey(Plan(form=form, active=False, goal=100), items=items)
    images = "[...document.querySelectorAll('#ask img')]"
    with served(ask_app(survey)) as address:
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
    survey = open_survey(Plan(active=False, repeat_share=0, goal=100), NAMES)
    app = ask_app(survey)
    with served(app) as address:
        browser.get(f"{address}/{survey.tokens[0]}/")
        wait_until(lambda: browser.execute_script("return !document.getElementById('start').hidden"))
        assert "about 9 min" in browser.execute_script("return $('instructions').textContent")
        browser.execute_script("$('name').value = 'anna'; $('agree').click(); $('join').requestSubmit()")
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


def shown(browser: Any, section: str) -> bool:
    return browser.execute_script(f"return typeof about !== 'undefined' && about !== null && !$('{section}').hidden")


@pytest.mark.parametrize("language", ["de", "zh"])  # the keys of all are compared in test_texts.py
def test_the_page_speaks_the_language_it_is_given(browser: Any, open_survey: OpenSurvey, language: str) -> None:
    words = shipped(language)
    survey = open_survey(Plan(active=False, practice=1, words=words, goal=3, break_every=2, finish="C0DE"))
    with served(ask_app(survey)) as address:
        browser.get(f"{address}/{survey.tokens[0]}/r/{survey.invited('anna').key}")
        wait_until(lambda: shown(browser, "start"))
        assert browser.execute_script("return document.documentElement.lang") == language
        told = browser.execute_script("return $('start').innerText")
        assert words["triplet"] in told
        assert words["consent"].strip() in told
        assert "{" not in told
        browser.execute_script("$('agree').click(); $('join').requestSubmit()")
        wait_until(lambda: shown(browser, "ask"))
        assert browser.execute_script("return document.activeElement.id") == "question"  # reading goes on there
        assert browser.execute_script("return $('hint').textContent") == words["practice"]
        seen = browser.execute_script("return $('ask').innerText")
        assert all(text in seen for text in (words["triplet"], words["undo"], words["skip"]))
        press(browser, "1")
        wait_until(lambda: answered(browser) == 0 and browser.execute_script("return $('hint').textContent") == "")
        for count in (1, 2):
            press(browser, "1")
            wait_until(lambda count=count: answered(browser) == count)
        wait_until(lambda: shown(browser, "pause"))
        assert words["pause"] in browser.execute_script("return $('pause').innerText")
        press(browser, "1")  # no key answers while the rater rests
        browser.execute_script("$('resume').click()")
        wait_until(lambda: shown(browser, "ask"))
        assert answered(browser) == 2
        press(browser, "1")
        wait_until(lambda: shown(browser, "done"))
        assert browser.execute_script("return $('done').innerText").startswith(words["thanks"])
        assert f"{words['code']} C0DE" in browser.execute_script("return $('done').innerText")


def test_a_rater_who_was_invited_agrees_and_fills_in_before_the_first_question(
    browser: Any, open_survey: OpenSurvey
) -> None:
    words = shipped("en") | {"consent": "I agree.", "instructions": "Look at the shape."}
    fields = [{"name": "age", "number": True, "required": True}, {"name": "eyes", "options": ["blue", HOSTILE]}]
    survey = open_survey(Plan(active=False, words=words, fields=fields))
    key = survey.invited("anna").key
    with served(ask_app(survey)) as address:
        browser.get(f"{address}/{survey.tokens[0]}/r/{key}?PROLIFIC_PID=p1")
        wait_until(lambda: shown(browser, "start"))
        assert browser.execute_script("return $('who').hidden")  # the name is known
        for done, said in (
            ("", "Please fill in: age"),
            ("$('field-0').value = 'old'", "Please fill in: age"),
            ("$('field-0').value = '40'; $('field-1').selectedIndex = 2", "Please tick the box to begin."),
        ):
            browser.execute_script(f"{done}; $('join').requestSubmit()")
            assert browser.execute_script("return $('status').textContent") == said
        assert not survey.raters[key].begun
        browser.execute_script("$('agree').click(); $('join').requestSubmit()")
        wait_until(lambda: shown(browser, "ask"))
        assert not complaints(browser)
    rater = survey.raters[key]
    assert (rater.fields, rater.parameters) == ({"age": "40", "eyes": HOSTILE}, {"PROLIFIC_PID": "p1"})


def test_choices_open_when_pictures_are_seen_and_the_least_time_is_over(
    browser: Any, open_survey: OpenSurvey, tmp_path: Path
) -> None:
    """The clock starts with the pictures, the next question's are loaded, and time out of sight is noted."""
    files = [tmp_path / f"{number}.png" for number in range(6)]
    for file in files:
        Image.new("RGB", (90, 70), "grey").save(file)
    items = Items([file.stem for file in files], [""] * 6, files, [None] * 6)
    survey = open_survey(Plan(active=False, min_seconds=0.3), items=items)
    with served(ask_app(survey)) as address:
        browser.get(f"{address}/{survey.tokens[0]}/r/{survey.join().key}")
        wait_until(lambda: browser.execute_script("return shownAt !== null"))
        assert browser.execute_script("return current.next.every((item) => loaded.has(item.number))")
        browser.execute_script("shownAt = performance.now()")
        press(browser, "1")
        assert len(survey.answered()) == 0  # too soon
        wait_until(lambda: browser.execute_script("return [...$('choices').children].every((one) => !one.disabled)"))
        out = "Object.defineProperty(document, 'hidden', {value: %s, configurable: true})"
        event = "document.dispatchEvent(new Event('visibilitychange'))"
        browser.execute_script(f"{out % 'true'}; {event}")
        wait_until(lambda: browser.execute_script("return performance.now() - hiddenAt > 400"))
        browser.execute_script(f"{out % 'false'}; {event}; delete document.hidden")
        press(browser, "2")
        wait_until(lambda: answered(browser) == 1)
    (question,) = survey.answered()
    assert 0.4 <= question.hidden < question.seconds


def test_a_sound_is_played_before_it_is_compared(browser: Any, open_survey: OpenSurvey, tmp_path: Path) -> None:
    files = [tmp_path / f"{number}.wav" for number in range(3)]
    for file in files:
        with wave.open(str(file), "wb") as sound:
            sound.setnchannels(1)
            sound.setsampwidth(2)
            sound.setframerate(8000)
            sound.writeframes(b"\x00\x10" * 4000)
    items = Items([file.stem for file in files], [""] * 3, files, [None] * 3)
    survey = open_survey(Plan(active=False), items=items)
    with served(ask_app(survey)) as address:
        browser.get(f"{address}/{survey.tokens[0]}/r/{survey.join().key}")
        wait_until(lambda: shown(browser, "ask"))
        assert browser.execute_script("return document.querySelectorAll('button audio').length") == 0
        for played in range(3):
            assert browser.execute_script("return shownAt") is None, played
            browser.execute_script(
                f"document.querySelectorAll('#ask audio')[{played}].dispatchEvent(new Event('play'))"
            )
        wait_until(lambda: browser.execute_script("return shownAt !== null"))
        browser.execute_script("document.querySelector('#choices button').click()")
        wait_until(lambda: answered(browser) == 1)
