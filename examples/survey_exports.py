"""How do I read what Qualtrics, LimeSurvey, Gorilla, jsPsych, Salmon or PsychoPy exports? A few lines make each long.

Long means a row for every answer: rater, reference, two options, choice, which `nearkin embed long.csv` reads. Rankings
are rater, reference, rank1, rank2, ..., for `nearkin embed long.csv --form ranking`. The files that `main` writes are
small exports of each kind, with one rater and four questions.

    python examples/survey_exports.py --out exports
    python examples/survey_exports.py --out exports --of qualtrics my_export.csv
"""

import argparse
import ast
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
    """A column a question; the next two lines are the questions' texts and import ids."""
    with path.open(encoding="utf-8-sig", newline="") as file:
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


def jspsych(path: Path) -> Iterator[Row]:
    """A trial is an object with what the experiment's `data` added; `response` is the number of the button."""
    for trial in json.loads(path.read_text(encoding="utf-8")):
        if "ref" in trial and trial["response"] is not None:
            chosen = trial[("left", "right")[trial["response"]]]
            yield trial["subject"], trial["ref"], trial["left"], trial["right"], chosen


def salmon(path: Path) -> Iterator[Row]:
    """The dashboard's responses: the columns `head`, `winner` and `loser` with `_filename` are texts."""
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            winner = row["winner_filename"]
            yield row["puid"], row["head_filename"], winner, row["loser_filename"], winner


def psychopy(path: Path) -> Iterator[Row]:
    """A ranking is a row: columns of what was shown, and in `clicks` their names from the nearest on. A session is a
    file: give the folder of all."""
    for part in sorted(path.glob("*.csv")) if path.is_dir() else [path]:
        with part.open(encoding="utf-8-sig", newline="") as file:
            for row in csv.DictReader(file):
                yield row["participant"], row["ref"], *(row[name] for name in ast.literal_eval(row["clicks"]))


def write_long(rows: Iterator[Row], path: Path, form: str | None) -> None:
    first, *others = rows
    answer = ["left", "right", "choice"] if form is None else [f"rank{place}" for place in range(1, len(first) - 1)]
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([("rater", "ref", *answer), first, *others])


def write_exports(folder: Path) -> None:
    """The same four answers as each program exports them."""
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
        "salmon": [
            ["puid", "head_filename", "winner_filename", "loser_filename"],
            *(["1", ref, won, right if won == left else left] for ref, left, right, won in TRIALS),
        ],
        "psychopy": [
            ["ref", "stim1", "stim2", "clicks", "participant"],
            *(
                [ref, *two, ["stim1", "stim2"] if won == two[0] else ["stim2", "stim1"], "1"]
                for ref, *two, won in TRIALS
            ),
        ],
    }
    for name, rows in tables.items():
        with (folder / f"{name}.csv").open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows(rows)
    with (folder / "limesurvey.csv").open("w", encoding="utf-8-sig", newline="") as file:
        csv.writer(file, delimiter=";").writerows([["Response ID", *texts], ["1", *chosen]])
    trials = [
        {"subject": "1", "ref": ref, "left": left, "right": right, "response": (left, right).index(choice)}
        for ref, left, right, choice in TRIALS
    ]
    (folder / "jspsych.json").write_text(json.dumps([{"response": None}, *trials]), encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("exports"))
    parser.add_argument("--of", nargs=2, metavar=("PROGRAM", "FILE"), help="an export of your own, by its program")
    given = parser.parse_args()
    folder: Path = given.out
    folder.mkdir(parents=True, exist_ok=True)
    if given.of is None:
        write_exports(folder)
    for read in (qualtrics, limesurvey, gorilla, jspsych, salmon, psychopy):
        if given.of is None or given.of[0] == read.__name__:
            path = next(folder.glob(f"{read.__name__}.*")) if given.of is None else Path(given.of[1])
            form = "ranking" if read is psychopy else None
            write_long(read(path), folder / "long.csv", form)
            print(read.__name__, nk.read_comparisons(folder / "long.csv", form=form).source, sep=": ")


if __name__ == "__main__":
    main()
