"""How do I read what Qualtrics, LimeSurvey, Gorilla or jsPsych exports? A few lines make each long.

Long means a row for every answer: rater, reference, two options, choice. `nearkin embed long.csv` reads that. The files
that `main` writes are small exports of each kind, with one rater and four questions.

    python examples/survey_exports.py --out exports
"""

import argparse
import csv
import json
import re
from collections.abc import Iterator
from pathlib import Path

import nearkin as nk

ASKED = re.compile(r"more like (.+): (.+) or (.+)\?")  # how the questions were worded
TRIALS = [
    *[("red", "orange", "blue", "orange"), ("blue", "violet", "yellow", "violet")],
    *[("green", "yellow", "red", "yellow"), ("violet", "blue", "green", "blue")],
]
Row = tuple[str, ...]


def qualtrics(path: Path) -> Iterator[Row]:
    """A column a question; below the names stand the questions' texts and a line of import ids."""
    with path.open(encoding="utf-8", newline="") as file:
        texts, _, *answers = csv.DictReader(file)
    for row in answers:
        for column, text in texts.items():
            if (asked := ASKED.search(text)) and row[column]:
                yield row["ResponseId"], *asked.groups(), row[column]


def limesurvey(path: Path) -> Iterator[Row]:
    """A column a question, its text as the header (export "full question text", "full answers"), semicolons."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        for row in csv.DictReader(file, delimiter=";"):
            for text, answer in row.items():
                if (asked := ASKED.search(text)) and answer:
                    yield row["Response ID"], *asked.groups(), answer


def gorilla(path: Path) -> Iterator[Row]:
    """A row an event; answers are the rows of the response's zone, with the columns of the task's spreadsheet."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        for row in csv.DictReader(file):
            if row["Zone Type"] == "response_button_text":
                yield row["Participant Private ID"], row["ref"], row["left"], row["right"], row["Response"]


def write_long(rows: Iterator[Row], path: Path) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([("rater", "ref", "left", "right", "choice"), *rows])


def write_exports(folder: Path) -> None:
    """The same four answers as each of the four programs exports them."""
    texts = [f"Which is more like {ref}: {left} or {right}?" for ref, left, right, _ in TRIALS]
    chosen = [choice for *_, choice in TRIALS]
    names = ["ResponseId", *(f"Q{number}" for number in range(1, 5))]
    ids = [json.dumps({"ImportId": name}) for name in names]
    tables = {
        "qualtrics": [names, ["Response ID", *texts], ids, ["R_1", *chosen]],
        "gorilla": [
            ["Participant Private ID", "Zone Type", "ref", "left", "right", "Response"],
            *(["1", kind, *trial] for trial in TRIALS for kind in ("fixation", "response_button_text")),
        ],
    }
    for name, rows in tables.items():
        with (folder / f"{name}.csv").open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows(rows)
    with (folder / "limesurvey.csv").open("w", encoding="utf-8-sig", newline="") as file:
        csv.writer(file, delimiter=";").writerows([["Response ID", *texts], ["1", *chosen]])
    trials = [dict(zip(("ref", "left", "right"), trial, strict=False)) for trial in TRIALS]
    buttons = [
        {**trial, "response": [trial["left"], trial["right"]].index(c)} for trial, c in zip(trials, chosen, strict=True)
    ]
    (folder / "jspsych.json").write_text(json.dumps(buttons), encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("exports"))
    folder = parser.parse_args().out
    folder.mkdir(parents=True, exist_ok=True)
    write_exports(folder)
    for read in (qualtrics, limesurvey, gorilla):
        write_long(read(folder / f"{read.__name__}.csv"), folder / "long.csv")
        print(read.__name__, nk.read_comparisons(folder / "long.csv").source, sep=": ")
    print("jspsych", nk.data.read_jspsych(folder / "jspsych.json", items=("ref", "left", "right")).source, sep=": ")


if __name__ == "__main__":
    main()
