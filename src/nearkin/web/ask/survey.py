"""A survey: raters, questions, answers, and the model that chooses questions. The journal has each change first."""

import csv
import json
import math
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import BrokenExecutor, Future, ProcessPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import chain, count
from multiprocessing import get_context
from pathlib import Path
from urllib.parse import urlencode

import numpy as np

from nearkin import Comparisons, OrdinalEmbedding
from nearkin._check import check_choice, check_integer, check_real
from nearkin._fields import MISSING, counted
from nearkin._json import parsed_json
from nearkin._storage import replacing, sync, try_lock
from nearkin._types import Fields, Record
from nearkin.metrics import triplet_error
from nearkin.web.ask.questions import FORMS, Form, Items, Question, Shown
from nearkin.web.serving import new_token

FEWEST = 10  # answers before the first fit
FEWEST_TO_WEIGH = 30  # answers of each of two raters before raters are weighed
_GROWTH = 1.05  # a fit starts when there are this many times the answers of the last one


@dataclass(frozen=True)
class Fitted:
    """A finished fit: embedding (n, p), the error on `held_out` comparisons (None without any), the next questions, and
    raters' weights by number, the best one's 1 (none where all weigh the same)."""

    embedding: np.ndarray
    n_answers: int
    error: float | None
    held_out: int
    questions: list[tuple[int, ...]]
    weights: dict[object, float] = field(default_factory=dict)


def fit(answers: Comparisons, held_out: Comparisons, seed: int) -> Fitted:
    """Fit a map to the answers, and choose what to ask next; runs in the model's own process."""
    who = answers.annotators
    if who is not None and answers.events is not None:  # once for each answer, of several comparisons
        who = who[np.unique(answers.events, return_index=True)[1]]
    weighed = who is not None and int((np.bincount(who) >= FEWEST_TO_WEIGH).sum()) >= 2
    model = OrdinalEmbedding(2, random_state=seed).fit(answers, raters="estimated" if weighed else "equal")
    n, error = len(answers.indices), None
    if len(held_out.indices):
        error = triplet_error(model.embedding_, held_out)
    questions = [tuple(map(int, row)) for row in model.next_queries(_AT_ONCE, random_state=seed + n)]
    return Fitted(model.embedding_, n, error, len(held_out.indices), questions, model.rater_reliability_ or {})


class Learner:
    """Runs `fit` in a separate process; `take` returns each result once."""

    def __init__(self) -> None:
        self._pool = self._new_pool()
        self._running: Future[Fitted] | None = None
        self._last = 0
        self.failure: str | None = None

    def _new_pool(self) -> ProcessPoolExecutor:
        return ProcessPoolExecutor(1, mp_context=get_context("spawn"))  # its process begins with the first fit

    def offer(self, make: Callable[[], tuple[Comparisons, Comparisons, int]], n_answers: int) -> None:
        """Begin a fit if none runs and there are enough new answers."""
        if self._running is None and n_answers >= max(FEWEST, _GROWTH * self._last, self._last + 1):
            self._last, self._running = n_answers, self._pool.submit(fit, *make())

    def take(self) -> Fitted | None:
        """The fit that has finished since the last call, None if there is none. A fit that failed is dropped and named
        in `failure`; more answers start the next one."""
        if self._running is None or not self._running.done():
            return None
        running, self._running = self._running, None
        error = running.exception()
        self.failure = None if error is None else f"{type(error).__name__}: {error}"
        if isinstance(error, BrokenExecutor):
            self._pool = self._new_pool()
        return running.result() if error is None else None

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)


_SHARED = 0.25  # share of the random questions that another rater was asked too
_RECENT = 1000  # questions among which one to share is looked for
_AT_ONCE = 400  # questions that the model chooses at once: as many as may be answered before its next fit
_REPEAT_AFTER = 10  # questions between a question and its repetition
_ABOUT = ("rater", "time", "seconds", "reason", "question", "shown", "parameters", "hidden")  # columns after the items
_GOAL = 50  # questions among which `Plan.n_catch` are spread where a rater has no goal
_PARAMETERS, _LETTERS = 20, 200  # of an address, and of each of its values


@dataclass(frozen=True)
class Plan:
    """How questions are chosen.

    form: "triplet", "odd-one-out" or "pairs". random_share: questions drawn at random and kept out of the model, so
    that its error is measured on answers it has not seen. repeat_share: questions that a rater has answered before, for
    consistency. catch: (c, 3) numbers of items (anchor, near, far) whose answer is known; n_catch: how many of them
    each rater is asked, at random places among `goal` questions, the answers of each rater, or 50 without a goal.
    active: whether the model chooses the others; without it all are random. max_raters, max_answers: people
    and answers that are wanted; nobody else may begin then. max_wrong: a rater who answers more catch questions wrong
    is left out. practice: a rater's first questions, which do not count. min_seconds: the least time for an answer.
    """

    form: str = "triplet"
    random_share: float = 0.2
    repeat_share: float = 0.05
    catch: tuple[tuple[int, int, int], ...] = ()
    n_catch: int = 3
    goal: int | None = None
    active: bool = True
    max_raters: int | None = None
    max_answers: int | None = None
    max_wrong: int | None = None
    practice: int = 0
    min_seconds: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        check_choice(self.form, "form", FORMS)
        for name in ("random_share", "repeat_share"):
            check_real(getattr(self, name), name, low=0, high=1)
        if self.random_share + self.repeat_share > 1:
            raise ValueError("random_share and repeat_share add up to more than 1")
        if self.catch and self.form != "triplet":
            raise ValueError(f"catch questions are triplets, and the form is {self.form!r}; leave them out")
        least = {"max_raters": 1, "max_answers": 1, "max_wrong": 0, "practice": 0, "n_catch": 1, "goal": 1}
        for name, low in least.items():
            if getattr(self, name) is not None:
                check_integer(getattr(self, name), name, low=low)
        if self.max_wrong is not None and not self.catch:
            raise ValueError(f"max_wrong is {self.max_wrong}, and there are no catch questions; give catch too")
        check_real(self.min_seconds, "min_seconds", low=0, high=60)


class Journal:
    """A file of one JSON line an event, only ever appended to, and open in one process.

    `events` are those of earlier runs. ValueError where another process has the file open, or where it is damaged.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = path.open("ab+", buffering=0)  # what cannot be written must not wait in a buffer
        try:
            if try_lock(self._file.fileno()) is False:
                raise ValueError(f"{path} is in use by another `nearkin ask`; stop it, or give another name")
            sync(path.parent)
            self._file.seek(0)
            data = self._file.read()
            self._end = data.rfind(b"\n") + 1  # an incomplete last line was never acknowledged
            self.events: list[Record] = _events(path, data[: self._end])
        except BaseException:
            self._file.close()
            raise

    def append(self, event: Fields, *, durable: bool = True) -> None:
        """Write an event; with `durable` it survives a power cut once this returns, else the death of this process.

        OSError where that fails, such as on a full disk; the file then ends with the event before.
        """
        line, number = json.dumps(event, ensure_ascii=False).encode() + b"\n", self._file.fileno()
        try:
            if os.fstat(number).st_size != self._end:  # an earlier failure could not be undone at once
                os.ftruncate(number, self._end)
            written = 0
            while written < len(line):
                written += self._file.write(line[written:])
            if durable:
                os.fsync(number)
        except OSError as error:
            with suppress(OSError):
                os.ftruncate(number, self._end)
            raise OSError(error.errno, error.strerror, str(self.path)) from error
        self._end += len(line)

    def close(self) -> None:
        self._file.close()


def _events(path: Path, lines: bytes) -> list[Record]:
    try:
        return [parsed_json(line) for line in lines.splitlines()]
    except ValueError as error:
        raise ValueError(f"{path} is damaged ({error}); move it away, or correct that line") from error


def cleaned(text: str) -> str:
    """Text that a person typed, in one line: without control characters, which no table of answers may hold."""
    return " ".join("".join(c if c.isprintable() or c in _JOINERS else " " for c in text).split())


_JOINERS = "\u200c\u200d"  # between letters of Persian, and in emoji


def spreadsheet_cell(text: str) -> str:
    """The text, of people, for a CSV file: one that a spreadsheet would run as a formula, or that means a missing cell,
    gets a \' in front. Names of items are ids, which stay unchanged."""
    text = cleaned(text)
    is_formula = text[:1] in ("=", "+", "-", "@") and not text[1:].isdecimal()
    return f"'{text}" if is_formula or (text and text in MISSING) else text


class AnswerTable:
    """The table of answers, one line an answer, as `nearkin embed` reads it. "Can't say" has no line."""

    def __init__(self, path: Path, items: Items, form: Form, raters: Mapping[str, "Rater"]) -> None:
        self._path, self._items, self._form, self._raters = path, items, form, raters

    def rewrite(self, answers: Iterable[Question]) -> None:
        """Write the whole table, whole or not at all."""
        with replacing(self._path) as fresh, fresh.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow([*self._form.columns, *_ABOUT])
            writer.writerows(self._row(question) for question in answers if question.choice != -1)

    def append(self, question: Question) -> None:
        """Add the line of one answer, on disk when this returns."""
        if question.choice == -1:
            return
        with self._path.open("a", newline="", encoding="utf-8") as file:
            csv.writer(file).writerow(self._row(question))
            file.flush()
            os.fsync(file.fileno())

    def _row(self, question: Question) -> list[object]:
        rater = self._raters[question.rater]
        names = [self._items.ids[item] for item in self._form.line(question.shown, question.choice or 0)]
        shown = " | ".join(self._items.ids[item] for item in question.shown)
        who, shown, parameters = map(spreadsheet_cell, (rater.name, shown, urlencode(rater.parameters)))
        about = [f"{question.seconds:.2f}", question.reason, question.number, shown, parameters]
        return [*names, who, _iso(question.time), *about, f"{question.hidden:.2f}"]


def _iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")


@dataclass
class Rater:
    """A person who answers: the open question, the answered ones in order, and the keys of all that was asked.

    `parameters` are those of the address by which a platform of paid raters sent them, such as PROLIFIC_PID; `fields`
    is what they filled in when they began. An invited person has not `begun` before. `consent` and `consent_time` (ISO
    8601, UTC): the text that they agreed to, and when.
    """

    key: str  # the secret of the rater's address
    name: str
    parameters: dict[str, str] = field(default_factory=dict)
    fields: dict[str, str] = field(default_factory=dict)
    begun: bool = False
    consent: str = ""
    consent_time: str = ""
    planned: tuple[str, Shown, int | None] | None = None  # what comes after the open question, for the page to load
    open: int | None = None
    answered: list[int] = field(default_factory=list)
    asked: set[Shown] = field(default_factory=set)

    def to_repeat(self, questions: Sequence[Question]) -> Question | None:
        """The oldest answered question that was not repeated yet, none of the last ten; None if there is none."""
        repeated = {questions[number].of for number in self.answered}
        old = (questions[number] for number in self.answered[:-_REPEAT_AFTER] if number not in repeated)
        return next((question for question in old if question.of is None and question.choice != -1), None)


def journal_path(out: Path) -> Path:
    return out.with_name(out.name + ".journal")


@dataclass
class Survey:
    """Questions and answers about `items`, kept in the table `out` and its journal; safe for several threads.

    ValueError if the journal belongs to other items or another form, is damaged, or is in use by another process.
    FileNotFoundError if `out` is there and its journal is not.
    """

    items: Items
    plan: Plan
    out: Path
    raters: dict[str, Rater] = field(default_factory=dict)  # by key
    questions: list[Question] = field(default_factory=list)
    fitted: Fitted | None = None
    curve: list[tuple[int, float, int]] = field(default_factory=list)  # comparisons trained on, error, held out ones
    tokens: tuple[str, str] = ("", "")  # of the raters' link and of the experimenter's; kept in the journal

    def __post_init__(self) -> None:
        self._lock, self._rng = threading.RLock(), np.random.default_rng(self.plan.seed)
        self.learner: Learner = Learner()
        self._chosen = deque[Shown]()
        self._tabled: set[int] | None = None  # numbers of the answers in the table, None if not known
        self._number_of = {name: number for number, name in enumerate(self.items.ids)}
        self.form: Form = FORMS[self.plan.form]
        self.table: AnswerTable = AnswerTable(self.out, self.items, self.form, self.raters)
        path = journal_path(self.out)
        if self.out.exists() and not (path.exists() and path.stat().st_size):
            raise FileNotFoundError(
                f"{path} is missing or empty, and {self.out} would be replaced; put the journal back, or give another "
                "name"
            )
        self.journal: Journal = Journal(path)
        try:
            self._replay()
            if not self.tokens[0]:
                self._note({"event": "links", "raters": new_token(), "results": new_token()})
            self._tabulate()
        except BaseException:
            self.journal.close()
            raise

    def join(
        self,
        name: str = "",
        parameters: Mapping[str, str] | None = None,
        fields: Mapping[str, str] | None = None,
        *,
        key: str = "",
        begun: bool = True,
        consent: str = "",
    ) -> Rater:
        """A rater who begins: that of `key`, or a new one, who agreed to the text of `consent`. A name that is taken
        gets a number ("maria 2"), so that nobody gets another person's key. ValueError for too long parameters."""
        texts = {"parameters": parameters or {}, "fields": fields or {}}
        said = {what: {cleaned(key): cleaned(text) for key, text in given.items()} for what, given in texts.items()}
        for what, given in said.items():
            if len(given) > _PARAMETERS or any(len(text) > _LETTERS for pair in given.items() for text in pair):
                raise ValueError(f"{what} are more than {_PARAMETERS}, or one is of over {_LETTERS} letters")
        with self._lock:
            name = self.rater(key).name if key else self._free(cleaned(name)[:60])
            who = {"key": key or new_token(), "name": name, "begun": begun}
            if consent:
                who |= {"consent": consent, "consent_time": _iso(time.time())}
            self._note({"event": "join", **who, **{what: given for what, given in said.items() if given}})
            return self.raters[who["key"]]

    def _free(self, name: str) -> str:
        """An unused name: `name`, or with a number; "rater" and a number for none."""
        taken = {"", *(rater.name for rater in self.raters.values())}
        numbered = (f"{name or 'rater'} {n}" for n in count(2 if name else 1))
        return next(free for free in chain([name], numbered) if free not in taken)

    def invited(self, name: str) -> Rater:
        """The rater of a name that the experimenter gave, a new one if there is none."""
        known = (rater for rater in self.raters.values() if rater.name == cleaned(name)[:60])
        return next(known, None) or self.join(name, begun=False)

    def rater(self, key: str) -> Rater:
        """The rater of an address; ValueError for an unknown one."""
        if key not in self.raters:
            raise ValueError("this link is not known here; open the survey's own link again")
        return self.raters[key]

    def learn(self) -> None:
        """Take up the fit that has finished, and begin the next one if there are enough new answers."""
        with self._lock:
            if (fitted := self.learner.take()) is not None:
                self.fitted, self._chosen = fitted, deque(fitted.questions)
                self.curve += [] if fitted.error is None else [(fitted.n_answers, fitted.error, fitted.held_out)]
            self.learner.offer(self._job, sum(question.is_learned for question in self.questions))

    def ask(self, key: str) -> Question:
        """The open question of a rater: the one that waits for an answer, or a new one."""
        with self._lock:
            rater = self.rater(key)
            if rater.open is not None:
                return self.questions[rater.open]
            self.learn()
            reason, shown, of = rater.planned or self._choose(rater)
            event = {
                "event": "asked", "question": len(self.questions), "rater": key, "reason": reason,
                "shown": [self.items.ids[item] for item in self.form.shuffled(shown, self._rng)], "of": of,
            }  # fmt: skip
            self._note(event, durable=False)  # a question lost in a power cut is asked again
            rater.planned = self._choose(rater)  # the page loads its pictures while this one is answered
            return self.questions[-1]

    def answer(self, key: str, number: int, choice: int, seconds: float = 0.0, hidden: float = 0.0) -> None:
        """Keep a rater's answer, on disk when this returns; the same answer sent twice is one.

        `choice` counts the page's choices from 0; -1 is "can't say". ValueError for a question of another rater, one
        that has another answer, an unknown choice, or one in less than `plan.min_seconds`.
        """
        with self._lock:
            known = isinstance(number, int) and 0 <= number < len(self.questions)
            if not known or self.questions[number].rater != key:
                raise ValueError("this question is not one of yours; reload the page")
            n_choices, question = len(self.form.lines), self.questions[number]
            if not isinstance(choice, int) or not -1 <= choice < n_choices:
                raise ValueError(f"choice is {choice!r:.20}; it must be -1 to {n_choices - 1}")
            if any(not isinstance(time, int | float) or time != time for time in (seconds, hidden)):
                raise ValueError("seconds must be a number")
            if question.choice == choice:
                return
            if question.choice is not None:
                raise ValueError("this question was answered already; undo that first")
            if choice >= 0 and seconds < self.plan.min_seconds:
                raise ValueError(f"seconds is {seconds:.2f}; an answer needs at least {self.plan.min_seconds:g}")
            spent, unseen = (float(min(max(value, 0), 86_400)) for value in (seconds, hidden))
            event = {"event": "answer", "question": number, "choice": choice, "time": time.time(), "seconds": spent}
            self._note(event | ({"hidden": unseen} if unseen else {}))
            self.learn()

    def undo(self, key: str) -> Question | None:
        """Open the rater's last answered question again, without its answer; None if there is none."""
        with self._lock:
            rater = self.rater(key)
            if not rater.answered:
                return None
            number = rater.answered[-1]
            self._note({"event": "undo", "question": number})
            return self.questions[number]

    def answers_of(self, rater: Rater) -> list[Question]:
        """A rater's answered questions, without those of practice."""
        return [self.questions[number] for number in rater.answered if self.questions[number].reason != "practice"]

    def left_out(self, rater: Rater) -> bool:
        """Whether a rater's answers do not count: more than `plan.max_wrong` catch questions were answered wrong."""
        wrong = [not self.is_right(question) for question in self.answers_of(rater) if question.reason == "catch"]
        return self.plan.max_wrong is not None and sum(wrong) > self.plan.max_wrong

    def is_right(self, question: Question) -> bool:
        """Whether the answer to a catch question is not the wrong one; "can't say" is not."""
        choice = question.choice or 0
        return choice < 0 or self.form.line(question.shown, choice) in self.plan.catch

    def is_full(self) -> bool:
        """Whether the plan's number of raters or answers is reached."""
        given, most_raters, most_answers = self.answered(), self.plan.max_raters, self.plan.max_answers
        raters = {question.rater for question in given}
        return len(raters) >= (most_raters or math.inf) or len(given) >= (most_answers or math.inf)

    def answered(self, counted: bool = True) -> list[Question]:
        """The answers in force that count, those of "can't say" too; or those that do not: of practice and of raters
        left out."""
        out = {key for key, rater in list(self.raters.items()) if self.left_out(rater)}
        given = [q for q in self.questions if q.choice is not None]
        return [q for q in given if (q.reason != "practice" and q.rater not in out) == counted]

    def comparing(self) -> list[Question]:
        """The counted questions whose answer orders something: all but "can't say"."""
        return [q for q in self.answered() if (q.choice or 0) >= 0]

    def close(self) -> None:
        """End the model's process and close the files; OSError where the table cannot be completed."""
        self.learner.close()
        try:
            self._tabulate()
        finally:
            self.journal.close()

    def _choose(self, rater: Rater) -> tuple[str, Shown, int | None]:
        """Reason and items of the next question, and the one that it repeats."""
        # one draw, from which each share takes its part: together they are at most 1
        draw, plan = float(self._rng.random()), self.plan
        number = len(rater.answered) + (rater.open is not None) - plan.practice
        if number < 0:
            return "practice", self._drawn(rater), None
        if plan.catch and (known := self._catch(rater, number)) is not None:
            return "catch", known, None
        if draw < plan.repeat_share and (old := rater.to_repeat(self.questions)) is not None:
            return "repeat", old.shown, old.number
        draw -= plan.repeat_share
        if draw < plan.random_share:
            shared = None
            if self._rng.random() < _SHARED:  # one that another rater was asked, so that the two compare
                recent = (q.shown for q in reversed(self.questions[-_RECENT:]) if q.reason == "random")
                shared = next((some for some in recent if self.form.key(some) not in rater.asked), None)
            return "random", shared or self._drawn(rater, kept=True), None
        while self._chosen and plan.active and self.form.name != "pairs":
            shown = self._chosen.popleft()
            if self.form.key(shown) not in rater.asked and not self._is_kept(shown):
                return "active", shown, None
        return "start", self._drawn(rater, kept=False), None

    def _catch(self, rater: Rater, number: int) -> Shown | None:
        """The catch question that a rater's question of that number is, None for another one: `plan.n_catch` of every
        `plan.goal`. A rater's places and order are drawn once, and the same after a restart."""
        catch, goal = self.plan.catch, self.plan.goal or _GOAL
        part, place = divmod(number, goal)
        rng = np.random.default_rng([self.plan.seed, part, *rater.key.encode()])
        places, order = rng.permutation(goal)[: self.plan.n_catch].tolist(), rng.permutation(len(catch))
        return catch[order[places.index(place) % len(catch)]] if place in places else None

    def _drawn(self, rater: Rater, kept: bool | None = None) -> Shown:
        """A question at random, if 20 draws find one a new one to the rater, of those that are `kept` or not."""
        for _ in range(20):
            shown = self.form.random(len(self.items), self._rng)
            if self.form.key(shown) not in rater.asked and kept in (None, self._is_kept(shown)):
                break
        return shown

    def _is_kept(self, shown: Shown) -> bool:
        """Whether a question is kept out of the model for all raters: the `random_share` of all questions."""
        return np.random.default_rng([*self.form.key(shown), self.plan.seed]).random() < self.plan.random_share

    def _job(self) -> tuple[Comparisons, Comparisons, int]:
        """The arguments of `fit`: training answers and held-out answers."""
        given, number_of = self.comparing(), {key: n for n, key in enumerate(self.raters)}
        learned = [q for q in given if q.is_learned]
        trained = {self.form.key(q.shown) for q in learned}  # few items may have too few questions to keep some
        held_out = [q for q in given if q.reason == "random" and self.form.key(q.shown) not in trained]
        names, per = np.arange(len(self.items)), len(self.form.comparisons)
        rows = self.form.all_comparisons(learned)
        raters = np.repeat([number_of[q.rater] for q in learned], per)
        events = None if per == 1 else np.arange(len(rows)) // per
        answers = Comparisons(rows, names, annotators=raters, events=events)
        return answers, Comparisons(self.form.all_comparisons(held_out), names), self.plan.seed

    def _tabulate(self) -> None:
        """Bring the table to the answers that count: by one more line, else as a whole; OSError where that fails."""
        answers = self.answered()
        numbers = {question.number for question in answers}
        known, self._tabled = self._tabled, None  # unknown if this fails, and then written as a whole next time
        if known is not None and known < numbers and len(numbers) == len(known) + 1:
            self.table.append(self.questions[(numbers - known).pop()])
        elif numbers != known:
            self.table.rewrite(answers)
        self._tabled = numbers

    def _note(self, event: Record, *, durable: bool = True) -> None:
        self.journal.append(event, durable=durable)
        self._apply(event)
        if event["event"] in ("answer", "undo"):
            with suppress(OSError):  # the journal has the answer, and the next one brings it into the table
                self._tabulate()

    def _replay(self) -> None:
        path, events = self.journal.path, self.journal.events
        head = {"event": "survey", "version": 1, "form": self.form.name, "items": list(self.items.ids)}
        if not events:
            self.journal.append(head)
            return
        if events[0] != head:
            raise ValueError(f"{path} belongs to other items or another form of question; give another name")
        for line, event in enumerate(events[1:], start=2):
            try:
                self._apply(event)
            except (KeyError, TypeError, ValueError) as error:
                why = f"{error} is missing or unknown" if isinstance(error, KeyError) else error
                raise ValueError(f"{path} is damaged at line {line} ({why}); move it away, or correct it") from error
        events.clear()

    def _apply(self, event: Fields) -> None:
        """Change the state by an event, new or replayed; KeyError, TypeError or ValueError if it cannot follow."""
        kind = event["event"]
        if kind == "links":
            self.tokens = event["raters"], event["results"]
            return
        if kind == "join":
            rater = self.raters.setdefault(event["key"], Rater(event["key"], event["name"]))
            rater.parameters |= event.get("parameters", {})
            rater.fields |= event.get("fields", {})
            rater.begun = event.get("begun", True)
            rater.consent = event.get("consent", rater.consent)
            rater.consent_time = event.get("consent_time", rater.consent_time)
            return
        number, n = event["question"], len(self.questions)
        if kind == "asked":
            shown, rater = tuple(self._number_of[name] for name in event["shown"]), self.raters[event["rater"]]
            if number != n or len(shown) != len(self.form.columns):
                raise ValueError(f"question is {number!r} of {counted(len(shown), 'item')}, the next one is {n}")
            self.questions.append(Question(n, rater.key, event["reason"], shown, of=event["of"]))
            rater.open = n
            rater.asked.add(self.form.key(shown))
            return
        if kind not in ("answer", "undo") or not isinstance(number, int) or not 0 <= number < n:
            raise ValueError(f"event is {kind!r} of question {number!r}, and {n} have been asked")
        question = self.questions[number]
        rater, undo = self.raters[question.rater], kind == "undo"
        if undo == (question.choice is None):
            raise ValueError(f"question {number} {'has no answer to undo' if undo else 'is answered twice'}")
        if undo:  # a question that waits is dropped, and asked again some other time
            rater.answered.remove(number)
            question.choice, rater.open, rater.planned = None, number, None
            return
        if event["choice"] not in range(-1, len(self.form.lines)):
            raise ValueError(f"choice is {event['choice']!r}")
        question.time, question.seconds = float(event["time"]), float(event["seconds"])
        question.choice, question.hidden = event["choice"], float(event.get("hidden", 0))
        rater.answered.append(number)
        rater.open = None if rater.open == number else rater.open
