"""The jobs that are killed and run out of space: each writes over what the same job wrote from other data."""

import json
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
from typer.testing import CliRunner

from nearkin._storage import read_config, recover, saving_folder
from nearkin.cli.app import app
from nearkin.jobs.rotate import check_pair
from nearkin.web.ask.questions import named_items
from nearkin.web.ask.survey import Plan, Survey

WHICH = ("old", "new")


class Failed(Exception):
    """A job that ended with a clean error."""


class Save:
    """A folder saved over an old one. As of every job, `work(path, "old")` makes what stands at first, and
    `work(path, "new")` is what is broken off; `state` tells which of the two stands there, else what is wrong; `again`
    is the next run, which must end in "new" and sweep; `leaves` lie in the folder once all is done."""

    leaves = ("out",)

    def __init__(self, base: Path) -> None:
        pass

    def work(self, path: Path, which: str) -> None:
        with saving_folder(path, "lance export", {"text": which}, overwrite=True) as folder:
            (folder / "data").write_text(which * 1000)

    def again(self, path: Path) -> None:
        self.work(path, "new")

    def state(self, path: Path) -> str:
        text = read_config(path, "lance export")["text"]
        return text if (path / "data").read_text() == text * 1000 else "mixed"


class Ask:
    """Answers to `nearkin ask`: what was acknowledged stays. "old": not all of them came, "new": all."""

    leaves = ("out.csv", "out.csv.acknowledged", "out.csv.journal")
    _answers = 4

    def __init__(self, base: Path) -> None:
        self.items = named_items(list("abcdefg"))

    def work(self, path: Path, which: str) -> None:
        survey = Survey(self.items, Plan(active=False), path.with_suffix(".csv"))
        key = survey.join("anna").key
        said = len(survey.answered())
        with path.with_suffix(".csv.acknowledged").open("ab", buffering=0) as told:
            while said < (1 if which == "old" else self._answers):
                survey.answer(key, survey.ask(key).number, 0)
                said += 1
                told.write(b"x")
        survey.close()

    def again(self, path: Path) -> None:
        self.work(path, "new")

    def state(self, path: Path) -> str:
        told = path.with_suffix(".csv.acknowledged").stat().st_size
        events = path.with_suffix(".csv.journal").read_bytes().split(b"\n")[:-1]
        answers = sum(json.loads(event)["event"] == "answer" for event in events)
        rows = path.with_suffix(".csv").read_bytes().count(b"\n") - 1
        if not told <= rows <= answers <= told + 1:
            return f"{told} acknowledged, {answers} in the journal, {rows} in the table"
        return "new" if answers == self._answers else "old"


def run_command(words: list[str]) -> None:
    """One command line in this process; Failed if it ends with code 2 and one line."""
    result = CliRunner().invoke(app, words, prog_name="nearkin")
    if result.exit_code == 2 and result.stderr.splitlines()[-1].startswith("nearkin: "):
        raise Failed(result.stderr)
    if result.exit_code:
        raise RuntimeError(f"{' '.join(words)}: {result.output}") from result.exception


def _replaced(word: str, places: dict[str, str]) -> str:
    for mark, place in places.items():
        word = word.replace(mark, place)
    return word


class Command:
    """A command of the command line. Of its words OUT is the path, @NAME a thing made of the old data or the new."""

    def __init__(self, base: Path, words: str, leaves: str = "out", in_place: bool = False) -> None:
        """One that works `in_place`, on an index, is not run again on what it has changed already; others overwrite."""
        words = words if in_place else f"{words} --overwrite"
        self.base, self.words, self.leaves = base, words.split(), tuple(leaves.split())
        self.start, self.in_place = (_COMPRESS if in_place else words).split(), in_place
        self.known: dict[str, dict[str, bytes]] = {}

    def work(self, path: Path, which: str) -> None:
        words = self.start if which == "old" else self.words
        places = {"@": f"{self.base}/{which}", "OUT": str(path), "WORK": str(path.parent / "work")}
        run_command([_replaced(word, places) for word in words])

    def again(self, path: Path) -> None:
        if not self.in_place or self.state(path) == "old":
            self.work(path, "new")
        recover(path)

    def learn(self, path: Path, which: str) -> None:
        """Remember what stands there as the old or the new."""
        self.known[which] = self._contents(path)
        if len(self.known) == 2 and self.known["old"] == self.known["new"]:
            raise RuntimeError("old and new do not differ")

    def state(self, path: Path) -> str:
        recover(path)
        found = self._contents(path)
        return next((name for name, files in self.known.items() if files == found), f"mixed: {sorted(found)}")

    def _contents(self, path: Path) -> dict[str, bytes]:
        """What answers are made from: records and pages hold times of a run; a folder's report can be made again."""
        found = {}
        for file in sorted(file for place in path.parent.glob("out*") for file in [place, *place.rglob("*")]):
            name = str(file.relative_to(path.parent))
            if file.suffix in (".faiss", ".safetensors", ".npy", ".csv"):
                found[name] = file.read_bytes()
            elif file.suffix == ".html" and file.name != "report.html":
                text = file.read_bytes()
                marks = [which.encode() for which in WHICH if re.search(rf"{which}(-long)?\.npy".encode(), text)]
                found[name] = b" ".join([*marks, text[-8:].strip()])
            elif file.name == "evaluation.json":
                found[name] = str(json.loads(file.read_text())["queries"]).encode()
        return found


class Rotate(Command):
    """`nearkin rotate` writes vectors and a rotation: what a kill leaves of both is refused."""

    def state(self, path: Path) -> str:
        found = super().state(path)
        if found.startswith("mixed"):
            try:
                check_pair(path.with_suffix(".rotation"))
            except ValueError:
                return "refused"
        return found


_CODES = "--bytes 2 --centroids 16 --method none"
_COMPRESS = f"compress @.npy --out OUT {_CODES}"
WORDS = {
    "compress": f"{_COMPRESS} --keep-vectors",
    "checkpoint": f"{_COMPRESS} --checkpoint WORK",
    "embed": "embed @.csv --left user --right item --out OUT --dim 2",
    "train": "train @.csv --left user --right item --out OUT --dim 4 --bytes 2 --split none",
    "sweep": "sweep @-long.npy -k 2 --out OUT.html",
    "recommend": "recommend @-emb --all -k 2 --out OUT.csv",
    "similar": "similar @-emb --all -k 2 --out OUT.csv",
    "search": "search @-idx @-few.npy -k 3 --out OUT.csv",
    "export": "export @-idx --to lance --out OUT",
    "ids": "ids @.npy --levels 2 --codes 8 --out OUT",
    "bridge": "bridge @.npy --old @.npy --out OUT",
    "report": "report @-idx --out OUT.html",
    "rotate": "rotate @-long.npy --for faiss:SQ4 --out OUT.npy",
    "add": "add OUT @-few.npy",
    "remove": "remove OUT 3 5",
    "update": "update OUT @-few.npy --ids @-ids.txt",
    "retrain": "update OUT @-few.npy --retrain",
    "evaluate": "evaluate OUT @-few.npy --truth @-truth.npy",
}
LEAVES = {
    **dict.fromkeys(("recommend", "similar", "search"), "out.csv"),
    **dict.fromkeys(("sweep", "report"), "out.html"),
    "rotate": "out.npy out.rotation",
}
IN_PLACE = ("add", "remove", "update", "retrain", "evaluate")
COMMANDS: dict[str, Callable[[Path], Command]] = {
    name: partial(
        Rotate if name == "rotate" else Command, words=words, leaves=LEAVES.get(name, "out"), in_place=name in IN_PLACE
    )
    for name, words in WORDS.items()
}
Job = Save | Ask | Command
JOBS: dict[str, Callable[[Path], Job]] = {"save": Save, "ask": Ask, **COMMANDS}
MADE = {  # what the words of a job name -> the command that makes it
    "@-idx": _COMPRESS.replace("OUT", "@-idx"),
    "@-emb": "embed @.csv --left user --right item --out @-emb --dim 2",
}


def make_data(base: Path) -> None:
    """The files that the words @... of the commands stand for; the folders are made by `MADE`."""
    rng = np.random.default_rng(0)
    for seed, name in enumerate(WHICH):
        X, few = rng.normal(size=(60, 8)).astype(np.float32), 5 + seed
        np.save(base / f"{name}.npy", X)
        np.save(base / f"{name}-long.npy", rng.normal(size=(400, 8)).astype(np.float32))
        np.save(base / f"{name}-few.npy", X[:few] + 1)
        np.save(base / f"{name}-truth.npy", np.tile(np.arange(10), (few, 1)))
        (base / f"{name}-ids.txt").write_text("".join(f"{i}\n" for i in range(few)))
        users, items = rng.integers(0, 30, 300).tolist(), rng.integers(0, 20, 300).tolist()
        pairs = sorted({*zip(users, items, strict=True), *((i, i) for i in range(20))})
        (base / f"{name}.csv").write_text("user,item\n" + "".join(f"u{u},i{i}\n" for u, i in pairs))
