"""What a stranger types, or links to, harms neither the table of answers, nor a spreadsheet, nor other files."""

import csv
import io
import os
import zipfile
from pathlib import Path

from PIL import Image
from starlette.testclient import TestClient

import nearkin as nk
from nearkin.web.ask import ask_app, read_items
from nearkin.web.ask.survey import Survey, spreadsheet_cell
from nearkin.web.explore.collection import read_pictures
from tests.covering import each
from tests.web.ask.conftest import NAMES, OpenSurvey

TYPED = (
    "=HYPERLINK(1)",
    "+1+cmd|'/C calc'!A0",
    "-2+3",
    "@SUM(1)",
    "\t=1",
    "a\0b",
    "two\r\nlines",
    "\ud800x",
    "\x1b[31m",
    "[1, 2]",
    "7",
    "NA",
    "null",
)


def answered(survey: Survey, name: str, given: dict[str, str]) -> None:
    rater = survey.join(name, given, given)
    survey.answer(rater.key, survey.ask(rater.key).number, 0, 1.0)


def test_answers_stay_readable_whatever_raters_type(open_survey: OpenSurvey) -> None:
    survey = open_survey()
    for text in TYPED:
        answered(survey, text, {text: text})
    survey.close()
    read = nk.read_comparisons(survey.out)
    assert len(read) == len(TYPED)
    assert set(map(str, read.objects.tolist())) <= set(NAMES)


def test_no_cell_that_raters_fill_is_a_formula(open_survey: OpenSurvey) -> None:
    survey = open_survey()
    for text in (*TYPED, "-5", "+49"):
        answered(survey, text, {text: text, "age": text})
    client = TestClient(ask_app(survey))
    archive = zipfile.ZipFile(io.BytesIO(client.get(f"/{survey.tokens[1]}/results/results.zip").content))
    tables = [archive.read(f"results/{name}.csv").decode() for name in ("answers", "raters")]
    for table in (*tables, survey.out.read_text(encoding="utf-8")):
        for cell in (cell for row in csv.reader(io.StringIO(table, newline="")) for cell in row):
            assert cell[:1] not in tuple("=+-@\t\r") or cell[1:].isdecimal(), cell
            assert "\0" not in cell
    assert "'=HYPERLINK(1)" in tables[0]


def test_invited_people_keep_their_link_whatever_their_name(open_survey: OpenSurvey) -> None:
    survey = open_survey()
    assert survey.invited("an\tna  b").key == survey.invited("an na b").key


@each("text", ["-5", "+7", "Zoë", "a=b", "علی\u200cرضا", "👩\u200d🔬"])
def test_other_texts_stay_as_they_were_typed(text: str) -> None:
    assert spreadsheet_cell(text) == text


def test_links_out_of_a_folder_of_pictures_are_not_served(open_survey: OpenSurvey, tmp_path: Path) -> None:
    (tmp_path / "pictures").mkdir()
    (tmp_path / "secret.png").write_text("secret")
    for name in "abc":
        Image.new("RGB", (4, 4)).save(tmp_path / "pictures" / f"{name}.png")
    (tmp_path / "pictures" / "d.png").symlink_to(tmp_path / "secret.png")
    (tmp_path / "pictures" / "e.png").symlink_to("a.png")
    os.mkfifo(tmp_path / "pictures" / "f.png")
    items = read_items(tmp_path / "pictures")
    assert list(items.ids) == ["a", "b", "c", "e"]
    survey = open_survey(items=items)
    client = TestClient(ask_app(survey))
    served = [client.get(f"/{survey.tokens[0]}/media/{number}") for number in range(6)]
    assert [one.status_code for one in served] == [200] * 4 + [404] * 2
    assert b"secret" not in b"".join(one.content for one in served)
    shown = read_pictures(str(tmp_path / "pictures"), list("abcdef"))
    assert [picture is not None for picture in shown] == [True, True, True, False, True, False]
